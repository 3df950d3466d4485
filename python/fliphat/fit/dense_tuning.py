"""The constants of the dense fit. Public, and kept with a policy: see :mod:`fliphat.fit.kept_tuning`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["UNRECORDED_DENSE", "DenseTuning"]


@dataclass(frozen=True, kw_only=True)
class DenseTuning:
    """Every constant of the rule. Shares are shares of the squared size of an episode's Gaussian vector.

    They were chosen on made tables; see ``docs/reproduction.md``. No claim of privacy depends on them: an
    episode's plan can't be made unless its vector is at most as large as the one that was priced.

    Attributes
    ----------
    first, rounds_an_arm : int, float
        The first episode's length: at least this many rounds, and this many over mu for each arm.
    ball : float
        Radius of the ball in units of the norm of a row whose columns are all of size 1: longer rows are cut,
        and less noise protects the others.
    prior, intercept_prior : float
        Standard deviation of a reward that is foreseen before anything is known, from all columns together,
        and from the constant.
    spread : float
        Variance of a reward given its context, at most.
    apart : float
        How wrong an arm's second moments may be that are not released but played in public.
    foreseen_apart : float
        The same, beside second moments that are released: the error that is asked for there is of single
        entries.
    moment_share, moment_noise : float
        Share of the budget that second moments get where they can be seen: noise below that of columns of
        size 1.
    each_share, each_noise : float
        Share of second moments that are released for each arm, and the noise in them up to which they are.
    smallest_variance : float
    column_share, column_noise : float
        Share of the budget that means and sizes of columns get, until the noise in their means is below this.
    floor : float
        Smallest eigenvalue of the columns' correlations.
    mean_prior : float
        Variance of a column's mean that is foreseen before anything is known.
    simulated : int
        Contexts that an episode is played again with, in public.
    """

    first: int = 30
    rounds_an_arm: float = 20.0
    ball: float = 0.7
    prior: float = 1.6
    intercept_prior: float = 0.5
    spread: float = 0.25
    apart: float = 0.05
    foreseen_apart: float = 0.2
    moment_share: float = 0.25
    moment_noise: float = 0.12
    each_share: float = 0.3
    each_noise: float = 0.1
    smallest_variance: float = 0.05
    column_share: float = 0.3
    column_noise: float = 0.2
    floor: float = 0.01
    mean_prior: float = 0.25
    simulated: int = 2048


#: Those of stores that were made before constants were recorded. These must never change.
UNRECORDED_DENSE: Final = DenseTuning(
    first=30,
    rounds_an_arm=20.0,
    ball=0.7,
    prior=1.6,
    intercept_prior=0.5,
    spread=0.25,
    apart=0.05,
    foreseen_apart=0.2,
    moment_share=0.25,
    moment_noise=0.12,
    each_share=0.3,
    each_noise=0.1,
    smallest_variance=0.05,
    column_share=0.3,
    column_noise=0.2,
    floor=0.01,
    mean_prior=0.25,
    simulated=2048,
)
