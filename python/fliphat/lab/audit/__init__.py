"""A black-box audit: lower bounds on epsilon, from runs alone.

It knows nothing of the proof. Each mechanism runs many times on two neighbouring inputs; an event is chosen
on one half of the runs and bounded on the other half (Clopper-Pearson, at 99.9 %). A claim is *refuted*
when the bound passes it. An audit can't prove privacy: that is what `docs/privacy.md` is for. It can find a
mistake, and to show that it would, it also runs mechanisms that are broken on purpose: a control that is
not refuted is a failure of the audit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from fliphat.lab.audit.bounds import Counts, bound_event, choose_event
from fliphat.lab.audit.cases import Case, mechanism_cases

__all__ = ["Case", "Finding", "audit_case", "mechanism_cases"]

#: Confidence of a bound: at most one in a thousand is above the true epsilon.
CONFIDENCE = 0.999

#: Runs of one call into the kernel: short enough for a progress bar and Ctrl-C.
_CHUNK = 100_000


@dataclass(frozen=True)
class Finding:
    """What an audit found of one case."""

    case: str
    claimed_epsilon: float
    delta: float
    lower_bound: float
    runs: int
    control: bool

    @property
    def refuted(self) -> bool:
        """Whether the bound passes the claim."""
        return self.lower_bound > self.claimed_epsilon

    @property
    def as_it_should_be(self) -> bool:
        """Whether a claim stands, or a control is caught."""
        return self.refuted == self.control

    @property
    def verdict(self) -> str:
        """One of ``consistent``, ``REFUTED``, ``caught`` and ``MISSED``."""
        if self.control:
            return "caught" if self.refuted else "MISSED"
        return "REFUTED" if self.refuted else "consistent"

    def to_dict(self) -> dict[str, object]:
        """Return a record that ``json`` can write."""
        return {
            "case": self.case,
            "claimed_epsilon": self.claimed_epsilon,
            "delta": self.delta,
            "lower_bound": self.lower_bound,
            "runs": self.runs,
            "control": self.control,
            "verdict": self.verdict,
        }


def audit_case(
    case: Case,
    runs: int,
    *,
    threads: int | None = None,
    seed: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Finding:
    """Run a case on both sides and bound its epsilon.

    Parameters
    ----------
    case : Case
    runs : int
        Runs on each side (fewer by the case's cost); half of them choose the event, half bound it.
    threads : int, optional
        All cores by default.
    seed : int, optional
        Draws the noise from a seed, so that a test can be repeated. With the same number of threads, the same
        seed gives the same finding. By default the noise is the one people get.
    progress : callable
        Called with the number of runs done since the last call.

    Returns
    -------
    Finding

    Examples
    --------
    >>> finding = audit_case(mechanism_cases()[0], 20_000, seed=1)
    >>> finding.verdict, finding.lower_bound < finding.claimed_epsilon
    ('consistent', True)
    """
    if runs < 2:
        raise ValueError(f"runs must be at least 2, got {runs}")
    threads = threads or os.cpu_count() or 1
    half = max(runs // (2 * case.cost), 1)
    halves = []
    for which in (0, 1):
        total: list[Counts] | None = None
        for start in range(0, half, _CHUNK // case.cost):
            size = min(_CHUNK // case.cost, half - start)
            # Every chunk has a seed of its own: a seed used twice would count the same runs twice.
            chunk_seed = None if seed is None else _chunk_seed(seed, which, start)
            total = _added(total, case.count(size, threads, chunk_seed))
            progress(size * case.cost)
        halves.append(total or [])
    event = choose_event(halves[0], half, case.delta, CONFIDENCE)
    bound = bound_event(event, halves[1], half, case.delta, CONFIDENCE)
    return Finding(case.name, case.claimed_epsilon, case.delta, bound, 2 * half, case.broken is not None)


def _chunk_seed(seed: int, which: int, start: int) -> int:
    return int(np.random.SeedSequence([seed, which, start]).generate_state(1, np.uint64)[0])


def _added(total: list[Counts] | None, new: Iterable[Counts]) -> list[Counts]:
    if total is None:
        return list(new)
    return [(a + c, b + d) for (a, b), (c, d) in zip(total, new, strict=True)]
