"""The default schedule against what was published, and far from the setting it was tuned on.

The long suite takes minutes; the ordinary one is a small copy of it with room for fewer repeats.
"""

import numpy as np
import pytest

from fliphat.environments import Equicorrelated, SparseLinear
from fliphat.lab.experiments import makers
from fliphat.simulation import play

PUBLISHED = {0.5: 10_900, 1: 5_600, 2: 2_900, 5: 1_250, 10: 700}


def mean_regret(epsilon, repeats, *, rounds=20_000, make=makers.private, world=None, **policy):
    options = {"sparsity": 10, "delta": 0.01, "reward_scale": 1.5} | policy
    total = []
    for seed in range(repeats):
        settings = {"dim": 400, "arms": 3, "sparsity": 5, "seed": seed} | (world or {})
        settings = {name: value(seed) if callable(value) else value for name, value in settings.items()}
        environment = SparseLinear(**settings)
        learner = make(environment=environment, seed=seed, epsilon=epsilon, **options)
        total.append(play(learner, environment, rounds).regret.sum())
    return float(np.mean(total))


def equal(seed):
    """Another draw of the truth: equal sizes, random places."""
    rng = np.random.default_rng(seed)
    return np.sort(rng.permutation(400)[:5]), rng.choice([-0.7, 0.7], 5)


def hundredth(seed):
    columns, values = SparseLinear(dim=400, sparsity=5, seed=seed).truth
    return columns, values / 100


def random_regret(rounds=20_000, **world):
    environment = SparseLinear(**{"dim": 400, "arms": 3, "sparsity": 5, "seed": 0} | world)
    return environment.play(rounds, rows=False).regret.sum()


def test_regret_is_far_below_the_published_one():
    assert mean_regret(1.0, 6) < 0.2 * PUBLISHED[1]
    assert random_regret() > 4 * PUBLISHED[1]


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "most"), [(0.5, 1600), (1, 1000), (2, 650), (5, 400), (10, 290)])
def test_the_default_policy(epsilon, most):
    assert mean_regret(epsilon, 60) <= most


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "most"), [(0.5, 2400), (1, 1350), (2, 850), (5, 500), (10, 380)])
def test_doubling_episodes_from_zero(epsilon, most):
    assert mean_regret(epsilon, 60, episodes="doubling", warm_start=False) <= most


ELSEWHERE = {
    "d = 4000": ({"world": {"dim": 4000}, "rounds": 10_000}, {0.5: 3400, 1: 2200, 2: 1400, 5: 750}),
    "ten coefficients": ({"world": {"sparsity": 10}, "reward_scale": 2.4}, {0.5: 4500, 2: 1700, 10: 900}),
    "24 arms": ({"world": {"arms": 24}}, {0.5: 5000, 2: 2000, 10: 1100}),
    "equicorrelated": ({"world": {"contexts": Equicorrelated(0.3)}}, {0.5: 3000, 2: 1500, 10: 1300}),
    "uniform noise": ({"world": {"noise": "uniform"}}, {0.5: 1600, 2: 650, 10: 290}),
    "smaller delta": ({"delta": 1e-5}, {0.5: 3000, 2: 1000, 10: 400}),
    "equal coefficients": (
        {"world": {"coefficients": lambda seed: equal(seed)}},
        {0.5: 1600, 2: 650, 10: 290},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ELSEWHERE))
def test_elsewhere(name):
    options, most = ELSEWHERE[name]
    for epsilon, bound in most.items():
        assert mean_regret(epsilon, 10, **options) <= bound, epsilon


def test_declared_scales_drop_out():
    # Contexts ten times larger and rewards a tenth: the same problem in other units, if the scales say so.
    plain = mean_regret(2.0, 5)
    world = {"context_scale": 10.0, "coefficients": hundredth, "noise_scale": 0.01}
    scaled = mean_regret(2.0, 5, world=world, context_scale=10.0, reward_scale=0.15)
    assert 10 * scaled == pytest.approx(plain, rel=0.15)
