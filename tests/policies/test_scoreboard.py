"""What a policy says it earns is what it earns, and the guard plays what earns more at the same price."""

import dataclasses
import json
import re
import warnings

import numpy as np
import pytest

from fliphat import FLIPHAT, Iht, PrivateLinear
from fliphat.contexts import Crossed
from fliphat.fit.board import BOARD_SHARE, UNIFORM, Board, Earned, Interval
from fliphat.fit.dense.known import expecting
from fliphat.fit.dense.learning import arm_values
from fliphat.policies.health import HealthWarning
from fliphat.policies.linear_rule import LinearRule
from fliphat.policies.scoreboard import Scoreboard
from fliphat.privacy import composition

CHANCES = np.array([0.1, 0.2, 0.7])


def named(rounds=6_000, epsilon=3.0, seed=0, chances=CHANCES, paid=1.0, shift=0.0, **more):
    """A FLIPHAT whose arms pay 1 with these chances, whatever the context, and the mean that it really had."""
    given = {"dim": 2, "sparsity": 2, "epsilon": epsilon, "delta": 1e-5, "reward_range": (0, 1)}
    policy = FLIPHAT(**{**given, **more}, arms=["a", "b", "c"], seed=seed)
    rng, means = np.random.default_rng(seed), []
    at = {arm: place for place, arm in enumerate(policy.arms)}
    while policy.rounds < rounds:
        decisions = policy.select_batch(rng.uniform(-1, 1, (policy.remaining, 2)))
        chance = chances[[at[arm] for arm in decisions.arms]]
        policy.update_batch(decisions, shift + paid * (rng.random(len(chance)) < chance))
        means.append(float(chance.mean()))
    return policy, means


def sparse(rounds=4_000, seed=0, **more):
    """The paper's kind of world in small: rewards follow the first column."""
    given = {"dim": 20, "sparsity": 2, "epsilon": 2.0, "delta": 1e-3}
    policy = FLIPHAT(**given, seed=seed, **more)
    rng, shown_in = np.random.default_rng(seed), {}
    while policy.rounds < rounds:
        contexts = rng.normal(size=(policy.remaining, 3, 20))
        decisions = policy.select_batch(contexts)
        shown = contexts[np.arange(len(contexts)), decisions.arms, 0]
        policy.update_batch(decisions, shown + 0.3 * rng.normal(size=len(shown)))
        shown_in.setdefault(decisions.episode, []).extend(shown)  # an episode may be longer than was foreseen
    return policy, [float(np.mean(shown_in[episode])) for episode in sorted(shown_in)]


@pytest.mark.parametrize("play", [named, sparse])
def test_intervals_hold_what_episodes_earned(play):
    """About 95 % of them, over all episodes of several runs; each is of noise and of how rewards differ."""
    inside, apart = [], []
    for seed in range(6):
        policy, means = play(seed=seed)
        for score, mean in zip(policy.scoreboard.episodes, means, strict=False):
            inside.append(score.reward.low < mean < score.reward.high)
            apart.append((score.reward.mean - mean) / score.reward.error)
    assert len(inside) > 60
    assert np.mean(inside) > 0.9
    # The control: errors that are a third as large hold far fewer.
    assert np.mean(np.abs(apart) < 1.96 / 3) < 0.75


def test_a_scoreboard_names_what_there_is_to_compare_with():
    policy, means = named(rounds=12_000, seed=1)
    board = policy.scoreboard
    assert board.best_arm == "c" and abs(board.arms["c"].mean - 0.7) < 4 * board.arms["c"].error
    assert board.constant.high <= board.arms["c"].high
    assert board.constant_at_least < 0.7 and f"{board.constant.high:.2g}" in str(board)
    assert board.recent.low < means[-1] < board.recent.high and board.lift.mean > 0
    assert board.clipped.low < 0.01 and board.fallback is None
    shown = json.loads(json.dumps(board.to_dict()))
    assert shown["best_arm"] == "c" and shown["recent"] == list(board.recent)
    assert "best constant arm (c)" in str(board) and "best constant arm (c)" in board._repr_html_()
    assert policy.health.ok


