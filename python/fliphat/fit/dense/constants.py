"""The constants of the dense fit. Public, and kept with a policy (`read_constants` of the settings)."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["DenseTuning"]


@dataclass(frozen=True, kw_only=True)
class DenseTuning:
    """Every constant of the rule. Shares are shares of the squared size of an episode's Gaussian vector.

    They were chosen on made tables; see ``docs/reproduction.md``. No claim of privacy depends on them: an
    episode's plan can't be made unless its vector is at most as large as the one that was priced.

    Attributes
    ----------
    first, rounds_an_arm : int, float
        The first episode's length: at least this many rounds, and this many over mu for each arm.
    first_ball, ball : float
        Radius of the ball, before and after sizes of columns are known, in units of the norm that a row has
        in the mean: longer rows are cut, and less noise protects the others.
    column_share, column_noise : float
        Share that means and sizes of columns get, until the noise in their means is below this, in units of
        a column.
    moment_share, square_share, moment_noise : float
        Shares of second moments and of each arm's squares, from when on the noise in an entry is below this.
    square_ball, square_prior : float
        Radius of the ball of squares in units of that of even rows; how far an arm's variance of a column is
        from that of all arms.
    power : float
        How far columns are brought to one size: 0 leaves them, 1 makes them alike.
    upper : float
        Standard deviations that are added to a size that is not well known: too large cuts nothing.
    common_upper : float
        The same for the size that columns have in common.
    smallest_size, floor : float
        Smallest variance of a column, and smallest eigenvalue of the columns' covariance.
    prior, prior_spread, prior_more : float
        Standard deviation of a reward that is foreseen from all columns together, at most; how far a smaller
        one is from it, in logarithms, which weighs against what was released; and what the likeliest variance
        is multiplied with: arms are chosen by coefficients, and too small ones leave it to arms' means.
    intercept_prior : float
        Variance of arms' mean rewards, at least.
    level_width : float
        How much further apart, in posterior deviations, draws of arms' mean rewards are than those of
        coefficients: an arm that looked bad in a short first episode must be tried again.
    least_spread, spread : float
        Variance of an arm's rewards, at least and at most.
    apart : float
        Error of an entry of the columns' covariance before it is released.
    second_discount, third_discount, fourth_discount : float
        What the first totals keep of the one before, at most; later ones keep one over the growth.
    stale : float
        Squared norm of rows' mean, over that of the longest row, beyond which the map is learned again.
    pick_share, picks : float
        Where the support grows: share of the whole budget that picks get, and how many there are of each
        column that it may have.
    least_evidence : float
        Deviations of what noise alone shows by which a column must stand out to stay.
    support_moments : float
        Share of second moments of the public columns.
    """

    first: int = 30
    rounds_an_arm: float = 12.0
    first_ball: float = 0.7
    ball: float = 0.8
    column_share: float = 0.3
    column_noise: float = 0.2
    moment_share: float = 0.1875
    square_share: float = 0.1125
    moment_noise: float = 0.03
    square_ball: float = 3.5
    square_prior: float = 0.5
    power: float = 0.5
    upper: float = 1.0
    common_upper: float = 0.5
    smallest_size: float = 0.02
    floor: float = 0.01
    prior: float = 1.5
    prior_spread: float = 0.5
    prior_more: float = 4.0
    intercept_prior: float = 0.01
    level_width: float = 7.0
    least_spread: float = 0.02
    spread: float = 0.25
    apart: float = 0.05
    second_discount: float = 0.5
    third_discount: float = 0.65
    fourth_discount: float = 0.75
    stale: float = 0.2
    pick_share: float = 0.5
    picks: float = 0.3
    least_evidence: float = 1.0
    support_moments: float = 0.2

    @classmethod
    def of(cls, dim: int) -> DenseTuning:
        """Return the constants for so many columns: few of them get smaller shares beside arms' rewards."""
        usual, part = cls(), min(1.0, dim / 8)
        return replace(
            usual,
            column_share=max(usual.column_share * part, 0.1),
            moment_share=usual.moment_share * part,
            square_share=usual.square_share * part,
        )
