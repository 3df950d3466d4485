"""Exact probabilities of the samplers, and the checks that hold draws to them.

Every check returns a p-value or a verdict, so that a test can also show what it rejects.
"""

import itertools
import math

import numpy as np
from scipy import special, stats

from fliphat import _native

ALPHA = 1e-6
"""Streams are fixed, so a test never flickers; this is how surprising a stream would have to be."""


def draw(sampler, scale, count, seed=1, **options):
    out = np.empty(count, np.int64)
    _native.seeded_draw(out, sampler, scale, seed, **options)
    return out


class Laplace:
    """P(Z = z) proportional to exp(-|z|/scale)."""

    def __init__(self, scale):
        self.scale = scale

    def at_least(self, k):
        """P(Z >= k), for integers k of either sign."""
        k = np.asarray(k, float)
        ratio = math.exp(-1 / self.scale)
        tail = np.exp(-np.abs(np.where(k > 0, k, k - 1)) / self.scale) / (1 + ratio)
        return np.where(k > 0, tail, 1 - tail)

    def quantile(self, q):
        return np.rint(stats.laplace.ppf(q, scale=self.scale))

    def mean_magnitude(self):
        return 1 / math.sinh(1 / self.scale)


class Gaussian:
    """P(Z = z) proportional to exp(-z^2 / (2 scale^2))."""

    def __init__(self, scale):
        self.scale = scale
        if scale < 5000:
            self.reach = 40 * scale + 10
            weights = np.exp(-(np.arange(-self.reach, self.reach + 1.0) ** 2) / (2 * scale**2))
            self.tails = np.append(np.cumsum(weights[::-1])[::-1] / weights.sum(), 0)

    def at_least(self, k):
        k = np.asarray(k)
        if self.scale < 5000:
            return self.tails[np.clip(k, -self.reach, self.reach + 1).astype(int) + self.reach]
        # The midpoint rule is off by less than 1/(24 scale^2): 2e-9.
        return special.ndtr(-(k - 0.5) / self.scale)

    def quantile(self, q):
        return np.rint(stats.norm.ppf(q, scale=self.scale))

    def mean_magnitude(self):
        if self.scale < 5000:
            return 2 * self.tails[self.reach + 1 :].sum()
        return self.scale * math.sqrt(2 / math.pi)


class RoundedGaussian:
    """P(Z = z) = P(z - 1/2 < N(0, scale^2) < z + 1/2)."""

    def __init__(self, scale):
        self.scale = scale

    def at_least(self, k):
        return special.ndtr(-(np.asarray(k, float) - 0.5) / self.scale)

    def quantile(self, q):
        return np.rint(stats.norm.ppf(q, scale=self.scale))

    def mean_magnitude(self):
        return (
            2 * self.at_least(np.arange(1, 40 * self.scale)).sum()
            if self.scale < 5000
            else self.scale * math.sqrt(2 / math.pi)
        )


def goodness(draws, law, bins=24):
    """P-value of a chi-square test over intervals of about equal probability, tails apart."""
    n = len(draws)
    inner = np.linspace(0, 1, bins + 1)[1:-1]
    edges = np.unique(law.quantile(np.concatenate([[50 / n], inner, [1 - 50 / n]])))
    expected = n * -np.diff(np.concatenate([[1.0], law.at_least(edges), [0.0]]))
    observed = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=len(edges) + 1)
    kept = expected > 5
    chi_square = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    return stats.chi2.sf(chi_square, kept.sum() - 1)


def largest_is_plausible(draws, law):
    """Whether the largest magnitude is where that of so many exact draws would be."""
    largest = int(np.abs(draws).max())
    log_below = len(draws) * np.log1p(-2 * law.at_least(largest))
    log_at_most = len(draws) * np.log1p(-2 * law.at_least(largest + 1))
    return np.exp(log_at_most) > ALPHA and -np.expm1(log_below) > ALPHA


def sign_z_score(draws):
    positive, negative = (draws > 0).sum(), (draws < 0).sum()
    return (positive - negative) / math.sqrt(max(positive + negative, 1))


def zero_z_score(draws, law):
    chance = float(law.at_least(0) - law.at_least(1))
    return ((draws == 0).sum() - len(draws) * chance) / math.sqrt(len(draws) * chance * (1 - chance) + 1e-12)


def residues_goodness(draws, modulus=16):
    """P-value that the low bits are uniform: what intervals can't see when the scale is large."""
    return stats.chisquare(np.bincount(draws % modulus, minlength=modulus)).pvalue


def ordered_picks(v, s, pick_chances):
    """Exact probability of each ordered tuple of s picks; ``pick_chances(magnitudes)`` gives one round's."""
    chances = {}
    for picks in itertools.permutations(range(len(v)), s):
        chance, remaining = 1.0, list(range(len(v)))
        for pick in picks:
            chance *= pick_chances([abs(v[j]) for j in remaining])[remaining.index(pick)]
            remaining.remove(pick)
        chances[picks] = chance
    return chances


def exponential_chances(scale):
    def chances(magnitudes):
        weights = [math.exp((m - max(magnitudes)) / scale) for m in magnitudes]
        return [w / sum(weights) for w in weights]

    return chances


def noisy_max_chances(scale):
    """Report-noisy-max, ties to the lowest index: sums over the winner's total."""
    law = Laplace(scale)

    def chances(magnitudes):
        totals = np.arange(min(magnitudes) - 60 * scale, max(magnitudes) + 60 * scale + 1)
        result = []
        for j, m in enumerate(magnitudes):
            chance = law.at_least(totals - m) - law.at_least(totals - m + 1)
            for i, other in enumerate(magnitudes):
                if i != j:
                    loses_ties = i > j
                    chance = chance * (1 - law.at_least(totals - other + (1 if loses_ties else 0)))
            result.append(chance.sum())
        return result

    return chances


def picks_goodness(supports, chances):
    """P-value of a chi-square test over ordered tuples of picks, rare ones pooled."""
    places = 10 ** np.arange(supports.shape[1])
    counts = np.bincount(supports @ places)
    seen = {picks: counts[code] for picks in chances if (code := np.dot(picks, places)) < len(counts)}
    assert sum(seen.values()) == len(supports), "something was picked that can't be"
    expected = np.array(list(chances.values())) * len(supports)
    observed = np.array([seen.get(picks, 0) for picks in chances])
    rare = expected < 10
    pooled_expected = np.append(expected[~rare], expected[rare].sum())
    pooled_observed = np.append(observed[~rare], observed[rare].sum())
    kept = pooled_expected > 1e-3
    chi_square = ((pooled_observed - pooled_expected)[kept] ** 2 / pooled_expected[kept]).sum()
    return stats.chi2.sf(chi_square, max(kept.sum() - 1, 1))