def test_what_an_arm_would_earn_holds_where_no_line_tells_it():
    """Each of three groups of people has an arm of its own that pays 1; each arm for everybody pays a third.

    The policy finds who is in which group, so nearly all that an arm earns is 1, and a line through that says
    that it earns as much with everybody.
    """
    inside, by_a_line = [], []
    for seed in range(3):
        rng = np.random.default_rng(100 + seed)
        policy = FLIPHAT(
            2, arms=[0, 1, 2], sparsity=2, epsilon=10.0, delta=1e-4, reward_range=(0, 1), seed=seed
        )
        while policy.rounds < 8_000:
            group = rng.integers(0, 3, policy.remaining)
            contexts = np.stack([group - 1.0, rng.normal(size=len(group))], axis=1)
            contexts += 0.2 * rng.normal(size=contexts.shape)
            decisions = policy.select_batch(contexts)
            policy.update_batch(decisions, (decisions.arms == group).astype(float))
        board = policy.scoreboard
        inside += [arm.low < 1 / 3 < arm.high for arm in board.arms.values()]
        assert board.constant_at_least < 1 / 3 < board.constant.high
        # The control: what the model says alone.
        values = arm_values(policy._engine.known, policy._settings.exploration)
        by_a_line += [value.low < 1 / 3 < value.high for value in values]
    assert all(inside) and np.mean(by_a_line) < 0.5


@pytest.mark.parametrize(
    ("mean", "error", "words"),
    [
        (0.27714, 0.00612, "0.277 +- 0.012"),
        (-0.13271, 0.31633, "-0.13 +- 0.62"),
        (16.4321, 12.3, "16 +- 24"),
        (12345.678, 130.0, "12,350 +- 250"),
        (-0.0004, 0.1, "0.00 +- 0.20"),
        (0.5, 0.0, "0.5"),
    ],
)
def test_a_mean_has_as_many_digits_as_its_error_supports(mean, error, words):
    assert str(Interval(mean, error)) == words
    assert str(Scoreboard(recent=Interval(mean, error))).endswith(f"  {words}")


def test_nothing_is_said_of_a_fit_that_releases_nothing_of_the_kind():
    policy, _ = sparse(rounds=200, fit=Iht())
    assert policy.scoreboard.recent is None and str(policy.scoreboard) == "nothing was released yet"


def test_a_scoreboard_is_the_same_after_save_and_load(tmp_path):
    policy, _ = named(rounds=2_000)
    before = policy.scoreboard
    policy.save(tmp_path / "saved")
    assert FLIPHAT.load(tmp_path / "saved").scoreboard == before


# Price


def test_what_is_earned_takes_its_share_and_the_guard_takes_none():
    with_guard, _ = sparse(rounds=600)
    without, _ = sparse(rounds=600, guard=False)
    assert with_guard.guarantee == without.guarantee
    plan = with_guard._fit.plan(0, with_guard._fit.begin())
    board = plan.parts[-1]
    share = board.sensitivity_squared / board.sigma**2
    whole = composition.largest_factor(2.0, 1e-3, [composition.Gaussian(1.0)]) ** 2
    assert 0 < share < 0.03 * whole and BOARD_SHARE <= 0.03


@pytest.mark.parametrize("fallback", [None, UNIFORM, 1])
def test_a_plan_does_not_depend_on_the_guard(fallback):
    policy, _ = named(rounds=1_000)
    fit, known = policy._fit, policy._engine.known
    other = dataclasses.replace(known, earned=dataclasses.replace(known.earned, fallback=fallback, waits=1e9))
    assert fit.plan(known.episodes, known).steps == fit.plan(known.episodes, other).steps
    assert fit.plan(known.episodes, known).mu_squared == fit.plan(known.episodes, other).mu_squared


@pytest.mark.parametrize("range_", [(900.0, 1100.0), (-0.5, 1.5)])
def test_a_range_that_is_learned_costs_nothing_and_begins_totals_of_rewards_anew(range_):
    policy, _ = named(rounds=3_000, reward_range=None)
    fit, known = policy._fit, policy._engine.known
    other = expecting(known, range_)
    before, after = (fit.plan(known.episodes, one) for one in (known, other))
    assert {name: step.variance for name, step in before.steps.items()} == {
        name: step.variance for name, step in after.steps.items()
    }
    assert before.mu_squared == after.mu_squared <= before.cap
    assert after.steps["arms"].before.releases == 0 < before.steps["arms"].before.releases
    assert after.steps["moments"] == before.steps["moments"] and not known.fresh
    if range_[0] > 2:
        assert other.fresh and not other.coefficients.any()


