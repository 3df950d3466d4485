"""The observer of draws, which is on in every test, sees fits of every kind and every mistake about their noise."""

import numpy as np
import pytest

import observed_draws
from fliphat import FLIPHAT, Iht, PrivateLinear, PrivateSparseRegressor, _native, kernels
from fliphat.fit.pursuit import fit as pursuit
from fliphat.lab.peers.sums import Noise

X = np.random.default_rng(0).standard_normal((600, 8))


def play(policy, rounds=1, dim=8):
    contexts = np.random.default_rng(1).standard_normal((policy.remaining, 2, dim)).astype(np.float32)
    for _ in range(rounds):
        decisions = policy.select_batch(contexts[: policy.remaining])
        policy.update_batch(decisions, contexts[: len(decisions.arms), 0, 0].astype(float))
        policy.select(contexts[0])


def sparse(**given):
    return FLIPHAT(**{"dim": 8, "sparsity": 2, "epsilon": 1.0, "delta": 0.01, "first_episode": 40} | given)


def fit(**given):
    return PrivateSparseRegressor(**{"epsilon": 1.0, "delta": 1e-3, "sparsity": 2} | given).fit(X, X[:, 1])


def linear():
    policy = PrivateLinear(["a", "b"], dim=8, epsilon=1.0, delta=0.01, context_norm=4.0, first_episode=40)
    contexts = np.random.default_rng(1).standard_normal((40, 8))
    policy.update_batch(policy.select_batch(contexts), np.linspace(0, 1, 40))
    policy.select(contexts[0])


def grown(**given):
    given = {"epsilon": 1.0, "delta": 0.01, "first_episode": 40, "reward_range": (0, 1)} | given
    policy, rng = FLIPHAT(200, 3, arms=4, **given), np.random.default_rng(1)
    for _ in range(3):
        decisions = policy.select_batch(rng.standard_normal((policy.remaining, 200)))
        policy.update_batch(decisions, rng.random(len(decisions.arms)))
        policy.select(rng.standard_normal(200))


def by_blocks(**given):
    da = pytest.importorskip("dask.array")
    return PrivateSparseRegressor(**{"epsilon": 1.0, "delta": 1e-3, "sparsity": 2} | given).fit(
        da.from_array(X, chunks=(200, 8)), da.from_array(X[:, 1], chunks=200)
    )


KINDS = {
    "pursuit": lambda: play(sparse()),
    "pursuit, k = 3": lambda: play(sparse(rounds_per_user=3, epsilon=3.0)),
    "a pilot": lambda: play(sparse(reward_scale="estimate", first_episode=None)),
    "a pilot, k = 3": lambda: play(sparse(reward_scale="estimate", first_episode=None, rounds_per_user=3)),
    "hard thresholding": lambda: play(sparse(fit=Iht())),
    "hard thresholding, k = 3": lambda: play(sparse(fit=Iht(), rounds_per_user=3)),
    "Laplace": lambda: play(sparse(fit=Iht(mechanism="laplace"))),
    "pure": lambda: play(sparse(fit=Iht(), delta=0.0)),
    "parts": fit,
    "parts, k = 2": lambda: fit(rows_per_user=2),
    "one fit": lambda: fit(solver=Iht()),
    "blocks": by_blocks,
    "blocks, one fit": lambda: by_blocks(solver=Iht()),
    "dense": linear,
    "a support that grows": grown,
    "a support that grows, k = 3": lambda: grown(rounds_per_user=3),
}


@pytest.mark.parametrize("kind", KINDS)
def test_fits_of_every_kind_are_observed_and_charged(draws_are_charged, kind):
    KINDS[kind]()
    assert draws_are_charged.fits > 0 and draws_are_charged.draws > 0
    assert not draws_are_charged.uncharged and not draws_are_charged.stray


@pytest.mark.uncharged_draws
@pytest.mark.parametrize("kind", KINDS)
def test_control_a_tenth_less_noise_than_was_charged_is_noticed(draws_are_charged, kind, monkeypatch):
    real = _native.taken_draws

    def less():
        return [(law, [(scale * 10 // 11, count) for scale, count in runs]) for law, runs in real()]

    monkeypatch.setattr(_native, "taken_draws", less)
    KINDS[kind]()
    assert draws_are_charged.uncharged


@pytest.mark.uncharged_draws
def test_control_an_episode_that_draws_twice_is_noticed(draws_are_charged, monkeypatch):
    real = pursuit.release

    def twice(*given):
        real(*given)
        return real(*given)

    monkeypatch.setattr(pursuit, "release", twice)
    play(sparse())
    assert draws_are_charged.uncharged


@pytest.mark.uncharged_draws
def test_control_a_draw_outside_of_a_fit_is_noticed(draws_are_charged):
    _native.gaussian_release(np.zeros(3, np.int64), np.full(3, 10, np.uint64))
    fit()
    assert draws_are_charged.stray == [("vector", [(10, 3)])]


def test_peers_draw_what_their_statistics_were_priced_for(draws_are_charged, monkeypatch):
    from fliphat.lab.peers.sums import Moments, price

    statistic = Moments(2, product_clip=1.0)
    noise = Noise(statistic, price(statistic, 1, epsilon=1.0, delta=0.01).noise[0], None)
    noise(np.zeros(len(noise._sigmas), np.int64))
    assert draws_are_charged.fits == 1 and not draws_are_charged.uncharged
    real = kernels.gaussian_release
    monkeypatch.setattr(kernels, "gaussian_release", lambda values, sigmas: real(values, sigmas // 2))
    noise(np.zeros(len(noise._sigmas), np.int64))
    assert draws_are_charged.uncharged
    draws_are_charged.uncharged.clear()


@pytest.mark.parametrize("users", [1, 3])
def test_a_pilot_is_priced_for_the_steps_that_its_kernel_counts_in(monkeypatch, users):
    # The kernel is told in how many steps it counts: these, and not a constant of this file, are what a row moves.
    calls, real = [], _native.release_pilot

    def watched(*given):
        calls.append(given)
        return real(*given)

    monkeypatch.setattr("fliphat.fit.pursuit.fit._native.release_pilot", watched)
    policy = sparse(reward_scale="estimate", first_episode=None, rounds_per_user=users)
    play(policy)
    ((*_, (_, steps), scales, _),) = calls
    monkeypatch.setattr(observed_draws, "COUNT", steps)
    plan = policy._fit.plan(0, policy._fit.begin())
    drawn = [("pick", [(scale, 1)]) for scale in scales]
    observed_draws.price_pursuit(drawn, policy._settings, plan)
    with pytest.raises(observed_draws.Uncharged):
        observed_draws.price_pursuit(
            [("pick", [(2 * scale // 3, 1)]) for scale in scales], policy._settings, plan
        )
