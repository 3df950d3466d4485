"""Estimates from logs: against values computed by hand, and against the truth in simulation."""

import functools
from itertools import pairwise

import numpy as np
import pytest

from fliphat import FLIPHAT
from fliphat.evaluation import Log, doubly_robust, inverse_propensity, replay, self_normalised


def _by_hand() -> tuple[Log, np.ndarray]:
    log = Log(
        arms=[0, 1, 1, 0], probabilities=[0.5, 0.25, 0.8, 0.2], rewards=[1.0, 2.0, 0.0, 3.0], arm_count=2
    )
    return log, np.array([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0], [0.9, 0.1]])


def test_by_hand() -> None:
    log, target = _by_hand()
    weights = np.array([0.5 / 0.5, 1.0 / 0.25, 0.0 / 0.8, 0.9 / 0.2])
    # 1*1 + 4*2 + 0*0 + 4.5*3 = 22.5
    assert inverse_propensity(log, target).mean == pytest.approx(22.5 / 4)
    assert self_normalised(log, target).mean == pytest.approx(22.5 / 9.5)
    predicted = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 1.0]])
    # direct part .5, 1, 2, 1; corrections 1*(1-1), 4*(2-1), 0*(0-1), 4.5*(3-1)
    assert doubly_robust(log, target, predicted=predicted).mean == pytest.approx((0.5 + 5 + 2 + 10) / 4)
    assert inverse_propensity(log, target).effective_rounds == pytest.approx(9.5**2 / (weights @ weights))
    errors = np.array([1.0, 8.0, 0.0, 13.5]).std(ddof=1) / 2
    assert inverse_propensity(log, target).standard_error == pytest.approx(errors)
    assert inverse_propensity(log, target).high == pytest.approx(22.5 / 4 + 1.959964 * errors, rel=1e-6)