def test_what_is_known_is_the_same_in_a_narrower_range():
    policy, _ = named(rounds=3_000, reward_range=None)
    known = policy._engine.known
    other = expecting(known, (-0.5, 1.5))
    for one, two in zip(arm_values(known, 0.1), arm_values(other, 0.1), strict=True):
        assert abs(one.mean - two.mean) < 1e-9 and 0.5 < two.error / one.error < 1.2
    assert np.allclose(4 * known.draws[..., -1], 0.5 + 2 * other.draws[..., -1])
    assert np.allclose(4 * known.coefficients[:, :-1], 2 * other.coefficients[:, :-1])
    mean = [4 * known.scores[-1].rewards, 2 * other.scores[-1].rewards + 0.5 * other.scores[-1].counts]
    assert np.allclose(*mean)


# Where rewards are, when nobody says


@pytest.mark.parametrize(("shift", "paid"), [(0.0, 1.0), (1_000.0, 30.0), (-50.0, 1.0), (0.0, 1e5)])
def test_where_rewards_are_is_learned_from_what_is_released(shift, paid):
    policy, means = named(rounds=20_000, epsilon=10.0, reward_range=None, paid=paid, shift=shift)
    low, high = policy._engine.known.reward_range
    assert low < shift and shift + paid < high and high - low < 40 * paid
    assert means[-1] > 0.6  # the best arm has .7
    assert policy.health.ok and policy.scoreboard.clipped.low < 0.01
    assert abs(policy.scoreboard.recent.mean - shift - paid * 0.7) < 0.1 * paid


@pytest.mark.parametrize(("shift", "paid"), [(0.0, 1.0), (1_000.0, 30.0), (-50.0, 1.0), (0.0, 1e5)])
def test_where_rewards_are_is_learned_with_a_small_budget_too(shift, paid):
    policy, means = named(rounds=20_000, epsilon=3.0, reward_range=None, paid=paid, shift=shift)
    low, high = policy._engine.known.reward_range
    assert low < shift and shift + paid < high and high - low < 40 * paid
    assert means[-1] > 0.6 and policy.health.ok
    # It learns late, having looked for rewards first; what it says it earned is what it did.
    (mean, error), own, rounds = policy.scoreboard.recent, [0.0, 0.0], 0
    for facts, chance in list(zip(policy.history, means, strict=False))[policy._engine.known.began + 1 :]:
        rounds += facts.rounds
        keep = 0.5 ** (facts.rounds / max(rounds / 2, facts.rounds))
        own = [keep * own[0] + facts.rounds * chance, keep * own[1] + facts.rounds]
    assert abs(mean - shift - paid * own[0] / own[1]) < 3 * error < 0.5 * paid


@pytest.mark.parametrize("more", [{"shift": 30.0, "guard": False}, {"paid": 3.0}])
def test_a_range_that_is_given_stays_without_a_guard_and_where_few_rewards_are_outside(more):
    chances = CHANCES if "shift" in more else 0.5 * CHANCES  # at most 35 % of rewards are 3
    policy, _ = named(chances=chances, **more)
    assert policy._engine.known.reward_range == (0, 1) and policy._engine.known.began == 0
    assert "of rewards are outside reward_range = (0, 1)" in str(policy.health)


