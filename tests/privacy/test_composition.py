"""The exact price of releases: closed forms, other accountants, adversaries that try, and mistakes that must fail."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats
from scipy.special import erfcx

from fliphat import kernels, reference
from fliphat.privacy import composition
from fliphat.privacy.composition import Gaussian, Pick, delta, epsilon, largest_factor
from fliphat.privacy.conversion import rho_from_epsilon


def one_pick(eps, eta):
    """delta of the worst mechanism of range eta; epsilon may be negative."""
    eps = np.asarray(eps, float)
    above = (math.exp(eta / 2) - np.exp(np.clip(eps, 0, eta) / 2)) ** 2 / math.expm1(eta)
    below = -np.expm1(np.minimum(eps, 0)) + np.expm1((eta + np.clip(eps, -eta, 0)) / 2) ** 2 / math.expm1(eta)
    return np.where(eps >= 0, above, below)


def one_gaussian(eps, mu):
    return stats.norm.cdf(mu / 2 - eps / mu) - np.exp(eps + stats.norm.logcdf(-eps / mu - mu / 2))


def chances(t, eta):
    """Probability of the larger loss of the two-point mechanism with losses t and t - eta."""
    return (math.exp(eta) - np.exp(t)) / math.expm1(eta)


def best_adversary(eps, etas, end=None, points=400):
    """Value of the best strategy whose choices lie on a fine grid: an adversary that can really be played."""
    if end is None:
        *etas, last = etas

        def end(at):
            return one_pick(at, last)

    if not etas:
        return end(np.asarray(eps))
    t = np.linspace(0, etas[0], points if len(etas) == 1 else 60)
    eps = np.asarray(eps, float)[..., None]
    p = chances(t, etas[0])
    high = best_adversary(eps - t, etas[1:], end, points)
    low = best_adversary(eps - t + etas[0], etas[1:], end, points)
    return (p * high + (1 - p) * low).max(-1)


class TestClosedForms:
    @pytest.mark.parametrize("eta", [0.01, 0.3, 2.0, 20.0])
    @pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
    def test_one_pick(self, eta, share):
        bound, exact = delta(share * eta, [Pick(eta)]), one_pick(share * eta, eta)
        assert exact * (1 - 1e-13) <= bound <= exact * (1 + 1e-10)

    @pytest.mark.parametrize("mu", [0.01, 0.5, 3.0, 12.0])
    @pytest.mark.parametrize("eps", [0.0, 0.1, 1.0, 8.0])
    def test_one_gaussian(self, mu, eps):
        bound, exact = delta(eps, [Gaussian(mu)]), one_gaussian(eps, mu)
        if exact > 1e-290:
            assert exact * (1 - 1e-10) <= bound <= exact * (1 + 1e-8)

    @pytest.mark.parametrize("eps", [0.2, 1.0, 4.0])
    def test_gaussians_compose_to_one(self, eps):
        parts = [0.3, 0.5, 0.2, 0.7]
        whole = one_gaussian(eps, math.hypot(*parts))
        bound = delta(eps, [Gaussian(mu) for mu in parts])
        assert whole <= bound <= whole * 1.02

    def test_nothing_costs_nothing_and_pure_is_pure(self):
        assert delta(0.0, []) == delta(0.5, [Pick(0.0), Gaussian(0.0)]) == 0
        assert delta(1.2, [Pick(0.3)] * 4) == 0
        assert delta(1.2 - 1e-6, [Pick(0.3)] * 4) > 0


@pytest.mark.parametrize("eps", [0.3, 1.0, 3.0])
def test_agrees_with_dp_accounting_and_is_never_below(eps):
    from dp_accounting.pld import privacy_loss_distribution as pld

    mu = 0.4
    other = pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4).self_compose(5)
    bound = delta(eps, [Gaussian(mu)] * 5)
    optimistic = pld.from_gaussian_mechanism(
        1 / mu, value_discretization_interval=1e-4, pessimistic_estimate=False
    ).self_compose(5)
    assert optimistic.get_delta_for_epsilon(eps) <= bound <= other.get_delta_for_epsilon(eps) * 1.02


@pytest.mark.parametrize(
    ("count", "half", "eps"), [(4, 0.3, 0.5), (10, 0.1, 0.3), (3, 1.0, 1.0), (30, 0.05, 0.2)]
)
def test_never_below_randomised_responses_of_half_the_range(count, half, eps):
    heads = np.arange(count + 1)
    p = math.exp(half) / (1 + math.exp(half))
    losses = (2 * heads - count) * half
    played = (stats.binom.pmf(heads, count, p) * np.maximum(0, -np.expm1(eps - losses))).sum()
    assert delta(eps, [Pick(2 * half)] * count) > played


def test_the_known_case_is_larger_than_randomised_response():
    assert delta(0.5, [Pick(0.6)] * 4) == pytest.approx(0.0980, abs=2e-4)  # against .0858


class TestAdversaries:
    @pytest.mark.parametrize(
        ("eps", "etas", "mu"),
        [
            (0.5, (0.6, 0.6), 0),
            (0.5, (0.6,) * 3, 0),
            (1.0, (0.47, 0.47), 0.37),
            (0.4, (0.3, 0.8, 0.5), 0),
            (2.0, (1.5, 0.9), 1.0),
        ],
    )
    def test_the_best_one_attains_the_bound_within_a_percent(self, eps, etas, mu):
        end = (lambda at: one_gaussian(at, mu)) if mu else None
        played = float(best_adversary(eps, list(etas), end))
        bound = delta(eps, [Pick(eta) for eta in etas] + [Gaussian(mu)])
        assert played <= bound <= 1.01 * played

    def test_random_ones_never_beat_it(self):
        rng = np.random.default_rng(5)
        eta, depth, eps = 0.6, 4, 0.5
        bound = delta(eps, [Pick(eta)] * depth)
        played = []
        for _ in range(3000):
            # A choice for every history: row k of the tree has 2^k of them. Half of them near the optimum.
            losses, probability = np.zeros(1), np.ones(1)
            for _ in range(depth):
                t = eta * rng.beta(*rng.choice([(1, 1), (20, 12), (30, 30)]), size=len(losses))
                p = chances(t, eta)
                losses = np.concatenate([losses + t, losses + t - eta])
                probability = np.concatenate([probability * p, probability * (1 - p)])
            assert probability.sum() == pytest.approx(1)
            played.append((probability * np.maximum(0, -np.expm1(eps - losses))).sum())
        assert max(played) <= bound
        assert max(played) > 0.8 * bound  # they do try

    def test_mixtures_of_ratios_in_the_range_never_beat_two_points(self):
        rng = np.random.default_rng(6)
        eta, eps = 0.8, 0.2
        bound = delta(eps, [Pick(eta), Pick(eta)])
        for _ in range(2000):
            # A mechanism with many outcomes: ratios in a window of width eta that has mean one.
            low = -eta * rng.random()
            ratios = np.exp(low + eta * rng.random(6))
            ratios[:2] = np.exp(low), np.exp(low + eta)
            weights = rng.dirichlet(np.ones(6) * 0.5)
            above = ratios > 1
            mean_high, mean_low = (weights[side] @ ratios[side] for side in (above, ~above))
            mass_high, mass_low = weights[above].sum(), weights[~above].sum()
            share = (1 - mean_low / mass_low) / (mean_high / mass_high - mean_low / mass_low)
            weights = np.where(above, weights / mass_high * share, weights / mass_low * (1 - share))
            assert weights @ ratios == pytest.approx(1)
            assert weights @ one_pick(eps + np.log(ratios), eta) <= bound


class TestShape:
    EVENTS = (Pick(0.4), Gaussian(0.3), Pick(0.25), Pick(0.4), Gaussian(0.2))

    def test_finer_cells_bring_it_closer_from_above(self):
        bounds = [delta(0.8, self.EVENTS, cells=cells) for cells in (2, 4, 8, 16, 32, 64, 128)]
        assert all(coarse >= fine for coarse, fine in itertools.pairwise(bounds))
        assert bounds[4] <= bounds[-1] * 1.01
        gaps = [bound - bounds[-1] for bound in bounds[1:5]]
        assert all(2.5 < coarse / fine < 6 for coarse, fine in itertools.pairwise(gaps))  # second order

    @settings(max_examples=30)
    @given(
        st.lists(st.tuples(st.booleans(), st.floats(0.05, 0.8)), min_size=1, max_size=5),
        st.floats(0, 2),
        st.floats(1.02, 1.5),
        st.data(),
    )
    def test_monotone_in_every_argument(self, parts, eps, factor, data):
        events = [Pick(size) if pick else Gaussian(size) for pick, size in parts]
        slack = 1 + 1e-3

        def price(eps, events):
            return max(delta(eps, events), composition.SMALLEST_DELTA)

        bound = price(eps, events)
        assert price(eps * factor + 0.01, events) <= bound * slack
        grown = list(events)
        place = data.draw(st.integers(0, len(events) - 1))
        grown[place] = grown[place].scaled(factor)
        assert price(eps, grown) * slack >= bound
        assert price(eps, [*events, Pick(0.2)]) * slack >= bound
        assert price(eps, [Gaussian(0.1), *events]) * slack >= bound

    @settings(max_examples=25)
    @given(
        st.lists(
            st.tuples(st.sampled_from(["pick", "gaussian"]), st.floats(0.02, 0.9)), min_size=1, max_size=4
        ),
        st.floats(0, 2),
        st.integers(1, 2),
    )
    def test_the_kernel_is_its_twin_plus_the_error_bound(self, events, eps, users):
        options = {"step": 0.05, "below": 120, "above": 150, "users": users}
        kernel = kernels.price(eps, [events], **options)
        twin = reference.price(eps, [events], **options)
        assert twin * (1 - 1e-7) - 1e-13 <= kernel <= twin * (1 + 1e-7) + 1e-13

    @pytest.mark.parametrize("above", [1, 4, 12])
    def test_a_grid_that_ends_early_makes_the_price_larger_and_never_smaller(self, above):
        for events in (
            [("pick", 0.5)] * 4,
            [("gaussian", 0.4), ("pick", 0.5)],
            [("pick", 0.5), ("gaussian", 0.4)] * 2,
        ):
            wide = kernels.price(0.3, [events], step=0.05, below=200, above=300)
            assert kernels.price(0.3, [events], step=0.05, below=200, above=above) >= wide * (1 - 1e-9)

    def test_the_gap_to_finer_grids_is_small_in_noise(self):
        for count, share in ((2, 0.6), (10, 0.8)):
            events = shares(count, share)
            assert largest_factor(1.0, 0.01, events, cells=128) <= 1.002 * largest_factor(1.0, 0.01, events)


def shares(count, share, iterations=1):
    one = [Pick(2 * math.sqrt(share / count / iterations))] * count + [
        Gaussian(math.sqrt((1 - share) / iterations))
    ]
    return one * iterations


class TestSearch:
    @pytest.mark.parametrize(
        ("eps", "least"), [(0.5, (1.19, 1.18)), (1.0, (1.19, 1.14)), (10.0, (1.22, 1.10))]
    )
    def test_less_noise_than_zcdp(self, eps, least):
        zcdp = math.sqrt(2 * rho_from_epsilon(eps, 0.01))
        assert largest_factor(eps, 0.01, shares(1, 0.6)) >= least[0] * zcdp
        assert largest_factor(eps, 0.01, shares(10, 0.8)) >= least[1] * zcdp
        small = math.sqrt(2 * rho_from_epsilon(eps, 1e-6))
        assert largest_factor(eps, 1e-6, shares(10, 0.8)) >= 1.07 * small

    @pytest.mark.parametrize("target", [0.3, 1e-3, 1e-9])
    @pytest.mark.parametrize("eps", [0.0, 0.7, 5.0, 40.0])
    def test_the_factor_is_safe_and_nearly_the_largest(self, eps, target):
        events = shares(3, 0.7)
        factor = largest_factor(eps, target, events)
        assert delta(eps, [event.scaled(factor) for event in events]) <= target
        assert delta(eps, [event.scaled(factor * 1.0005) for event in events]) > target

    @pytest.mark.parametrize("target", [0.3, 1e-3, 1e-9])
    def test_epsilon_is_safe_and_nearly_the_smallest(self, target):
        events = [Pick(0.5), Gaussian(0.4), Pick(0.5)]
        found = epsilon(target, events)
        assert delta(found, events) <= target
        if found:
            assert delta(found - 1e-3, events) > target

    def test_epsilon_is_zero_when_delta_is_large(self):
        assert epsilon(0.5, [Pick(0.1)]) == 0

    def test_a_price_is_computed_once(self):
        events = [Pick(0.123)] * 7
        before = composition._delta.cache_info()
        delta(0.5, events), delta(0.5, events)
        after = composition._delta.cache_info()
        assert (after.misses - before.misses, after.hits - before.hits) == (1, 1)


class TestSmallDeltas:
    SEQUENCES = (
        (0.3,) * 3,
        (0.05,) * 20,
        (1.0, 0.2),
        (2.0, 2.0),
        (0.01, 3.0),
        (3.0, 0.01),
        (0.1,) * 40,
    )

    @pytest.mark.parametrize("target", [1e-6, 1e-14, 1e-22, composition.SMALLEST_DELTA])
    @pytest.mark.parametrize("mus", SEQUENCES)
    def test_bounds_are_close_to_closed_forms_down_to_the_smallest(self, target, mus):
        # Gaussians in a row cost what one does. Its delta by a series that loses no digit far out.
        mu = math.sqrt(sum(size * size for size in mus))

        def exact(eps):
            z, beyond = eps / mu - mu / 2, eps / mu + mu / 2
            density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
            return density * math.sqrt(math.pi / 2) * (erfcx(z / 2**0.5) - erfcx(beyond / 2**0.5))

        eps = optimize.brentq(lambda eps: math.log(exact(eps) / target), mu * mu / 2, mu * mu / 2 + 20 * mu)
        bound = delta(eps, [Gaussian(size) for size in mus])
        assert (1 - 1e-6) * target <= bound <= 1.08 * target

    @pytest.mark.parametrize("target", [composition.SMALLEST_DELTA, 1e-26, 1e-20])
    def test_searches_end_for_every_kind_of_event(self, target):
        for events in ([Gaussian(0.3)] * 3, [Pick(0.2)] * 10 + [Gaussian(0.4)], [Gaussian(1.0), Pick(0.5)]):
            factor, found = largest_factor(1.0, target, events), epsilon(target, events)
            assert delta(1.0, [event.scaled(factor) for event in events]) <= target
            assert delta(found, events) <= target < delta(0.98 * found, events)


class TestUsers:
    FIT = (Pick(0.4), Pick(0.4), Gaussian(0.4))

    @pytest.mark.parametrize("users", [2, 3, 5])
    def test_all_rows_in_one_fit_is_the_worst(self, users):
        together = delta(1.0, self.FIT)
        assert together <= delta(1.0, self.FIT, users=users) <= together * 1.01

    def test_a_fit_beside_a_pure_one_is_priced_as_well(self):
        # Alone the first one costs no delta at all at this epsilon.
        assert delta(1.0, [Pick(0.5)], users=2) == 0
        other = [Gaussian(1.0)]
        assert delta(1.0, [Pick(0.5)], beside=[other], users=2) >= delta(1.0, other) > 0.1
        assert delta(1.0, other, beside=[[Pick(0.5)]], users=2) >= delta(1.0, other)

    def test_a_menu_costs_at_least_its_dearest_fit(self):
        other = (Gaussian(0.3), Pick(0.8))
        alone = max(delta(1.0, self.FIT), delta(1.0, other))
        menu = delta(1.0, self.FIT, beside=[other], users=3)
        assert alone * (1 - 1e-2) <= menu <= alone * 1.05

    def test_it_covers_fits_one_after_the_other(self):
        # Two rows in two fits, one after the other, each half as large: a strategy of the game.
        halves = [event.scaled(0.5) for event in self.FIT]
        assert delta(0.3, halves * 2) <= delta(0.3, self.FIT, users=2) * (1 + 1e-3)


class TestControls:
    """Each mistake gives a number below what some adversary really reaches."""

    EPS, ETAS = 0.5, (0.6, 0.6, 0.6)

    @property
    def played(self):
        return float(best_adversary(self.EPS, list(self.ETAS)))

    def test_half_the_range_of_a_pick(self):
        assert delta(self.EPS, [Pick(eta / 2) for eta in self.ETAS]) < self.played

    def test_a_gaussian_with_sensitivity_divided(self):
        assert delta(1.0, [Gaussian(0.5 / 1.2)]) < one_gaussian(1.0, 0.5)
        played = float(best_adversary(1.0, [0.47], lambda at: one_gaussian(at, 0.5)))
        assert delta(1.0, [Pick(0.47), Gaussian(0.5 / 1.2)]) < played

    def test_permute_and_flip_charged_as_bounded_range(self):
        # Two candidates, scores 0 apart against 2L apart: the loser wins with e^-eta/2 or 1/2.
        eta, count, eps = 0.5, 20, 1.0
        p, q = 0.5, math.exp(-eta) / 2
        wins = np.arange(count + 1)
        losses = wins * math.log(p / q) + (count - wins) * math.log((1 - p) / (1 - q))
        played = (stats.binom.pmf(wins, count, p) * np.maximum(0, -np.expm1(eps - losses))).sum()
        spread = math.log(p / q) - math.log((1 - p) / (1 - q))
        assert spread > 1.5 * eta
        assert delta(eps, [Pick(eta)] * count) < played < delta(eps, [Pick(spread)] * count)

    def test_the_order_reversed(self):
        # After a Gaussian the adversary picks knowing the loss: its exact value is an integral.
        eps, eta, mu = 1.0, 0.94, 0.37
        value = integrate.quad(
            lambda z: stats.norm.pdf(z) * float(one_pick(eps - mu * mu / 2 - mu * z, eta)),
            -9,
            9,
            points=[0],
            limit=200,
        )[0]
        assert delta(eps, [Pick(eta), Gaussian(mu)]) < 0.97 * value
        assert value <= delta(eps, [Gaussian(mu), Pick(eta)]) <= 1.003 * value

    def test_picks_first_would_undercharge_a_fit_of_several_iterations(self):
        fit = shares(2, 0.6, iterations=3)
        picks_first = sorted(fit, key=lambda event: isinstance(event, Gaussian))
        assert delta(1.0, [event.scaled(0.5) for event in picks_first]) < 0.99 * delta(
            1.0, [event.scaled(0.5) for event in fit]
        )

    def test_interpolation_in_the_loss(self):
        # Chords in l cut below 1 - exp(epsilon - l), which is concave in l; the same step in exp(-l) is safe.
        eps, eta, step = 0.0, 1.5, 1.0
        losses = step * np.arange(-20, 21)
        value = one_pick(eps - losses, eta)
        t = np.linspace(0, eta, 301)[:, None]
        p = chances(t, eta)
        for _ in range(2):
            high, low = np.interp(losses + t, losses, value), np.interp(losses + t - eta, losses, value)
            value = (p * high + (1 - p) * low).max(0)
        played = float(best_adversary(eps, [eta] * 3))
        assert value[20] < 0.996 * played
        assert kernels.price(eps, [[("pick", eta)] * 3], step=0.5, below=40, above=40) >= played

    def test_the_adversarys_choice_on_a_grid(self):
        # With five choices of t, as a grid over t would have it, the game is worth less than what can be played.
        def coarse(eps, etas):
            if len(etas) == 1:
                t = np.linspace(0, etas[0], 5)
                return (chances(t, etas[0]) * np.maximum(0, -np.expm1(np.asarray(eps)[..., None] - t))).max(
                    -1
                )
            t = np.linspace(0, etas[0], 5)
            eps = np.asarray(eps, float)[..., None]
            p = chances(t, etas[0])
            return (p * coarse(eps - t, etas[1:]) + (1 - p) * coarse(eps - t + etas[0], etas[1:])).max(-1)

        assert (
            float(coarse(self.EPS, self.ETAS))
            < 0.995 * self.played
            <= delta(self.EPS, [Pick(e) for e in self.ETAS])
        )


class TestRefusals:
    @pytest.mark.parametrize("size", [-0.1, math.nan, math.inf, 301])
    def test_sizes(self, size):
        with pytest.raises(ValueError, match="eta must be a number from 0 to 300"):
            Pick(size)
        with pytest.raises(ValueError, match="mu must be a number from 0 to 300"):
            Gaussian(size)

    @pytest.mark.parametrize("target", [0, 1, -0.5, math.nan, 9e-29, 5e-324])
    def test_delta(self, target):
        for search in (lambda: epsilon(target, [Pick(1)]), lambda: largest_factor(1.0, target, [Pick(1)])):
            with pytest.raises(ValueError, match="delta must be at least 1e-28 and below 1 to have an exact"):
                search()

    @pytest.mark.parametrize("eps", [-1, math.nan, math.inf])
    def test_epsilon(self, eps):
        with pytest.raises(ValueError, match="epsilon must be a finite number of at least 0"):
            delta(eps, [Pick(1)])

    def test_events(self):
        with pytest.raises(TypeError, match="events must be Pick or Gaussian, got float"):
            delta(1.0, [0.5])
        with pytest.raises(ValueError, match="at least one that is larger than 0"):
            largest_factor(1.0, 0.01, [Pick(0.0)])

    def test_a_million_picks_are_refused_at_once(self):
        with pytest.raises(ValueError, match="events must be at most 20000, got 1000000"):
            delta(1.0, [Pick(0.001)] * 10**6)

    def test_work_beyond_the_limit_is_refused(self):
        with pytest.raises(ValueError, match="events must be fewer to be priced: 20000 of them"):
            delta(1.0, [Pick(0.005)] * 20_000)

    def test_two_thousand_picks_are_priced_and_cost_less_than_zcdp(self):
        events = [Pick(0.02)] * 2000
        rho = float(composition.zcdp(events))
        from fliphat.privacy.conversion import delta_from_rho

        assert delta(1.0, events, cells=4) < delta_from_rho(rho, 1.0)
