"""Pursuit: its private sums, its noise, what it learns, and that no input stops it."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from flat_options import nested
from fliphat import FLIPHAT, Iht, Pursuit, _native
from fliphat.fit.pursuit.constants import RADIUS, at_once, click_tuning, tuning
from fliphat.fit.pursuit.fit import PilotPlan, PursuitFit, RowSums, release
from fliphat.fit.pursuit.known import KnownSparse
from fliphat.fit.pursuit.plan import PursuitPlan, centred, open_episode
from fliphat.fit.settings import Settings
from fliphat.kernels import second_moments
from fliphat.kernels._fits import noise_of
from fliphat.privacy.priced import Part, PickNoise, VectorNoise
from fliphat.regression.parts import PartsFit
from pursuit_question import question, sums

EXTREMES = (0.0, 1e-38, -1.0, 1.0, 3e38, -3e38)


def settings(**given: Any) -> Settings:
    return Settings.checked(**nested({"dim": 40, "sparsity": 4, "epsilon": 1.0, "delta": 0.01, **given}))


def some_rows(rng: np.random.Generator, n: int = 12, d: int = 6) -> np.ndarray:
    rows = (rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4)).astype(np.float32)
    for _ in range(3):
        rows[rng.integers(n), rng.integers(d)] = rng.choice(EXTREMES)
    return rows


def replaced(rng: np.random.Generator, rows: np.ndarray, other: np.ndarray) -> np.ndarray:
    changed = rows.copy()
    changed[rng.integers(len(rows))] = other[0]
    return changed


class TestSums:
    """Replacing one row moves each sum by no more than it says, dense or sparse."""

    @pytest.mark.parametrize("seed", range(30))
    def test_replacing_a_row(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        rows, i = some_rows(rng), int(rng.integers(12))
        rewards, present = rng.standard_normal(12) * 100, rng.random(12) < 0.9
        theta = np.array([0.3, 1.0, -2.0])
        columns, picked, whiten = np.array([1, 4]), np.array([2]), rng.standard_normal((4, 4))
        units = 10.0 ** rng.integers(-2, 3, 6)

        def all_sums(rows: np.ndarray, rewards: np.ndarray, present: np.ndarray) -> list[np.ndarray]:
            shift = np.array([0.1, 0.5, -0.2])
            given = {
                "columns": columns,
                "theta": theta,
                "pick_clip": 0.7,
                "value_clip": 0.7,
                "whiten": whiten,
            }
            bare = question(**given)
            public = question(**given, shift=shift, units=units, assumed=0.5, octaves=3.5)
            seen = rows, rewards, present
            vector = sums(public, "vector", *seen, picked, [-1])
            moments = np.zeros((4, 4))
            moments[np.triu_indices(4)] = vector[4:14]
            weights = np.where(np.eye(4, dtype=bool), 0.5, np.tri(4).T)
            noise = _native.RecordingNoise()
            grid, flags = 2.0 ** np.arange(-3, 8), np.asarray(present, bool).view(np.uint8)
            near = rewards, flags, grid, np.zeros(len(grid)), (np.sqrt(8.0), 10.0), (8, 1), (1, 1), noise
            _native.release_pilot(*near)
            return [
                sums(bare, "candidates", *seen),
                sums(public, "candidates", *seen),
                vector[:4],
                sums(public, "further", *seen, picked, [-1]),
                moments * np.sqrt(weights),
                vector[14],
                sums(public, "numbers", *seen),
                *(scores for _, scores, *_ in noise.calls),
            ]

        other_rows, other_rewards, other_present = rows.copy(), rewards.copy(), present.copy()
        other_rows[i] = some_rows(rng)[0]
        other_rewards[i], other_present[i] = rng.choice([1e300, -1e300, 0.0, 5.0]), rng.random() < 0.7
        before = all_sums(rows, rewards, present)
        after = all_sums(other_rows, other_rewards, other_present)
        # Second moments as their price counts them: above the diagonal, and half of the diagonal's square.
        assert ((before[4] - after[4]) ** 2).sum() <= RADIUS**4 * (1 + 1e-12)
        bounds = [2**16, 2**16, 2**16, 2**16, RADIUS**2, 2**15, np.array([2**16, 2**16, 2**15]), 1, 1]
        for one, two, bound in zip(before, after, bounds, strict=True):
            assert (np.abs(one - two) <= bound).all()

    def test_the_bounds_are_reached(self) -> None:
        rows, asked = np.ones((1, 2), np.float32), question(pick_clip=1.0, octaves=3.5)
        big = [sums(asked, "candidates", rows, [sign * 1e9]) for sign in (1, -1)]
        assert (big[0] - big[1] == 2**16).all()
        far = [sums(asked, "numbers", rows * size, [0.0])[0] for size in (1e6, 1e-6)]
        assert far[0] - far[1] == 2**16
        even = [sums(asked, "numbers", rows * sign, [0.0]) for sign in (1, -1)]
        assert even[0][1] - even[1][1] == 2**16
        assert even[0][2] == 2**15

    @pytest.mark.parametrize("seed", range(10))
    def test_sparse_rows_give_the_same_bits(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        rows = some_rows(rng)
        rows[rng.random(rows.shape) < 0.5] = 0
        rewards, present = rng.standard_normal(12), rng.random(12) < 0.9
        shift, units = rng.standard_normal(3), 10.0 ** rng.integers(-2, 3, 6)
        theta = rng.standard_normal(3)
        for given in ({}, {"shift": shift}, {"units": units}, {"shift": shift, "units": units}):
            asked = question([3, 0], theta, **given, assumed=0.4, octaves=3.5)
            for step in ("numbers", "candidates", "further", "vector"):
                of = rewards, present, [5], [1]
                assert (sums(asked, step, rows, *of) == sums(asked, step, csr_array(rows), *of)).all()


class TestFurtherPicks:
    """What a pick is likely to explain is taken off before the next one of the same episode."""

    @staticmethod
    def further(rows: Any, rewards: np.ndarray, **given: Any) -> np.ndarray:
        given = {"one": 0.5, "assumed": 0.3, "shift": np.array([0.1, -0.2]), **given}
        asked = question([2], [0.0, 0.0], picks=3, **given)
        return sums(asked, "further", rows, rewards, None, [4, 1], [1, -1])

    def test_rows_of_any_kind_and_order_give_the_same_bits(self) -> None:
        rng = np.random.default_rng(3)
        rows = rng.standard_normal((50, 6)).astype(np.float32) * (rng.random((50, 6)) < 0.6)
        rewards, units = rng.standard_normal(50), rng.random(6) + 0.5
        for given in ({}, {"units": units}, {"shift": None}):
            found = self.further(rows, rewards, **given)
            assert (found == self.further(csr_array(rows), rewards, **given)).all()
            assert (found == self.further(rows[::-1].copy(), rewards[::-1], **given)).all()

    def test_they_are_those_of_smaller_residuals(self) -> None:
        rng = np.random.default_rng(4)
        rows, rewards = rng.standard_normal((50, 6)), rng.standard_normal(50)
        # No more is taken off than at twice the typical value, 0.5.
        smaller = rewards - 0.6 * np.clip(rows[:, 4], -1, 1) + 0.6 * np.clip(rows[:, 1], -1, 1)
        products = (rows - (0.1 * 0.5 - 0.2 * rows[:, 2])[:, None]) * smaller[:, None]
        exact = np.clip(products / 0.7, -1, 1).sum(axis=0) * 2**15
        assert np.abs(self.further(rows, rewards) - exact).max() <= 50

    @pytest.mark.parametrize("follows", [True, False])
    def test_a_copy_of_a_pick_is_not_the_next(self, follows: bool) -> None:
        constants = tuning(2.8) if follows else at_once(tuning(2.8), 2.8)
        fit = PursuitFit(
            settings(sparsity=10, epsilon=10.0, reward_scale=1.2, first_episode=3000, seed=1),
            constants=constants,
        )
        rng, known = np.random.default_rng(0), fit.begin()
        rows = rng.standard_normal((3000, 40)).astype(np.float32)
        rows[:, 1] = rows[:, 0]
        plan = fit.plan(0, known)
        assert isinstance(plan, PursuitPlan)
        private = RowSums(rows, (rows[:, 0] - 0.7 * rows[:, 2]).astype(float), np.ones(3000, bool))
        first, second = release(plan, private, known, noise_of(1, 0)).columns[:2]
        assert first in (0, 1)
        assert second == (2 if follows else 1 - first)

    def test_regressions_and_clicks_pick_at_once(self) -> None:
        assert PartsFit(settings(), rows=5000).pursuit.given.tuning.pursued == 0
        assert click_tuning(0.5).pursued == 0 < tuning(0.5).pursued


class TestSecondMoments:
    """The Frobenius bound that the vector's price counts on, and what happens without it."""

    @staticmethod
    def moved(first: np.ndarray, second: np.ndarray) -> float:
        """How far replacing a row moves the moments, in units of off-diagonal noise of size 1."""
        apart = (first - second).astype(float)
        above = np.triu(apart, 1)
        return float((above**2).sum() + (np.diag(apart) ** 2).sum() / 2)

    def test_the_bound_is_tight(self) -> None:
        # Two unit vectors at right angles, turned so that all is off the diagonal.
        u, v = np.array([[1.0, 1.0]]) / math.sqrt(2), np.array([[1.0, -1.0]]) / math.sqrt(2)
        first, second = (second_moments(row, radius=RADIUS, scale=1e6) for row in (u, v))
        assert 0.99 * RADIUS**4 < self.moved(first, second) <= RADIUS**4

    @pytest.mark.parametrize("seed", range(20))
    def test_never_beyond(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        rows = rng.standard_normal((2, 4)) * 10.0 ** rng.integers(-3, 30)
        first, second = (second_moments(row[None], radius=RADIUS, scale=100.0) for row in rows)
        assert self.moved(first, second) <= RADIUS**4

    def test_control_without_the_norm_check(self) -> None:
        # Rows that are not cut to the ball are beyond the bound: this test can fail.
        rows = np.array([[3.0, 0.0], [0.0, 3.0]]) * RADIUS
        first, second = (np.outer(row, row) for row in rows)
        assert self.moved(first, second) > RADIUS**4

    def test_the_plan_charges_all_of_it(self) -> None:
        fit = PursuitFit(settings())
        plan = fit.plan(0, fit.begin())
        assert isinstance(plan, PursuitPlan)
        (gradient, moments, size, board), rows = plan.parts, plan.row_parts
        assert gradient.sensitivity_squared == len(plan.steps.whiten) * 2**32
        assert moments.sensitivity_squared == RADIUS**4
        assert size.sensitivity_squared == 2**30
        assert board.sensitivity_squared == 9 * 2**20 // 2
        assert [part.sensitivity_squared for part in rows] == [2**32, 2**32, 2**30]


class TestPrice:
    def known_after(self, fit: PursuitFit, episodes: int) -> list[PursuitPlan]:
        rng, known, plans = np.random.default_rng(2), fit.begin(), []
        for episode in range(episodes):
            plan = fit.plan(episode, known)
            X = rng.standard_normal((plan.rows, fit.settings.dim)).astype(np.float32)
            y = X[:, 0] + 0.1 * rng.standard_normal(plan.rows)
            known = fit.run(plan, X, y, np.ones(plan.rows, bool), known)
            if isinstance(plan, PursuitPlan):
                plans.append(plan)
        return plans

    @pytest.mark.parametrize("epsilon", [0.3, 1.0, 8.0])
    def test_every_episode_is_within_the_claim(self, epsilon: float) -> None:
        fit = PursuitFit(settings(epsilon=epsilon, seed=1))
        for plan in self.known_after(fit, 6):
            assert 0.0098 < plan.release.price <= 0.01
            assert plan.picks is not None
            assert plan.picks.count == plan.steps.picks

    def test_a_pick_that_is_not_charged_is_refused(self) -> None:
        fit = PursuitFit(settings())
        release = fit.plan(0, fit.begin()).release
        rows, pick, vector = release.noise
        assert isinstance(pick, PickNoise)
        with pytest.raises(ValueError, match="only delta"):
            type(release)(
                noise=(rows, PickNoise(pick.sensitivity, pick.scale, pick.count + 1), vector),
                epsilon=release.epsilon,
                delta=release.delta,
            )

    def test_control_half_the_moments_sensitivity(self) -> None:
        # Charging B^2 where sqrt(2) B^2 is due would leave noise that the true price refuses.
        fit = PursuitFit(settings())
        release = fit.plan(0, fit.begin()).release
        *before, vector = release.noise
        assert isinstance(vector, VectorNoise)
        short = [Part(p.sensitivity_squared, p.sigma) for p in vector.parts]
        short[1] = Part(short[1].sensitivity_squared, int(short[1].sigma / math.sqrt(2)))
        with pytest.raises(ValueError, match="only delta"):
            type(release)(noise=(*before, VectorNoise(*short)), epsilon=release.epsilon, delta=release.delta)

    def test_rounds_of_a_user_are_priced_by_zcdp(self) -> None:
        fit = PursuitFit(settings(rounds_per_user=3))
        release = fit.plan(0, fit.begin()).release
        assert (release.accounting, release.users) == ("zcdp", 3)
        assert fit.guarantee().proven

    def test_what_is_stated_in_zcdp_covers_every_episode(self) -> None:
        fit = PursuitFit(settings(rounds_per_user=3, sparsity=10))
        begin, stated = fit.begin(), fit.guarantee().rho
        spent = [fit.plan(0, replace(begin, picks=picks)).release.rho for picks in (1.0, 2.0, 3.0, 4.0, 5.0)]
        assert len(set(spent)) > 1  # rounding makes them differ: that of the first would be too little
        assert stated is not None and max(spent) <= stated < (1 + 1e-6) * max(spent)


def regret(policy: FLIPHAT, seed: int, rounds: int, **world: float) -> float:
    """Regret in a world of 40 columns of which two matter; `equal` correlates all, `mean` shifts all."""
    rng = np.random.default_rng(seed)
    beta = np.zeros(40)
    beta[:2] = 0.8, -0.6
    lost = 0.0
    while rounds:
        n = min(policy.remaining, rounds)
        rounds -= n
        common = math.sqrt(world.get("equal", 0.0)) * rng.standard_normal((n, 3, 1))
        own = math.sqrt(1 - world.get("equal", 0.0)) * rng.standard_normal((n, 3, 40))
        x = (own + common + world.get("mean", 0.0)).astype(np.float32)
        decisions = policy.select_batch(x)
        scores = x @ beta
        chosen = scores[np.arange(n), decisions.arms]
        policy.update_batch(decisions, chosen + world.get("offset", 0.0) + 0.1 * rng.standard_normal(n))
        lost += float((scores.max(1) - chosen).sum())
    return lost


class TestLearning:
    RANDOM = 0.85  # regret of a round played at random

    @pytest.mark.parametrize(
        ("told", "world"),
        [
            ({}, {}),
            ({}, {"equal": 0.8}),
            ({}, {"mean": 1.0}),
            ({"context_scale": 0.1}, {}),
            ({"context_scale": 10.0}, {}),
            ({"reward_scale": 0.1}, {}),
            ({"reward_scale": 10.0}, {}),
            ({"reward_scale": "estimate"}, {"offset": 1000.0}),
            ({"epsilon": 8.0}, {"equal": 0.5}),
        ],
    )
    def test_late_rounds_cost_little(self, told: dict[str, Any], world: dict[str, float]) -> None:
        policy = FLIPHAT(**{"dim": 40, "sparsity": 4, "epsilon": 2.0, "delta": 0.01, "seed": 5, **told})
        regret(policy, 1, 4000, **world)
        assert regret(policy, 2, 1000, **world) < 0.1 * self.RANDOM * 1000

    def test_exact_noise_learns_too(self) -> None:
        policy = FLIPHAT(dim=40, sparsity=4, epsilon=4.0, delta=0.01, fit=Pursuit())
        regret(policy, 1, 3000)
        assert policy.guarantee.proven
        assert regret(policy, 2, 500) < 0.1 * self.RANDOM * 500

    def test_the_pilot_finds_rewards_wherever_they_are(self) -> None:
        for centre in (0.0, -1e6, 40.0):
            fit = PursuitFit(settings(epsilon=4.0, reward_scale="estimate", seed=3))
            plan = fit.plan(0, fit.begin())
            assert isinstance(plan, PilotPlan)
            rewards = centre + 2 * np.random.default_rng(1).standard_normal(plan.rows)
            known = fit.run(plan, np.zeros((plan.rows, 40)), rewards, np.ones(plan.rows, bool), fit.begin())
            assert abs(known.intercept - centre) < 4.0
            assert 0.5 < known.residual_size < 8.0
            assert (known.episodes, known.fits) == (1, 0)

    @pytest.mark.parametrize("spread", [2e-4, 50.0])
    def test_the_pilot_finds_how_far_apart_rewards_are(self, spread: float) -> None:
        found = []
        for seed in range(8):
            fit = PursuitFit(settings(epsilon=1.0, reward_scale="estimate", seed=seed))
            plan = fit.plan(0, fit.begin())
            rewards = spread * (3 + np.random.default_rng(seed).standard_normal(plan.rows))
            known = fit.run(plan, np.zeros((plan.rows, 40)), rewards, np.ones(plan.rows, bool), fit.begin())
            found.append((known.residual_size / spread, known.intercept / spread - 3))
        sizes, errors = np.array(found).T
        assert 0.7 < np.median(sizes) < 1.4
        assert ((sizes > 1 / 4) & (sizes < 4)).sum() >= 7
        assert np.median(np.abs(errors)) < 0.6

    def test_columns_in_other_units(self) -> None:
        units = 10.0 ** np.random.default_rng(0).integers(-3, 4, 40)
        outcomes = []
        for scales in (None, units):
            fit = PursuitFit(settings(column_scales=scales, seed=1, dtype="float64"))
            rng, known = np.random.default_rng(4), fit.begin()
            for episode in range(3):
                plan = fit.plan(episode, known)
                X = rng.standard_normal((plan.rows, 40))
                rows = X if scales is None else X * units
                known = fit.run(plan, rows, X[:, 3], np.ones(plan.rows, bool), known)
            outcomes.append(known.estimate.to_dense() * (1 if scales is None else units))
        assert np.allclose(*outcomes, atol=1e-3)

    def test_logistic_clicks(self) -> None:
        policy = FLIPHAT(dim=20, sparsity=2, epsilon=4.0, delta=0.01, fit=Pursuit(), loss="logistic", seed=1)
        rng = np.random.default_rng(1)
        won = []
        for _ in range(40):
            n = min(policy.remaining, 200)
            x = rng.standard_normal((n, 2, 20)).astype(np.float32)
            decisions = policy.select_batch(x)
            chance = 1 / (1 + np.exp(-2.0 * x[np.arange(n), decisions.arms, 0]))
            policy.update_batch(decisions, (rng.random(n) < chance).astype(float))
            won.append(chance.mean())
        assert np.mean(won[-10:]) > 0.65


def chosen_by(column: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return rows as arms leave them that are chosen by one column: the largest of five there, as drawn elsewhere."""
    rows = rng.standard_normal((n, 40))
    rows[:, column] = rng.standard_normal((n, 5)).max(axis=1)
    return rows


class TestWhatIsTypical:
    """Arms are chosen by public columns, which moves their means, and not those of the others."""

    def known(self) -> tuple[PursuitFit, KnownSparse]:
        fit = PursuitFit(settings(epsilon=50.0, seed=1, first_episode=1500))
        rng, known = np.random.default_rng(2), fit.begin()
        for episode in range(8):
            plan = fit.plan(episode, known)
            X = rng.standard_normal((plan.rows, 40)) if episode == 0 else chosen_by(3, plan.rows, rng)
            known = fit.run(
                plan, X, X[:, 3] + 0.1 * rng.standard_normal(plan.rows), np.ones(plan.rows, bool), known
            )
        assert 3 in known.columns
        return fit, known

    def test_a_new_column_is_expected_without_a_mean(self) -> None:
        fit, known = self.known()
        new = open_episode(known, fit.given).foreseen[0, 1 + len(known.columns) :]
        assert np.abs(new).max() < 0.1

    def test_the_public_columns_would_say_otherwise(self) -> None:
        """The control: the mean of the column that arms are chosen by is far from 0."""
        _, known = self.known()
        assert known.moments[0, 1 + list(known.columns).index(3)] > 0.7


class TestMeanReward:
    def after_one_fit(self, offset: float, seed: int = 4) -> tuple[PursuitFit, KnownSparse]:
        fit = PursuitFit(settings(epsilon=4.0, seed=seed))
        rng, known = np.random.default_rng(5), fit.begin()
        plan = fit.plan(0, known)
        X = rng.standard_normal((plan.rows, 40))
        return fit, fit.run(plan, X, offset + X[:, 0], np.ones(plan.rows, bool), known)

    def test_it_is_doubted_until_it_can_be_measured(self) -> None:
        fit, known = self.after_one_fit(8.0)
        assert known.covariance[0, 0] >= (0.99 * fit.given.tuning.intercept_prior * known.residual_size) ** 2

    def test_it_is_not_doubted_where_it_was_measured(self) -> None:
        shares = []
        for seed in range(8):
            fit, known = self.after_one_fit(0.0, seed)
            prior = fit.given.tuning.intercept_prior * known.residual_size
            shares.append(known.covariance[0, 0] / prior**2)
        assert np.median(shares) < 0.5**2


class TestBadInput:
    @pytest.mark.parametrize(
        "kind",
        ["duplicates", "constant", "zeros", "equal rewards", "huge", "tiny", "no rewards", "one column"],
    )
    @pytest.mark.parametrize("epsilon", [0.5, 8.0])
    def test_the_fit_ends_and_stays_finite(self, kind: str, epsilon: float) -> None:
        d = 1 if kind == "one column" else 12
        fit = PursuitFit(settings(dim=d, sparsity=min(4, d), epsilon=epsilon, seed=2, first_episode=20))
        rng, known = np.random.default_rng(3), fit.begin()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for episode in range(12):
                plan = fit.plan(episode, known)
                X = rng.standard_normal((plan.rows, d)).astype(np.float32)
                y, present = X[:, 0].astype(np.float64), np.ones(plan.rows, bool)
                if kind == "duplicates":
                    X[:] = X[:, :1]
                elif kind == "constant":
                    X[:] = 1.0
                elif kind == "zeros":
                    X[:] = 0
                elif kind == "equal rewards":
                    y[:] = 7.0
                elif kind == "huge":
                    X *= 1e37
                    y *= 1e300
                elif kind == "tiny":
                    X *= 1e-37
                    y *= 1e-300
                elif kind == "no rewards":
                    present[:] = False
                known = fit.run(plan, X, y, present, known)
                for array in (known.theta, known.covariance, known.moments, known.precision):
                    assert np.isfinite(array).all()
                assert 0 < known.residual_size < np.inf
                assert 0 < known.context_size < np.inf
                assert len(known.columns) <= fit.settings.sparsity

    def test_every_column_public(self) -> None:
        fit = PursuitFit(settings(dim=3, sparsity=3, epsilon=8.0, seed=2))
        rng, known = np.random.default_rng(3), fit.begin()
        for episode in range(14):
            plan = fit.plan(episode, known)
            X = rng.standard_normal((plan.rows, 3)).astype(np.float32)
            known = fit.run(plan, X, X @ np.ones(3), np.ones(plan.rows, bool), known)
        assert len(known.columns) == 3
        assert np.allclose(known.theta[1:], 1, atol=0.3)

    def test_another_episodes_plan_is_refused(self) -> None:
        fit = PursuitFit(settings())
        plan = fit.plan(0, fit.begin())
        rows = np.zeros((plan.rows, 40), np.float32)
        known = fit.run(plan, rows, np.zeros(plan.rows), np.ones(plan.rows, bool), fit.begin())
        with pytest.raises(ValueError, match="plan must be that of episode 1"):
            fit.run(plan, rows, np.zeros(plan.rows), np.ones(plan.rows, bool), known)


class TestKnown:
    def test_a_record_keeps_every_bit(self) -> None:
        fit = PursuitFit(settings(seed=1))
        plan = fit.plan(0, fit.begin())
        rng = np.random.default_rng(0)
        X = rng.standard_normal((plan.rows, 40)).astype(np.float32)
        known = fit.run(plan, X, X[:, 0], np.ones(plan.rows, bool), fit.begin())
        again = fit.recall(json.loads(json.dumps(known.to_record())))
        assert again.to_record() == known.to_record()
        assert fit.plan(1, again).release == fit.plan(1, known).release

    def test_nothing_private_is_needed_to_plan(self) -> None:
        fit = PursuitFit(settings())
        known = fit.begin()
        assert open_episode(known, fit.given).rows == fit.least_rows(0) == fit.plan(0, known).rows


class TestSettings:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"reward_range": (1, 0)}, "low < high"),
            ({"reward_range": 3}, "two numbers"),
            ({"fit": Pursuit(column_scales=[1.0])}, "shape"),
            ({"reward_scale": "guess"}, "estimate"),
            ({"fit": Iht(), "reward_scale": "estimate"}, r"only for fit=Pursuit\(\)"),
            ({"fit": "other"}, "fit"),
        ],
    )
    def test_messages(self, given: dict[str, Any], message: str) -> None:
        with pytest.raises((TypeError, ValueError), match=message):
            settings(**given)

    def test_a_range_keeps_rare_rewards(self) -> None:
        # With clicks of 2 %, residuals are cut at most of the range; with even odds at their usual clip.
        fits = {centre: PursuitFit(settings(reward_range=(0, 1))) for centre in (0.02, 0.5)}
        clips = {}
        for centre, fit in fits.items():
            size = 1.2533 * 2 * centre * (1 - centre)
            known = centred(fit.begin(), fit.given, centre, size)
            clips[centre] = open_episode(known, fit.given).value_clip
        assert clips[0.02] > 0.9
        assert clips[0.5] < 0.4
