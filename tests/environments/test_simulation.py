import dataclasses

import numpy as np
import pytest

from flat_options import nested
from fliphat import FLIPHAT
from fliphat.environments import SparseClicks, SparseLinear
from fliphat.fit.board import UNIFORM
from fliphat.fit.options import Iht
from fliphat.lab.baselines import UniformRandom
from fliphat.policies import CopyError
from fliphat.simulation import play
from policy_model import Fits


def make(seed=0, **options):
    settings = {"dim": 60, "sparsity": 5, "epsilon": 3.0, "delta": 1e-2, "reward_scale": 1.5, "seed": seed}
    return FLIPHAT(**nested({**settings, **options}))


def world(seed=0, **options):
    return SparseLinear(**{"dim": 60, "arms": 3, "sparsity": 3, "seed": seed, **options})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_fit_sees_the_rows_and_rewards_that_were_played(monkeypatch, dtype):
    fits = Fits(monkeypatch)
    policy, environment = make(first_episode=32, growth=2, dtype=dtype), world()
    played = play(policy, environment, 32 + 64 + 10)
    assert [call[0] for call in fits.calls] == [0, 1]
    environment.reset()
    for (_, (rows, rewards, present), _), estimate, count in zip(
        fits.calls, [None, (np.array([0]), np.array([1.0]))], [32, 64], strict=True
    ):
        again = environment.play(count, estimate)
        assert np.array_equal(rows, again.rows) and rows.dtype == dtype
        assert np.array_equal(rewards.astype(np.float32), again.rewards.astype(np.float32))
        assert present.all()
    assert len(played) == 106 and policy.remaining == 128 - 10 and policy.pending == []


def test_sparse_rows_arrive_as_they_were_played(monkeypatch):
    fits = Fits(monkeypatch)
    environment = SparseClicks(dim=500, arms=3, nonzeros=10, seed=2)
    policy = make(dim=500, loss="logistic", first_episode=40, fit=Iht())
    play(policy, environment, 15)
    play(policy, environment, 30)
    environment.reset()
    rows, rewards, present = fits.calls[0][1]
    again = environment.play(40)
    assert np.array_equal(rows, again.rows.toarray()) and np.array_equal(rewards, again.rewards)
    assert present.all()


@pytest.mark.parametrize("lazy", [True, False])
def test_the_guard_plays_uniformly_in_simulations_too(lazy):
    """Of rounds that are played lazily the arms come with the rows; both ways ask the guard."""
    policy, environment = make(), world()
    play(policy, environment, 3000, lazy=lazy)
    engine = policy._engine
    engine._ready()
    best = play(policy, environment, policy.remaining, lazy=lazy).regret.mean()
    policy.select_batch(np.zeros((1, 3, 60), np.float32))  # opens the next episode
    earned = dataclasses.replace(engine.known.earned, fallback=UNIFORM, waits=1e9)
    engine.known = engine.known.but(earned=earned)
    engine.chooser = engine.rule.chooser(engine.known)
    assert play(policy, environment, policy.remaining, lazy=lazy).regret.mean() > 3 * best + 0.1


def test_how_rounds_are_cut_into_calls_changes_nothing():
    once = play(make(), world(), 1500)
    policy, environment = make(), world()
    parts = [play(policy, environment, count) for count in (1, 0, 499, 1000)]
    assert np.array_equal(once.arms, np.concatenate([part.arms for part in parts]))
    assert np.array_equal(once.regret, np.concatenate([part.regret for part in parts]))


def test_the_policy_is_left_as_by_its_own_calls_and_goes_on_with_them():
    # Hard thresholding: pursuit's lengths follow what was released, and a lazy world draws other rows.
    lazy, plain = make(fit=Iht()), make(fit=Iht())
    play(lazy, world(), 1234)
    play(plain, world(), 1234, lazy=False)
    for name in ("rounds", "episode", "remaining", "pending", "late"):
        assert getattr(lazy, name) == getattr(plain, name), name
    assert [facts.to_dict() for facts in lazy.history] == [facts.to_dict() for facts in plain.history]
    contexts = world(seed=9).draw(1).contexts[0]
    ours, theirs = lazy.select(contexts), plain.select(contexts)
    assert ours.id == theirs.id == 1235 and ours.episode == theirs.episode
    assert lazy.pending == [1235] and lazy.update(ours, 1.0) and not lazy.pending