def _world(seed: int, rounds: int) -> tuple[Log, np.ndarray, float]:
    """Return a log of a policy with known probabilities, the evaluated policy, and its true value."""
    rng = np.random.default_rng([12, seed])
    contexts = rng.standard_normal((rounds, 3))
    # Bounded, so that no weight and no reward is large enough to spoil the normal interval.
    mild = np.tanh(contexts)
    means = np.stack([0.2 + mild[:, 0], 0.4 + mild[:, 1], mild[:, 2] ** 2], axis=1)
    logging = np.exp(np.stack([0 * mild[:, 0], mild[:, 1], 0.5 * mild[:, 2]], axis=1))
    logging /= logging.sum(axis=1, keepdims=True)
    evaluated = np.exp(np.stack([mild[:, 0], 0 * mild[:, 0], -mild[:, 2]], axis=1))
    evaluated /= evaluated.sum(axis=1, keepdims=True)
    arms = (rng.random((rounds, 1)) > logging.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    at = np.arange(rounds)
    rewards = means[at, arms] + 0.3 * rng.standard_normal(rounds)
    log = Log(arms, logging[at, arms], rewards, 3, contexts)
    return log, evaluated, float((evaluated * means).sum(axis=1).mean())


@functools.cache
def _truth() -> float:
    return float(np.mean([_world(seed, 100_000)[2] for seed in range(1000, 1010)]))


def _coverage(estimate: object, worlds: int, rounds: int) -> float:
    truth = _truth()
    held = 0
    for seed in range(worlds):
        log, target, _ = _world(seed, rounds)
        value = estimate(log, target)  # type: ignore[operator]
        held += value.low <= truth <= value.high
    return held / worlds


@pytest.mark.parametrize("estimate", [inverse_propensity, self_normalised, doubly_robust])
def test_intervals_hold_the_truth_as_often_as_they_say(estimate: object) -> None:
    # 400 worlds: three standard deviations of a coverage of .95 are .033.
    assert _coverage(estimate, 400, 1000) == pytest.approx(0.95, abs=0.033)


def test_control_wrong_probabilities_lose_the_truth() -> None:
    def without_weights(log: Log, target: np.ndarray) -> object:
        flat = Log(log.arms, 1 / 3, log.rewards, 3, log.contexts)
        return self_normalised(flat, target)

    assert _coverage(without_weights, 100, 4000) < 0.8


def test_predictions_shorten_the_interval() -> None:
    log, target, _ = _world(5, 4000)
    robust, plain = doubly_robust(log, target), inverse_propensity(log, target)
    assert robust.standard_error < plain.standard_error


def test_predictions_never_see_their_own_round() -> None:
    log, _, _ = _world(6, 50)
    changed = log.rewards.copy()
    changed[7] += 100.0
    other = Log(log.arms, log.probabilities, changed, 3, log.contexts)
    from fliphat.evaluation.estimators import predict_rewards

    assert np.array_equal(predict_rewards(log)[7], predict_rewards(other)[7])
    assert not np.array_equal(predict_rewards(log), predict_rewards(other))


def _uniform_log(rounds: int, seed: int = 0) -> Log:
    rng = np.random.default_rng(seed)
    contexts = rng.standard_normal((rounds, 3, 8)).astype(np.float32)
    shown = rng.integers(0, 3, rounds)
    rewards = contexts[np.arange(rounds), shown, 2] + 0.1 * rng.standard_normal(rounds)
    return Log(shown, 1 / 3, rewards, 3, contexts)


def _policy(**told: object) -> FLIPHAT:
    return FLIPHAT(**{"dim": 8, "sparsity": 2, "epsilon": 4.0, "delta": 1e-2, "seed": 3, **told})  # type: ignore[arg-type]


def test_a_replay_learns_from_the_rounds_that_match_and_no_others() -> None:
    log, policy = _uniform_log(12_000), _policy()
    played = replay(policy, log)
    assert policy.rounds == len(played.matched) == played.value.rounds
    assert 3_500 < len(played.matched) < 4_500  # a third of the rounds matches, whatever was learned
    assert np.all(np.diff(played.matched) > 0)
    # Greedy on one of three standard normals: the largest has mean .846.
    assert played.rewards[-1000:].mean() == pytest.approx(0.846, abs=0.1)


def test_a_replay_chooses_every_arm_by_the_estimate_in_force() -> None:
    log, policy = _uniform_log(6_000), _policy()
    played = replay(policy, log)
    ends = [*np.cumsum([facts.rounds for facts in policy.history]), len(played.matched)]
    for facts, (first, last) in zip(policy.history, pairwise(ends), strict=True):
        theta = facts.estimate.to_dense()
        for at in played.matched[first:last]:  # all of the next episode
            assert log.arms[at] == np.argmax(log.contexts[at] @ theta)  # type: ignore[index]


def test_a_replay_needs_a_seed_and_uniform_arms() -> None:
    log = _uniform_log(100)
    with pytest.raises(ValueError, match="policy must have a seed to be replayed"):
        replay(_policy(seed=None), log)
    skewed = Log(log.arms, np.r_[0.5, np.full(99, 1 / 3)], log.rewards, 3, log.contexts)
    with pytest.raises(ValueError, match="log must have been shown uniformly"):
        replay(_policy(), skewed)
    with pytest.raises(ValueError, match=r"contexts of shape \(n, K, dim\)"):
        replay(_policy(), Log(log.arms, 1 / 3, log.rewards, 3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probabilities": [0.5, 0.0, 0.5]}, "probabilities must be above 0 and at most 1; 1 of 3"),
        ({"probabilities": [0.5, 1.5, np.nan]}, "probabilities must be above 0 and at most 1; 2 of 3"),
        ({"rewards": [0.0, np.inf, 1.0]}, "rewards must be finite; 1 of 3"),
        ({"rewards": [0.0, 1.0]}, "rewards must have one entry for each of 3 rounds"),
        ({"rewards": ["a", "b", "c"]}, "rewards must be numbers"),
        ({"arms": [0, 1, 2]}, "arms must be from 0 to arm_count - 1; 1 of 3"),
        ({"arms": [0.0, 1.0, 1.0]}, "arms must be integers"),
        ({"arms": []}, "at least one round"),
        ({"arm_count": 0}, "arm_count must be an integer of at least 1"),
        ({"contexts": np.zeros((2, 4))}, "contexts must be numbers of shape"),
        ({"contexts": np.full((3, 4), np.nan)}, "contexts must be finite; 3 of 3"),
    ],
)
def test_bad_logs_are_refused_by_name(change: dict[str, object], message: str) -> None:
    good: dict[str, object] = {
        "arms": [0, 1, 1],
        "probabilities": 0.5,
        "rewards": [1.0, 0.0, 1.0],
        "arm_count": 2,
    }
    with pytest.raises((ValueError, TypeError), match=message):
        Log(**{**good, **change})  # type: ignore[arg-type]


def test_bad_targets_are_refused_by_name() -> None:
    log, target = _by_hand()
    with pytest.raises(ValueError, match="probabilities that sum to 1; 1 of 4"):
        inverse_propensity(log, target + np.array([[0, 0], [0, 0.5], [0, 0], [0, 0]]))
    with pytest.raises(ValueError, match="from 0 to arm_count - 1; 1 of 4"):
        inverse_propensity(log, [0, 1, 2, 0])
    with pytest.raises(ValueError, match="it never does"):
        self_normalised(log, [1, 0, 0, 1])
    with pytest.raises(ValueError, match="confidence must be above 0 and below 1"):
        inverse_propensity(log, target, confidence=95.0)
