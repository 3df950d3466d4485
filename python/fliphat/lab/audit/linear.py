"""The audit's cases for PrivateLinear at two columns: one person's context, reward and arm swapped.

The policy plays for real: episodes before the person comes, rounds, rewards, plan and price. The release of
the person's episode is made by the policy itself from a saved copy and drawn again many times by the kernels
(:mod:`fliphat.lab.audit.steps`). Rows along different axes with rewards at different ends move every part
of the vector nearly as far as any two rows do.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from fliphat.fit import dense_sums
from fliphat.fit.dense import Dense
from fliphat.fit.draw import Drawn
from fliphat.lab.audit.cases import Case
from fliphat.lab.audit.peers import boundary_case
from fliphat.lab.audit.steps import StepsCall, counting, recorded_steps
from fliphat.policies.linear import PrivateLinear
from fliphat.privacy.priced import Part

__all__ = ["linear_cases"]

#: A large delta, as in the other cases: the most telling event is then a frequent one.
_EPSILON, _DELTA = 1.0, 0.2
_DIM, _ROUNDS = 2, 12

#: Context and reward of the person on the two sides; contexts are cut to their norm.
_SIDES: Final = (((1e9, 0.0), 1.0), ((0.0, 1e9), 0.0))

#: The claim holds after anything that was released before: of this many pasts, the most telling one is taken.
_PASTS: Final = 16

#: Native cases make about this many runs in the time of one here.
_COST = 10


def linear_cases() -> list[Case]:
    """Return the claims and the controls of PrivateLinear."""

    def played(name: str, before: int, broken: str | None = None, **changes: float) -> Case:
        def record() -> tuple[list[StepsCall], list[StepsCall]]:
            return max((_played(before, **changes) for _ in range(_PASTS if before else 1)), key=_apart)

        return Case(name, _EPSILON, _DELTA, counting(record), broken, cost=_COST)

    def summed(name: str, broken: str | None = None, **changes: bool) -> Case:
        def record() -> tuple[list[StepsCall], list[StepsCall]]:
            return _summed(**changes)

        return Case(name, _EPSILON, _DELTA, counting(record), broken, cost=_COST)

    return [
        played("PrivateLinear, the first episode", 0),
        played("PrivateLinear, a later episode", 2),
        summed("PrivateLinear, second moments"),
        played(
            "PrivateLinear, noise at 2/3 of what is needed", 2, "a third of the noise is missing", noise=2 / 3
        ),
        played(
            "PrivateLinear, an episode's rows used twice", 2, "a second release from the same rows", fits=2
        ),
        summed(
            "PrivateLinear, sensitivity B^2 for sqrt(2) B^2",
            "one row's size where two rows differ",
            one_row=True,
        ),
        summed(
            "PrivateLinear, rows centered by their own mean",
            "one row moves the integers of all others",
            own_center=True,
        ),
        boundary_case("PrivateLinear, an episode that ends when rewards are high"),
    ]


def _policy() -> PrivateLinear:
    return PrivateLinear(2, _DIM, _EPSILON, _DELTA, context_norm=1.0, first_episode=_ROUNDS, growth=1.0)


def _played(before: int, noise: float = 1.0, fits: float = 1) -> tuple[list[StepsCall], list[StepsCall]]:
    """Return the releases of the episode after `before` others, on both sides."""
    policy = _policy()
    sides: list[list[StepsCall]] = []
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "policy"
        for _ in range(before):
            _end(policy, None)
        # The first round of the person's episode releases the one before: the same on both sides. The person
        # chooses nothing, but is given an arm by what was released: the same one.
        policy.update(policy.select(np.zeros(_DIM)), 0.0)
        policy.save(file)
        opened = file.read_bytes()
        for side in _SIDES:
            file.write_bytes(opened)
            ended = PrivateLinear.load(file)
            _end(ended, side)
            ended.save(file)
            backup = file.read_bytes()

            def release(backup: bytes = backup) -> None:
                file.write_bytes(backup)
                PrivateLinear.load(file).select(np.zeros(_DIM))

            sides.append([recorded_steps(release).noisier(noise) for _ in range(int(fits))])
            file.unlink(missing_ok=True)
    return sides[0], sides[1]


def _apart(sides: tuple[list[StepsCall], list[StepsCall]]) -> float:
    """How far the sides' integers are apart, in units of their noise."""
    return sum(
        float(np.square((first.values[()] - second.values[()]) / first.sigmas).sum())
        for first, second in zip(*sides, strict=True)
    )


def _end(policy: PrivateLinear, person: tuple[tuple[float, float], float] | None) -> None:
    """Play what is left of an episode, one round of it the person's."""
    contexts = np.zeros((policy.remaining, _DIM))
    if person is not None:
        contexts[0] = person[0]
    decisions = policy.select_batch(contexts)
    # Others' arms are drawn anew on each side; without a reward they leave nothing in any sum.
    if person is not None:
        policy.update(int(decisions.ids[0]), person[1])


def _summed(one_row: bool = False, own_center: bool = False) -> tuple[list[StepsCall], list[StepsCall]]:
    """Return releases of nearly nothing but second moments, on both sides."""
    fit = _policy()._fit
    assert isinstance(fit, Dense)
    parts = dense_sums.noise_for({"gradient": 2**-10, "moments": 1 - 2**-10}, fit.cap)
    if one_row:
        part = parts["moments"]
        parts["moments"] = Part(part.sensitivity_squared // 2, round(part.sigma / 2**0.5))
    others = np.tile([3.0, 1.0], (_ROUNDS, 1))
    sides = []
    for context, reward in _SIDES:
        rows, rewards = others.copy(), np.zeros(_ROUNDS)
        rows[0], rewards[0] = context, reward - 0.5
        center = np.clip(rows, -10, 10).mean(axis=0) if own_center else np.zeros(_DIM)
        sides.append([_recorded(rows, rewards, parts, center)])
    return sides[0], sides[1]


def _recorded(
    rows: npt.NDArray[np.float64],
    rewards: npt.NDArray[np.float64],
    parts: dict[str, Part],
    center: npt.NDArray[np.float64],
) -> StepsCall:
    row_map = dense_sums.RowMap(center, np.ones(_DIM), 1.0)

    def release() -> None:
        sums = dense_sums.integer_sums(
            rows,
            np.zeros(len(rows), np.int64),
            rewards,
            np.ones(len(rows), bool),
            row_map=row_map,
            groups=1,
            parts=tuple(parts),
        )
        dense_sums.release(sums, parts, Drawn(None), row_map)

    return recorded_steps(release)