@pytest.mark.parametrize("rounds", [10, 1500])
def test_playing_to_the_end_gives_the_same_rounds_and_a_policy_that_is_spent(rounds):
    kept, spent = make(), make()
    expected = play(kept, world(), rounds)
    played = play(spent, world(), rounds, to_the_end=True)
    for name in ("arms", "rewards", "regret"):
        assert np.array_equal(getattr(played, name), getattr(expected, name)), name
    assert spent.rounds == kept.rounds == rounds and len(spent.history) == len(kept.history)
    with pytest.raises(CopyError, match="played to the end"):
        play(spent, world(), 1)


def _final(lazy, seeds, **options):
    regret = [play(make(s, **options), world(s), 1200, lazy=lazy).regret for s in seeds]
    return np.array([[one.sum(), one[-300:].sum()] for one in regret])


def _largest_z(a, b):
    spread = np.sqrt(a.var(axis=0, ddof=1) / len(a) + b.var(axis=0, ddof=1) / len(b))
    return (np.abs(a.mean(axis=0) - b.mean(axis=0)) / spread).max()


def test_lazy_and_plain_rounds_have_the_same_regret_and_another_policy_has_not():
    lazy, plain = _final(True, range(60)), _final(False, range(60, 120))
    assert _largest_z(lazy, plain) < 4
    assert _largest_z(_final(True, range(60), epsilon=0.5), plain) > 4


def test_lazy_clicks_have_the_same_regret_as_plain_ones():
    def final(lazy, epsilon=20.0):
        found = []
        for seed in range(30):
            policy = make(seed, dim=300, epsilon=epsilon, loss="logistic", first_episode=400)
            environment = SparseClicks(dim=300, arms=4, nonzeros=8, sparsity=4, seed=seed)
            regret = play(policy, environment, 1500, lazy=lazy).regret
            found.append([regret[:400].sum(), regret[400:].sum()])
        return np.array(found)

    lazy, plain = final(True), final(False)
    assert _largest_z(lazy, plain) < 4
    assert _largest_z(final(True, epsilon=0.01), plain) > 4


@pytest.mark.parametrize(
    ("options", "message"),
    [({"seed": None}, "policy must have a seed"), ({"dim": 61}, "policy's dim = 61, got dim = 60")],
)
def test_policies_that_are_not_for_simulation_are_refused(options, message):
    policy = make(**options)
    with pytest.raises(ValueError, match=message):
        play(policy, world(), 10)
    assert policy.rounds == 0


def test_stored_policies_and_user_ids_are_refused(tmp_path):
    with make(store=tmp_path / "store") as policy:
        with pytest.raises(ValueError, match="policy must have no store"):
            play(policy, world(), 10)
        assert policy.rounds == 0
    policy = make()
    policy.select(world().draw(1).contexts[0], user="u")
    with pytest.raises(ValueError, match="without user ids"):
        play(policy, world(), 10)


def test_handed_over_policies_and_wrong_rewards_are_refused(tmp_path):
    policy = make()
    policy.save(tmp_path / "file")
    with pytest.raises(CopyError, match="handed over"):
        play(policy, world(), 1)
    policy = make(loss="logistic")
    with pytest.raises(ValueError, match="environment must give finite rewards, and 0 or 1"):
        play(policy, world(), 5)
    assert policy.rounds == 0


def test_one_episode_has_one_layout():
    policy = make(dim=500, first_episode=40)
    play(policy, SparseLinear(dim=500), 3)
    with pytest.raises(ValueError, match="must have dense contexts"):
        play(policy, SparseClicks(dim=500, arms=3, nonzeros=10), 3)


def test_unseeded_policies_may_play_the_plain_way():
    policy = make(seed=None)
    assert len(play(policy, world(), 50, lazy=False)) == policy.rounds == 50


def test_baselines_play_in_their_own_way():
    assert len(play(UniformRandom(60, seed=1), world(), 50)) == 50
    assert len(play(UniformRandom(60, seed=1), world(), 0)) == 0
