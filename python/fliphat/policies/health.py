"""Whether a policy learns, told from public numbers alone: released estimates and what the fit knows.

A finding is a sign, not a proof: it says what is seen and what to do. The thresholds are wide, so that
ordinary worlds, in which learning is only slow, are silent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat.fit.base import Known
from fliphat.fit.dense import KnownLinear
from fliphat.fit.known import KnownEstimate, SparseEstimate
from fliphat.fit.pursuit.known import KnownSparse
from fliphat.fit.settings import Settings
from fliphat.policies.health_linear import linear_findings
from fliphat.policies.types import EpisodeFacts

__all__ = ["Health", "HealthWarning", "examine"]

#: Estimates that are looked at, the last ones.
_LOOKED_AT: Final = 6
#: Releases before anything is said: the first ones are mostly noise everywhere.
_LEAST: Final = 8
#: Cosine below which two estimates in a row point against each other.
_AGAINST: Final = -0.3
#: Pairs, among those looked at, that point against each other or have no column in common.
_PAIRS: Final = 3
#: Fits of pursuit after which something should have been found.
_FITS: Final = 12
#: Standard deviations of a coefficient that is not what a pick makes of noise.
_STANDS_OUT: Final = 4.0
#: How far a scale may move from what was told.
_SCALE: Final = 5.0


class HealthWarning(UserWarning):
    """What a policy released looks as if it does not learn."""


@dataclass(frozen=True)
class Health:
    """What public numbers say about a policy.

    Attributes
    ----------
    findings : tuple of str
        One sentence for each sign of trouble, with what to do; empty if there is none.

    Examples
    --------
    >>> print(Health(()))
    no sign of trouble
    """

    findings: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no finding."""
        return not self.findings

    def __str__(self) -> str:
        return "\n".join(self.findings) or "no sign of trouble"


def examine(settings: Any, history: Sequence[EpisodeFacts], known: Known | None) -> Health:
    """Return what released estimates, and what the fit knows, say about a policy."""
    if len(history) < _LEAST:
        return Health(())
    estimates = [facts.estimate for facts in history[-_LOOKED_AT:]]
    if isinstance(known, KnownLinear):
        return Health(tuple(one for one in linear_findings(known, settings) if one is not None))
    if not isinstance(known, KnownSparse | KnownEstimate):
        return Health(())  # of a fit that this version has no rules for
    found = [_alternating(estimates)]
    if isinstance(known, KnownSparse):
        # Hard thresholding fills its support by design; pursuit drops what does not stand out.
        found += [_quiet(known), _rewards(known, settings), _contexts(known, settings)]
        found.append(_full(known, estimates, settings))
    else:
        found += [_unrelated(estimates), _at_the_bound(estimates, settings)]
    return Health(tuple(finding for finding in found if finding is not None))


def _cosine(one: SparseEstimate, other: SparseEstimate) -> float | None:
    """Return the cosine of two estimates, None if one is zero."""
    sizes = float(np.linalg.norm(one.values)) * float(np.linalg.norm(other.values))
    _, i, j = np.intersect1d(one.indices, other.indices, assume_unique=True, return_indices=True)
    return float(one.values[i] @ other.values[j]) / sizes if sizes > 0 else None


def _alternating(estimates: Sequence[SparseEstimate]) -> str | None:
    pairs = [_cosine(*pair) for pair in pairwise(estimates)]
    if sum(cosine is not None and cosine < _AGAINST for cosine in pairs) < _PAIRS:
        return None
    return (
        "estimates alternate: one points against the one before it. Contexts may be correlated or larger "
        "than context_scale says: use fit=Pursuit(), give a larger context_scale, or a smaller step_size"
    )


def _unrelated(estimates: Sequence[SparseEstimate]) -> str | None:
    pairs = pairwise(estimates)
    apart = sum(len(np.intersect1d(one.indices, other.indices)) == 0 for one, other in pairs)
    if apart < _PAIRS:
        return None
    return (
        "picks do not stand out: estimates in a row have no column in common. Check reward_scale and "
        "context_scale, take the mean out of rewards (fit=Pursuit() does), or use more rounds or epsilon"
    )


def _at_the_bound(estimates: Sequence[SparseEstimate], settings: Settings) -> str | None:
    if not all(np.abs(one.values).sum() >= 0.98 * settings.l1_radius for one in estimates[-_PAIRS:]):
        return None
    return (
        f"estimates are as large as l1_radius = {settings.l1_radius:g} allows: rewards are larger, or "
        f"contexts smaller, than their scales say. Give a larger reward_scale or a smaller context_scale"
    )


def _deviations(known: KnownSparse) -> npt.NDArray[np.float64]:
    """Return how many of its standard deviations each coefficient is from 0."""
    variances = np.maximum(np.diag(known.covariance)[1:], np.finfo(np.float64).tiny)
    return np.abs(known.theta[1:]) / np.sqrt(variances)


def _quiet(known: KnownSparse) -> str | None:
    # A pick of noise may stand out by chance; what is there goes on to do so.
    if known.fits < _FITS or (_deviations(known) > _STANDS_OUT).any():
        return None
    return (
        f"picks do not stand out: after {known.fits} fits no column is {_STANDS_OUT:g} standard deviations "
        f"from 0. Check reward_scale and context_scale, try reward_scale='estimate', or plan with more "
        f"rounds or epsilon"
    )


def _rewards(known: KnownSparse, settings: Settings) -> str | None:
    if settings.pilot or known.residual_size < _SCALE * settings.reward_scale:
        return None
    return (
        f"what is left of rewards is {known.residual_size:.2g}, and reward_scale is "
        f"{settings.reward_scale:g}: use intercept=True, a larger reward_scale, or reward_scale='estimate'"
    )


def _contexts(known: KnownSparse, settings: Settings) -> str | None:
    ratio = known.context_size / settings.context_scale
    if 1 / _SCALE < ratio < _SCALE:
        return None
    return (
        f"columns are about {known.context_size:.2g} large, and context_scale is {settings.context_scale:g}: "
        f"give it as {known.context_size:.2g}, or column_scales if units differ"
    )


def _full(known: KnownSparse, estimates: Sequence[SparseEstimate], settings: Settings) -> str | None:
    if settings.sparsity >= settings.dim or any(len(one.indices) < settings.sparsity for one in estimates):
        return None
    # Columns that hardly matter fill what is left of the support without harm.
    if np.quantile(_deviations(known), 0.2) < _STANDS_OUT:
        return None
    return (
        f"the support is always full: more than sparsity = {settings.sparsity} columns may matter. Give a "
        f"larger sparsity"
    )