@pytest.mark.parametrize(("shift", "paid"), [(30.0, 9.0), (-4.0, 1.0), (2.0, 5.0)])
def test_the_guard_leaves_a_range_that_most_rewards_are_outside_of(shift, paid):
    """While all of them are cut to one end arms are alike; the price is that of the range that was given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HealthWarning)
        policy, means = named(20_000, epsilon=10.0, shift=shift, paid=paid)
        given, lost = named(20_000, epsilon=10.0, shift=shift, paid=paid, guard=False)
    low, high = policy._engine.known.reward_range
    assert low < shift and shift + paid < high and high - low < 40 * paid
    assert means[-1] > 0.65 > 0.6 > np.mean(lost[-5:])
    said = str(policy.health)
    assert said.startswith("most rewards are outside reward_range = (0, 1), so the guard expects them in (")
    assert f"in ({low:.3g}, {high:.3g}) now" in said
    assert policy.guarantee == given.guarantee


def test_a_range_gets_wider_where_rewards_are_clearly_cut():
    clipped, narrow = (dataclasses.replace(earned(0.5), clipped=count) for count in (5_000.0, 0.0))
    assert Earned(uniform=clipped).better_range((0.0, 1.0)) is not None
    assert Earned(uniform=narrow).better_range((0.0, 1.0)) is None
    assert Earned().better_range((0.0, 1.0)) is None


# The guard


def earned(mean, rounds=10_000.0, noise=1.0):
    return Board(rounds, mean * rounds, mean * rounds, rounds, 0.0, 0.0, 0.0, noise, noise)


def test_the_guard_plays_what_earns_clearly_more_for_as_long_as_it_took_to_see_it():
    start = Earned().after(earned(0.3), uniform=True)
    assert start.uniform.reward.mean == pytest.approx(0.3) and start.fallback is None
    well = start.after(earned(0.5), uniform=False, constant=(2, Interval(0.45, 0.01)))
    assert well.fallback is None
    # Below the arm: it is played for as many rounds, then the policy may try again, then for twice as many.
    low = start.after(earned(0.4), uniform=False, constant=(2, Interval(0.45, 0.01)))
    assert low.fallback == 2 and low.waits == 10_000 and low.recent is None
    still = low.after(earned(0.45, 6_000), uniform=False, constant=(2, Interval(0.45, 0.01)))
    again = still.after(earned(0.45, 6_000), uniform=False, constant=(2, Interval(0.45, 0.01)))
    assert still.fallback == 2 and again.fallback is None
    assert again.after(earned(0.4), uniform=False, constant=(2, Interval(0.45, 0.01))).waits == 20_000
    # Below uniform play, with no arm that is known: all arms, and that is a baseline, too.
    lower = start.after(earned(0.1), uniform=False)
    assert lower.fallback == UNIFORM
    assert lower.after(earned(0.3), uniform=False).uniform.rounds == 20_000
    # Not where it can't be told, nor where it is off.
    assert start.after(earned(0.4), uniform=False, constant=(2, Interval(0.45, 0.1))).fallback is None
    assert start.after(earned(0.1), uniform=False, guard=False).fallback is None
    assert Earned.from_record(json.loads(json.dumps(lower.to_record()))) == lower


def test_a_guard_that_was_wrong_gives_way_and_asks_for_more_the_next_time():
    constant = (2, Interval(0.45, 0.01))
    low = Earned().after(earned(0.3), uniform=True).after(earned(0.4), uniform=False, constant=constant)
    assert low.fallback == 2
    wrong = low.after(earned(0.2, 500), uniform=False, constant=constant)
    assert wrong.fallback is None and wrong.recent == low.replaced and wrong.wrong == 1
    # Five standard errors were enough before, and are not any more.
    assert wrong.after(earned(0.4), uniform=False, constant=constant).fallback is None


def test_a_policy_that_is_made_to_lose_is_caught_by_the_guard_and_one_without_is_not():
    def play(guard):
        policy = PrivateLinear(3, 2, 3.0, 1e-5, context_norm=1.5, seed=3, guard=guard)
        rule = policy._engine.rule
        rule.chooser = lambda known: LinearRule.chooser(rule, dataclasses.replace(known, draws=-known.draws))
        rng, won = np.random.default_rng(3), []
        while policy.rounds < 30_000:
            decisions = policy.select_batch(rng.uniform(-1, 1, (policy.remaining, 2)))
            rewards = rng.random(len(decisions)) < CHANCES[decisions.arms]
            policy.update_batch(decisions, rewards.astype(float))
            won.append((len(rewards), rewards.sum()))
        rounds, sums = np.array(won)[len(won) // 2 :].sum(axis=0)
        return sums / rounds, policy

    with_guard, policy = play(True)
    without, _ = play(False)
    assert policy._engine.known.earned.times > 0
    assert without < 0.25 and with_guard > without + 0.15


# Named arms


def test_named_arms_are_learned_and_come_and_go():
    policy, means = named(rounds=10_000)
    assert np.mean(means[-3:]) > 0.6
    assert policy.select(np.zeros(2)).arm in ("a", "b", "c")
    policy.add_arm("d")
    policy.remove_arm("a")
    assert policy.arms == ("b", "c", "d")
    assert {policy.select(np.zeros(2)).arm for _ in range(30)} <= {"b", "c", "d"}
    assert policy.guarantee.proven is False and policy.guarantee.epsilon == 3.0  # seeded
    assert repr(policy) == "FLIPHAT(3 arms, dim=2, epsilon=3.0, delta=1e-05)"
    assert set(policy.coefficients) == {"b", "c", "d"} and len(policy.coefficients["c"]) == 3


def test_a_store_keeps_named_arms_and_another_policy_is_refused(tmp_path):
    given = {"dim": 2, "sparsity": 2, "epsilon": 1.0, "delta": 1e-5, "store": tmp_path / "s"}
    with FLIPHAT(**given, arms=["x", "y"]) as policy:
        policy.select(np.zeros(2), user="u")
    with FLIPHAT.open(tmp_path / "s") as policy:
        assert policy.arms == ("x", "y") and policy.rounds == 1 and policy.guarantee.proven
    with pytest.raises(ValueError, match="not a PrivateLinear"):
        PrivateLinear.open(tmp_path / "s")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"fit": Iht()}, "fit must be left out"),
        ({"reward_scale": "estimate"}, "reward_scale must be a number"),
        ({"exploration": [0.1, 0.0]}, "exploration must be one share"),
        ({"arms": []}, "at least one"),
        ({"arms": ["a", "a"]}, "different from each other"),
        ({"arms": "ab"}, "sequence of ids"),
        ({"guard": 1}, "guard must be True or False"),
        ({"dim": 10**6, "sparsity": 10**6}, "dim must be at most"),
    ],
)
def test_bad_arguments_are_named(more, words):
    given = {"dim": 3, "sparsity": 2, "epsilon": 1.0, "delta": 1e-5, "arms": ["a", "b"]}
    with pytest.raises((ValueError, TypeError), match=words):
        FLIPHAT(**given | more)


def test_crossed_contexts_with_one_hot_arms_take_the_same_path():
    people = np.random.default_rng(0).uniform(-1, 1, (20, 3))
    given = {"dim": 3, "sparsity": 3, "epsilon": 1.0, "delta": 1e-5, "seed": 1}
    plain, crossed = FLIPHAT(**given, arms=4), FLIPHAT(**given, arms=4)
    own = np.eye(4)
    assert list(plain.select_batch(people)) == list(crossed.select_batch(Crossed(people, own)))
    assert plain.select(people[0]) == crossed.select(Crossed(people[0], own))
    with pytest.raises(ValueError, match="one-hot arms"):
        crossed.select(Crossed(people[0], np.ones((4, 2))))
    with pytest.raises(ValueError, match="each of the 4 arms"):
        crossed.select(Crossed(people[0], np.eye(3)))


def test_a_policy_without_names_says_once_that_such_arms_have_a_better_way():
    policy = FLIPHAT(dim=6, sparsity=2, epsilon=1.0, delta=1e-5)
    with pytest.warns(HealthWarning, match="make the policy with arms="):
        policy.select(Crossed([1.0, 0.5], np.eye(3)))
    policy.select(Crossed([1.0, 0.5], np.eye(3)))
    FLIPHAT(dim=6, sparsity=2, epsilon=1.0, delta=1e-5).select(Crossed([1.0, 0.5], 2 * np.eye(3)))


def test_rounds_that_bring_their_arms_have_none_to_change():
    policy, _ = sparse(rounds=10)
    assert policy.arms == () and policy.coefficients == {} and policy.arm_scores == ()
    with pytest.raises(TypeError, match="bring their arms"):
        policy.add_arm("a")


#: What health says of bad input, where it is more than that nothing is known.
SAID = {
    "outside": r"most rewards are outside reward_range = \(0, 1\), so the guard expects them in \(.*give that",
    "missing": "only .*of rounds could be learned from: rewards did not come",
    "nan": "only .*of rounds could be learned from: .*contexts were not finite",
    "equal": "rewards hardly differ: all are about 0.5",
    "empty": r"contexts are about (0|0\.000\d+|.*e-\d+) long",
}


@pytest.mark.parametrize("policy", ["FLIPHAT", "PrivateLinear"])
@pytest.mark.parametrize(
    "case",
    [
        *SAID,
        "one arm",
        "500 arms",
        "constant column",
        "only constants",
        "twins",
        "never shown",
        "come and go",
    ],
)
@pytest.mark.parametrize(("epsilon", "first", "episodes"), [(2.0, 60, 20), (20.0, 200, 16)])
def test_whatever_comes_the_policy_is_finite_and_says_what_it_can(case, policy, epsilon, first, episodes):
    arms = {"one arm": 1, "500 arms": 500}.get(case, 4)
    given = {"epsilon": epsilon, "delta": 1e-5, "reward_range": (0, 1), "seed": 1, "first_episode": first}
    if policy == "FLIPHAT":
        policy = FLIPHAT(4, 4, arms=arms, context_scale=0.7, **given)
    else:
        policy = PrivateLinear(arms, 4, context_norm=2.0, **given)
    rng = np.random.default_rng(2)
    with np.errstate(all="raise"), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        while len(policy.history) < episodes + 3 * (case == "equal"):
            contexts = rng.uniform(-1, 1, (policy.remaining, 4))
            if case == "nan":
                contexts[rng.random(len(contexts)) < 0.8, 0] = np.nan
            elif case == "constant column":
                contexts[:, 1] = 1.0
            elif case == "only constants":
                contexts[:] = 0.5
            elif case == "twins":
                contexts[:, 1] = contexts[:, 0]
            elif case == "empty":
                contexts[:] = 0.0
            elif case == "come and go" and len(policy.history) in (4, 8):
                policy.add_arm(f"arm {len(policy.history)}")
                policy.remove_arm(policy.arms[0])
            elif case == "never shown" and len(policy.history) == 15:
                policy.add_arm("late")
            decisions = policy.select_batch(contexts)
            assert np.all((decisions.probabilities > 0) & (decisions.probabilities <= 1))
            rewards = (rng.random(len(contexts)) < 0.3).astype(float)
            if case == "equal":
                rewards[:] = 0.5
            if case == "outside":
                rewards += 7.0
            if case != "missing":
                policy.update_batch(decisions, rewards)
    board, said = policy.scoreboard, policy.health
    assert np.isfinite([*board.recent, *board.uniform]).all()
    assert all(np.isfinite(values).all() for values in policy.coefficients.values())
    assert set(board.arms) <= set(policy.arms)
    words = {"nan": "not finite", "outside": "outside reward_range"}.get(case, "")
    assert not words or any(words in str(one.message) for one in warned)
    assert all(one.category is HealthWarning or "not finite" in str(one.message) for one in warned)
    # That squares of rewards are all alike does not show in the noise of the smaller budget.
    if case in SAID and (case, epsilon) != ("equal", 2.0):
        assert any(re.search(SAID[case], finding) for finding in said.findings), str(said)
        # Rounds that can't be learned from say nothing of contexts.
        assert ("contexts are about" in str(said)) == (case == "empty")
    else:
        assert said.ok, str(said)


def test_the_range_that_health_gives_cuts_less_and_at_last_nothing():
    """Following the advice again and again ends where rewards are, and health is silent."""
    given, ranges = (0, 1), []
    for _ in range(8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HealthWarning)
            policy, _ = named(epsilon=10.0, paid=3.0, shift=20.0, reward_range=given, guard=False)
        ranges.append(given)
        if policy.health.ok:
            break
        found = re.search(r"really have, \(([-.\de+]+), ([-.\de+]+)\) or wider", str(policy.health))
        given = (float(found[1]), float(found[2]))
    assert len(ranges) > 1 and policy.health.ok and given[0] < 20 and given[1] > 23


def test_columns_that_change_their_size_are_said_to_be_cut_and_measured_again():
    policy = PrivateLinear(3, 4, 10.0, 1e-5, context_norm=100.0, seed=3, first_episode=200)
    rng, said = np.random.default_rng(3), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HealthWarning)
        while len(policy.history) < 22:
            size = 1.0 if len(policy.history) < 9 else 30.0
            decisions = policy.select_batch(size * rng.uniform(-1, 1, (policy.remaining, 4)))
            policy.update_batch(decisions, (rng.random(len(decisions.arms)) < 0.3).astype(float))
            said.append("were cut to less than a quarter" in str(policy.health))
    assert not any(said[:9]) and any(said[10:14]) and not said[-1]
    assert policy._engine.known.settled > 9


def test_few_of_many_columns_are_picked_and_nothing_is_said():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert FLIPHAT(2_000, 5, 1.0, 1e-6, arms=10)._settings.grows
        assert not FLIPHAT(8, 5, 10.0, 1e-6, arms=3)._settings.grows  # noise on all columns costs no more
        assert not FLIPHAT(200, 120, 1.0, 1e-6, arms=3)._settings.grows
        assert not FLIPHAT(200, 200, 1.0, 1e-6, arms=3)._settings.grows
    with pytest.warns(UserWarning, match="or a smaller sparsity if only few of them matter"):
        FLIPHAT(3_000, 3_000, 0.5, 1e-6, arms=50)
