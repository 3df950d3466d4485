"""A support that grows: what is picked, what it costs, and what follows from it."""

import dataclasses
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

from fliphat import FLIPHAT, Store, _native
from fliphat.contexts import Crossed
from fliphat.fit.dense import KnownGrown, growing
from fliphat.reference._candidates import column_scores

ARMS, DIM = ("a", "b", "c"), 200


def policy_of(**given):
    given = {"epsilon": 4.0, "delta": 1e-5, "reward_range": (0, 1), "arms": ARMS, "seed": 1} | given
    return FLIPHAT(
        given.pop("dim", DIM), given.pop("sparsity", 6), given.pop("epsilon"), given.pop("delta"), **given
    )


def made(rounds, seed, one_hot=False, dim=DIM):
    """Return contexts and chances of rewards: columns 3, 50 and 120 matter, to every arm."""
    rng = np.random.default_rng(seed)
    if one_hot:  # features of four answers each
        contexts = np.zeros((rounds, dim), np.float32)
        answers = rng.integers(0, 4, (rounds, dim // 4)) + 4 * np.arange(dim // 4)
        np.put_along_axis(contexts, answers, 1.0, axis=1)
    else:
        contexts = rng.standard_normal((rounds, dim)).astype(np.float32)
    says = np.random.default_rng(5).choice([-1.0, 1.0], (3, 3)) * (3.0 if one_hot else 1.0)
    scores = contexts[:, [3, 50, 120]] @ says.T + [0.2, 0.0, -0.4]
    return contexts, 1 / (1 + np.exp(-scores))


def play(policy, contexts, chances, seed=0, as_given=lambda contexts: contexts):
    """Play all rounds, and return what they earned, and the slots that were played."""
    rng, at, slots = np.random.default_rng(seed), 0, []
    while at < len(contexts):
        part = slice(at, min(at + policy.remaining, len(contexts)))
        decisions = policy.select_batch(as_given(contexts[part]))
        slots += [ARMS.index(arm) for arm in decisions.arms]
        won = rng.random(part.stop - at) < chances[np.arange(at, part.stop), slots[at:]]
        policy.update_batch(decisions, won.astype(float))
        at = part.stop
    return chances[np.arange(len(contexts)), slots], slots


def release(fit, plan, rows, rewards, present, known, noise):
    fit.noise = lambda episode: noise
    return fit.run_totals(plan, rows, rewards, present, known, None)[0]


def learned_fit():
    """Return a fit, what it knows after a few episodes, and its next plan; columns are public."""
    policy = policy_of()
    play(policy, *made(3000, 8))
    fit, known = policy._fit, policy._look().known
    return fit, known, fit.plan(known.episodes, known)


@pytest.mark.parametrize("one_hot", [False, True])
@pytest.mark.parametrize("seed", [11, 12])
def test_columns_that_matter_are_found_and_more_is_earned_than_by_any_constant_arm(one_hot, seed):
    contexts, chances = made(12_000, seed, one_hot)
    with policy_of(seed=seed) as policy:
        earned, _ = play(policy, contexts, chances, seed)
        assert {3, 50, 120} <= set(policy._look().known.columns.tolist())
        assert np.count_nonzero(policy.coefficients["a"][:-1]) <= 6
        told = policy.coefficients["a"]
    best, constant = chances[6000:].max(axis=1).mean(), chances[6000:].mean(axis=0).max()
    assert earned[6000:].mean() > constant + 0.6 * (best - constant)
    # Coefficients are of contexts, in units of a reward: what matters says so, in the right direction.
    says = np.random.default_rng(5).choice([-1.0, 1.0], (3, 3))[0]
    assert (told[[3, 50, 120]] * says > 0).all()


def test_scores_are_those_of_the_twin_for_rows_of_any_kind():
    fit, known, plan = learned_fit()
    rng = np.random.default_rng(2)
    rows = np.zeros((plan.rows, DIM + 1))
    rows[:, :DIM] = rng.standard_normal((plan.rows, DIM)) * (rng.random((plan.rows, DIM)) < 0.3) * 2
    rows[:4, :3] = [[1e300, -1e300, 0.0], [0.0, 1e9, 1e-300], [-0.0, 0.0, 1.0], [1e30, 1e30, 1e30]]
    rows[:, DIM] = rng.integers(0, 3, plan.rows)
    rewards, present = rng.uniform(-1, 2, plan.rows), rng.random(plan.rows) < 0.8
    assert plan.picking is not None and len(plan.kept)
    expected = column_scores(
        rows[:, :DIM],
        rewards,
        rows[:, DIM].astype(int),
        count=3,
        columns=known.columns[plan.kept],
        center=plan.row_map.center[: len(plan.kept)],
        scale=(plan.row_map.inverse * plan.row_map.scale)[: len(plan.kept)],
        radius=2**15 - 1,
        weights=plan.picking.explained,
        clip=plan.picking.clip,
        present=present,
    )
    order = np.argsort(rng.random(plan.rows))
    for given, in_order in ((rows, slice(None)), (csr_array(rows), slice(None)), (rows[order], order)):
        noise = _native.RecordingNoise()
        release(fit, plan, given, rewards[in_order], present[in_order], known, noise)
        kind, scores, count, scale, signed, excluded = noise.calls[0]
        assert (kind, signed, count) == ("picks", False, plan.picking.picks)
        assert scale == fit.picks.scale and set(excluded) == set(known.columns[plan.kept].tolist())
        np.testing.assert_array_equal(scores, expected)
        assert {kind for kind, *_ in noise.calls[1:]} == {"total"}


@pytest.mark.parametrize("other_arm", [False, True])
def test_no_neighbours_move_a_score_further_than_is_charged_and_some_reach_it(other_arm):
    rng, reached = np.random.default_rng(3), 0
    for trial in range(300):
        far = trial % 2
        rows = rng.standard_normal((4, 3)) * (1e6 if far else 1.0)
        arms, rewards = rng.integers(0, 2, 4), rng.integers(0, 2, 4).astype(float)

        def scores(rows=rows, arms=arms, rewards=rewards):
            public = {"columns": [], "center": [], "scale": [], "radius": 1, "weights": np.zeros(2)}
            return column_scores(rows, rewards, arms, count=2, clip=0.5, **public)

        others, theirs, paid = rows.copy(), arms.copy(), rewards.copy()
        others[0], theirs[0], paid[0] = -rows[0], (arms[0] + other_arm) % 2, rng.integers(0, 2)
        moved = np.abs(scores() - scores(others, theirs, paid)).max()
        assert moved <= growing.PICK_SENSITIVITY
        reached = max(reached, moved)
    assert reached == growing.PICK_SENSITIVITY


def test_picks_and_vector_together_are_what_the_claim_was_priced_for():
    fit, _, plan = learned_fit()
    picks, vector = fit.claim.noise
    assert fit.claim.price <= 1e-5 and (picks.sensitivity, picks.count) == (2**16, fit.picks.count)
    assert plan.mu_squared <= fit.cap == vector.mu_squared
    assert plan.picking.scale == picks.scale and plan.picking.picks <= picks.count
    record = fit.guarantee().to_dict()
    assert record["mechanism"] == "exponential"
    assert "exponential" in str(fit.guarantee()) or "pick" in str(fit.guarantee())
    with policy_of(seed=None) as proven:
        assert proven.guarantee.proven


@pytest.mark.parametrize("change", [{"picks": 50}, {"scale": 10}])
def test_control_picks_that_cost_more_cannot_be_planned(change):
    _, _, plan = learned_fit()
    with pytest.raises(ValueError, match="picks must cost no more than those that the claim allows"):
        dataclasses.replace(plan, picking=dataclasses.replace(plan.picking, **change))
    with pytest.raises(ValueError, match="picks must cost no more"):
        dataclasses.replace(plan, charged=None)


def test_a_row_without_a_reward_leaves_nothing_in_picks_and_vector():
    fit, known, plan = learned_fit()
    rows = np.full((plan.rows, DIM + 1), 1e9)
    rows[:, DIM] = 1
    noise = _native.RecordingNoise()
    release(fit, plan, rows, np.ones(plan.rows), np.zeros(plan.rows, bool), known, noise)
    assert not any(np.any(call[1 if call[0] == "picks" else 2]) for call in noise.calls)


@pytest.mark.parametrize("one_hot", [False, True])
def test_sparse_contexts_and_crossed_ones_are_played_and_learned_from_as_dense_ones(one_hot):
    contexts, chances = made(2500, 4, one_hot)
    contexts *= np.random.default_rng(4).random(contexts.shape) < 0.3
    found = []
    for as_given in (
        lambda part: part,
        csr_array,
        lambda part: Crossed(part, np.eye(3, dtype=np.float32)),
    ):
        with policy_of() as policy:
            _, slots = play(policy, contexts, chances, as_given=as_given)
            found.append((slots, policy._look().known))
    for slots, known in found[1:]:
        assert slots == found[0][0]
        assert known.columns.tolist() == found[0][1].columns.tolist()
        np.testing.assert_array_equal(known.coefficients, found[0][1].coefficients)


def test_one_round_is_played_as_in_a_batch_and_probabilities_are_exact():
    contexts, chances = made(1500, 6)
    with policy_of() as policy, policy_of() as one_by_one:
        play(policy, contexts, chances)
        play(one_by_one, contexts, chances)
        batch = policy.select_batch(contexts[:20])
        for context, arm, probability in zip(contexts, batch.arms, batch.probabilities, strict=False):
            decision = one_by_one.select(context)
            assert (decision.arm, decision.probability) == (arm, probability)


@pytest.mark.parametrize("sparse", [False, True])
def test_contexts_that_cannot_be_used_never_raise_and_leave_nothing(sparse):
    contexts, chances = made(1500, 6)
    with policy_of() as policy:
        play(policy, contexts, chances, as_given=csr_array if sparse else lambda part: part)
        bad = contexts[:6].copy()
        unused = (set(range(DIM)) - set(policy._look().known.columns.tolist())).pop()
        bad[0, unused], bad[1, 3], bad[2, 50] = np.nan, np.inf, -np.inf
        bad = bad.astype(np.float64)
        bad[3, 0] = 1e300  # not in single precision
        given = csr_array(bad) if sparse else bad
        if sparse:
            at = given.indptr[4]
            given.indices[[at, at + 1]] = given.indices[[at + 1, at]]  # columns that do not increase
        decisions = policy.select_batch(given)
        assert decisions.valid.tolist() == [False] * 4 + [not sparse, True]
        policy.update_batch(decisions, np.ones(6))
        rows = policy._engine.episode.rows.first(policy._engine.episode.filled)
        if not sparse:
            assert not rows[-6:-2].any() and rows[-1].any()
        else:
            assert rows.lengths[-6:-1].tolist() == [0] * 5 and rows.lengths[-1] == DIM + 1
        play(policy, contexts, chances, as_given=csr_array if sparse else lambda part: part)


def test_arms_come_and_go_and_everything_is_kept(tmp_path):
    contexts, chances = made(2000, 7)
    with policy_of(seed=None, store=Store(tmp_path / "kept")) as policy:
        play(policy, contexts[:1000], chances)
        policy.add_arm("new")
        policy.remove_arm("b")
        arms = policy.select_batch(contexts[: policy.remaining - 1]).arms
        assert "b" not in arms
        before = policy._look().known
    with FLIPHAT.open(tmp_path / "kept") as policy:
        known = policy._look().known
        assert isinstance(known, KnownGrown) and policy.arms == ("a", "c", "new")
        for field in dataclasses.fields(KnownGrown):
            one, other = getattr(before, field.name), getattr(known, field.name)
            if isinstance(one, np.ndarray):
                np.testing.assert_array_equal(one, other)
                assert one.dtype == other.dtype
        while policy._look().known.episodes == before.episodes:
            decisions = policy.select_batch(contexts[: policy.remaining])
            policy.update_batch(decisions, np.ones(len(decisions.arms)))
            policy.select(contexts[0])
        assert policy._look().known.groups == 4 and len(policy.coefficients) == 3
        path = tmp_path / "saved"
    with policy_of() as policy:
        play(policy, contexts[:1500], chances)
        arms = policy._look().known.coefficients
        policy.save(path)
    with FLIPHAT.load(path) as policy:
        np.testing.assert_array_equal(policy._look().known.coefficients, arms)
        assert policy.select(contexts[0]).arm in ARMS


@pytest.mark.parametrize("at", [100, 700, 1303])
def test_an_arm_that_comes_in_an_episode_is_learned_from_in_that_episode(at):
    contexts, chances = made(1600, 7)
    with policy_of() as policy:
        play(policy, contexts[:at], chances)
        before = policy._look().known
        policy.add_arm("new")
        while policy._look().known.episodes <= before.episodes + 1:
            decisions = policy.select_batch(contexts[: policy.remaining])
            policy.update_batch(decisions, np.ones(len(decisions.arms)))
            policy.select(contexts[0])
        known = policy._look().known
        assert known.groups == 4 and (known.precision[3] != 0).any()


def test_arms_of_a_policy_with_very_many_columns_come_and_go():
    with policy_of(dim=100_000) as policy:  # second moments are of the few that are public
        policy.add_arm("new")
        policy.remove_arm("a")
        assert policy.arms == ("b", "c", "new")


def test_where_rewards_are_is_found_where_it_is_not_told():
    contexts, chances = made(16_000, 9)
    with policy_of(reward_range=None, reward_scale=5.0) as policy:
        play(policy, contexts, chances)  # rewards of 0 and 1, expected from -10 to 10
        low, high = policy._look().known.reward_range
        assert high - low < 15
        values = policy.scoreboard.arms
        assert all(np.isfinite(value.mean) for value in values.values())


@pytest.mark.parametrize("rewards", [np.zeros, np.ones, lambda n: np.full(n, 1e9)])
@pytest.mark.parametrize("value", [0.0, 1.0, 1e9])
def test_contexts_and_rewards_that_are_all_alike_give_finite_numbers(rewards, value):
    with policy_of(arms=["only"] if value == 1.0 else ARMS) as policy, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for _ in range(6):
            decisions = policy.select_batch(np.full((policy.remaining, DIM), value, np.float32))
            policy.update_batch(decisions, rewards(len(decisions.arms)))
            policy.select(np.zeros(DIM))
        known = policy._look().known
        assert np.isfinite(known.draws).all() and np.isfinite(known.precision).all()
        assert len(set(known.columns.tolist())) == len(known.columns) <= 6
