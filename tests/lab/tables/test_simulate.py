"""From a table to a study: what policies earn, when they learn, and what is said about it."""

import csv
import dataclasses
import html
import json
import math
import textwrap
import warnings

import numpy as np
import pytest

import fliphat
from fliphat.contexts import Encoder
from fliphat.lab.tables import runs, study
from fliphat.lab.tables.bandit import make_bandit
from fliphat.lab.tables.players import POLICIES, PRIVATE, PlayedRounds, make_player, public_numbers
from fliphat.lab.tables.read import read_frame
from fliphat.lab.tables.runs import first_useful, result_of
from made_tables import labelled, logged

LOG = {"arm": "shown", "reward": "earned", "propensity": "chance", "reward_range": (0.0, 1.0)}


@pytest.fixture(scope="module")
def found():
    return fliphat.simulate(labelled(), label="arm", epsilons=[1.0, 10.0], orders=3)


def test_policies_are_ordered_as_they_should_be(found):
    random, constant, best = (found.result(name).mean for name in ("random", "constant", "LinUCB"))
    assert random == pytest.approx(1 / 3, abs=0.02)
    assert constant == pytest.approx(max(np.unique(labelled()["arm"], return_counts=True)[1]) / 3000)
    assert random < constant < found.result("FLIPHAT", 10.0).mean < best
    assert best > 0.8 and found.recommended is not None
    assert found.rows == 3000 and found.columns == 5 and found.arms == ("a", "b", "c") and found.complete
    for one in found.results:
        assert one.low < one.mean < one.high and one.orders == 3 and one.rounds == 3000
        assert one.mean == pytest.approx(np.mean(one.curve))
    assert found.result("LinUCB").learns_from <= 300
    assert found.result("random").learns_from is None


def test_the_same_study_again_is_the_same(found):
    again = fliphat.simulate(labelled(), label="arm", epsilons=[1.0, 10.0], orders=3)
    assert again.results == found.results
    other = fliphat.simulate(labelled(), label="arm", epsilons=[1.0], orders=3, seed=1, policies=["random"])
    assert other.result("random").mean != found.result("random").mean


def test_processes_change_nothing(found):
    parallel = fliphat.simulate(labelled(), label="arm", epsilons=[1.0, 10.0], orders=3, workers=2)
    assert parallel.results == found.results


def test_linucb_is_ridge_regression_of_each_arm_with_optimism():
    bandit = make_bandit(read_frame(labelled(400)), label="arm")
    public = public_numbers(bandit, None, None)
    player = make_player("LinUCB", None, public, bandit, np.random.default_rng(0))
    rows, seen, at = bandit.features.matrix.astype(float), [], 0
    while at < 400:
        here = np.arange(at, min(at + player.remaining, 400))
        earned = np.array([reward for _, _, reward in seen])
        scores = np.zeros((len(here), public.arms))
        for arm in range(public.arms):
            own = np.array([row for row, shown, _ in seen if shown == arm]).reshape(-1, public.columns)
            rewards = np.array([reward for _, shown, reward in seen if shown == arm])
            gram = np.eye(public.columns) + own.T @ own
            estimate = np.zeros(public.columns)
            if len(rewards):
                estimate = np.linalg.solve(gram, own.T @ (rewards - earned.mean())) / (earned.std() or 1)
            width = np.einsum("ni,ij,nj->n", rows[here], np.linalg.inv(gram), rows[here]) ** 0.5
            scores[:, arm] = rows[here] @ estimate + player.optimism * width
        chosen = player.choose(bandit.features.matrix[here])
        lost = scores.max(axis=1) - scores[np.arange(len(here)), chosen]
        assert (lost < 1e-4).all()
        rewards = bandit.outcomes.of(here, chosen)
        player.learn(PlayedRounds(np.arange(len(here)), bandit.features.matrix[here], chosen, rewards))
        seen += list(zip(rows[here], chosen, rewards, strict=True))
        at += len(here)


def contexts_of(policy, rows, arms):
    """Rows as a policy's own calls take them: blocks for FLIPHAT, without the constant for PrivateLinear."""
    if policy == "PrivateLinear":
        return rows[:, 1:]
    blocks = np.zeros((len(rows), arms, arms, rows.shape[1]), np.float32)
    blocks[:, np.arange(arms), np.arange(arms)] = rows[:, None]
    return blocks.reshape(len(rows), arms, -1)


@pytest.mark.parametrize("name", PRIVATE)
def test_private_policies_earn_what_their_own_calls_would(name):
    bandit = make_bandit(read_frame(labelled(2000)), label="arm")
    public = public_numbers(bandit, None, None)
    player = [runs.play_order(bandit, public, name, 10.0, order, 0).mean for order in range(8)]
    own = []
    for order in range(8):
        policy = getattr(fliphat, name)(**public.arguments(name, 10.0), seed=order)
        people = np.random.default_rng(order).permutation(2000)
        at, won = 0, 0.0
        while at < 2000:
            here = people[at : at + policy.remaining]
            decisions = policy.select_batch(contexts_of(name, bandit.features.matrix[here], 3))
            rewards = (decisions.arms == bandit.outcomes.right[here]).astype(float)
            policy.update_batch(decisions, rewards)
            won, at = won + rewards.sum(), at + len(here)
        own.append(won / 2000)
    spread = math.sqrt((np.var(player, ddof=1) + np.var(own, ddof=1)) / 8)
    assert abs(np.mean(player) - np.mean(own)) < 3.5 * spread


def test_private_linear_learns_from_just_the_rounds_that_match():
    bandit = make_bandit(read_frame(labelled(600)), label="arm")
    player = make_player(
        "PrivateLinear", 10.0, public_numbers(bandit, None, None), bandit, np.random.default_rng(0)
    )
    kept, at = 0, 0
    while at < 600:
        rows = bandit.features.matrix[at : at + 50]
        arms = player.choose(rows)
        picked = np.flatnonzero(arms == np.arange(len(rows)) % 3)[: player.remaining]
        player.learn(PlayedRounds(picked, rows[picked], arms[picked], np.ones(len(picked))))
        kept, at = kept + len(picked), at + len(rows)
    assert player._policy.rounds == kept < 400 and player._policy.episode > 0


def test_replay_of_a_skewed_log_is_unbiased():
    table, means = logged(rows=30_000)
    found = fliphat.simulate(table, **LOG, policies=["random", "constant", "LinUCB"], orders=4)
    # About a fifth of the rounds is kept so that arms are even, and a third of those matches.
    assert found.logged and 1000 < found.result("random").rounds < 30_000 / 3
    for policy, truth in (("random", means.mean()), ("constant", 0.55)):
        one = found.result(policy)
        assert one.mean == pytest.approx(truth, abs=3 * (one.mean - one.low) / 1.96)
    assert found.result("LinUCB").mean > 0.6  # the best arm of everyone has 0.71


def test_control_a_log_taken_as_uniform_is_biased():
    # Whoever is shown arm 0 more often is whom it suits.
    table, means = logged(rows=30_000)
    wrong = fliphat.simulate(table, **{**LOG, "propensity": 1 / 3}, policies=["random"], orders=4)
    one = wrong.result("random")
    assert abs(one.mean - means.mean()) > 3 * (one.mean - one.low) / 1.96


def test_private_policies_learn_from_a_log():
    table, _ = logged(rows=20_000, skewed=False)
    found = fliphat.simulate(table, **LOG, epsilons=[10.0], orders=2)
    for policy in PRIVATE:
        one = found.result(policy, 10.0)
        assert one.rounds == pytest.approx(20_000 / 3, rel=0.1)
        assert one.mean > found.result("random").mean


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"chance": 0.0}, {}, "column 'chance' must be above 0 and at most 1"),
        ({"chance": 1.5}, {}, "20 of 500 rows are not: an arm of chance 0 can't have been shown"),
        ({}, {"propensity": 0.0}, "propensity must be above 0 and at most 1"),
        ({}, {"propensity": None}, "propensity is not given, for uniformly shown arms the number 1/K"),
        ({}, {"reward": None}, "reward is not given"),
        (
            {},
            {"label": "shown"},
            "give a label, or rewards of all arms, or arm, reward and propensity of a log, not two",
        ),
        ({}, {"reward_range": (0.0, 0.5)}, "column 'earned' must be within the reward range 0 to 0.5"),
        ({"earned": np.inf}, {}, "column 'earned' must be finite; 20 of 500"),
        ({}, {"reward_range": (1.0, 0.0)}, "low < high"),
        ({}, {"drop": ["u", "v"]}, "no column to tell people apart by"),
    ],
)
def test_logs_that_cannot_be_used(change, options, message):
    table, _ = logged(rows=500)
    for name, value in change.items():
        table[name] = np.r_[np.full(20, value), table[name][20:]]
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace(")", r"\)")):
        fliphat.simulate(table, **{**LOG, **options})


def test_a_log_of_equal_rewards_and_one_too_short():
    table, _ = logged(rows=500)
    options = {**LOG, "reward_range": None}
    found = fliphat.simulate(table, **options, policies=["random"], orders=1)
    assert any("range of rewards, 0 to 1, was read off column 'earned'" in text for text in found.warnings)
    with pytest.raises(ValueError, match="'earned' must not have the same reward in every row"):
        fliphat.simulate({**table, "earned": np.ones(500)}, **options)
    short, _ = logged(rows=30)
    with pytest.raises(ValueError, match="at least 20 rounds whose reward is known"):
        fliphat.simulate(short, **LOG, policies=["random"], orders=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilons": [0.0]}, "epsilons"),
        ({"epsilons": []}, "at least one number"),
        ({"orders": 0}, "orders"),
        ({"policies": ["nothing"]}, "policies"),
        ({"missing": "guess"}, "missing"),
        ({"most_arms": 1}, "most_arms"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        fliphat.simulate(labelled(100), label="arm", **options)


def test_ctrl_c_keeps_what_is_done(monkeypatch):
    real, calls = study.play_order, []

    def stopped(*arguments):
        calls.append(arguments)
        if len(calls) > 6:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(study, "play_order", stopped)
    found = fliphat.simulate(labelled(500), label="arm", epsilons=[1.0], orders=5)
    assert not found.complete and sum(one.orders for one in found.results) == 6
    # The first order of every policy comes before the second of any.
    assert {one.policy for one in found.results} == set(POLICIES)
    assert "Stopped early" in str(found)
    calls.clear()
    monkeypatch.setattr(study, "play_order", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        fliphat.simulate(labelled(500), label="arm", orders=1)


def _runs(policy, epsilon, levels):
    made = []
    for order, level in enumerate(levels):
        windows = (1 / 3,) * 8 + (level,) * 12
        made.append(
            runs.TableRun(policy, epsilon, order, 10_000, float(np.mean(windows)), 0.48, 0.5, 3000, windows)
        )
    return made


def test_when_learning_starts_and_what_is_recommended():
    random, constant = _runs("random", None, [1 / 3] * 4), _runs("constant", None, [0.4] * 4)
    good, none = _runs("FLIPHAT", 2.0, [0.8, 0.81, 0.79, 0.8]), _runs("FLIPHAT", 1.0, [0.335] * 4)
    every = [*random, *constant, *good, *none]
    learned, stuck = result_of(good, every), result_of(none, every)
    assert learned.learns_from == 10_000 * 9 // 20 and stuck.learns_from is None
    assert learned.above_constant[0] == pytest.approx(learned.mean - result_of(constant, every).mean)
    assert first_useful([stuck, learned]) is learned and first_useful([stuck]) is None
    # Rows are a sample: even equal orders leave an interval.
    assert stuck.high - stuck.mean > 0.48 / 100


def test_text_files_and_report_say_the_same(found, tmp_path):
    shown = str(found)
    assert (
        "not protected" in shown
        and "LinUCB (not private)" in shown
        and "always c" in shown
        and "c 42%" in shown
    )
    assert f"{found.recommended.policy}(" in shown and "delta=" in shown
    paths = found.write(tmp_path / "new", command="fliphat simulate <t>.csv")
    assert [path.name for path in paths] == [
        "study.csv",
        "encoder.json",
        "study.png",
        "study.svg",
        "report.html",
    ]
    with open(paths[0]) as file:
        read = list(csv.DictReader(file))
    assert len(read) == len(found.results)
    assert float(read[0]["reward"]) == pytest.approx(found.results[0].mean, abs=1e-5)
    page = paths[-1].read_text()
    for one in found.results:
        assert f"<td>{one.mean:.3f}</td>" in page
    assert "not protected" in page and "fliphat simulate &lt;t&gt;.csv" in page
    # Two figures, for a desk and a telephone, in colours that follow the page's theme.
    assert "<script" not in page and "https:" not in page and page.count("<svg ") == 2
    assert "var(--orange)" in page and "#b34a00;" in page and "#ff9d57;" in page
    assert f"<h1>{html.escape(found.answer)}</h1>" in page
    assert Encoder.from_json(paths[1]) == found.encoder
    record = json.loads(json.dumps(found.to_dict()))
    assert record["recommended"]["policy"] == found.recommended.policy and len(record["results"]) == len(read)


def test_a_hostile_name_stays_text(tmp_path):
    table = {"<b>x</b>": np.arange(100.0), "arm": ["<script>a</script>", "b"] * 50}
    found = fliphat.simulate(table, label="arm", epsilons=[1.0], orders=2)
    page = found.write(tmp_path)[-1].read_text()
    assert "<script" not in page and "<b>x" not in page
    assert "<script" not in found._repr_html_()
    assert found.recommended is None and "no private policy is clearly better" in str(found)


def test_a_study_says_where_contexts_are_too_wide_for_its_rows():
    rng = np.random.default_rng(2)
    table = {f"x{column}": rng.random(200) for column in range(12)} | {"arm": rng.choice(["a", "b"], 200)}
    wide = fliphat.simulate(
        table, label="arm", policies=["PrivateLinear"], epsilons=[0.3, 10.0], orders=1
    ).warnings
    (said,) = (one for one in wide if "columns and" in one)
    assert said.startswith("PrivateLinear: with 12 columns and 2 arms") and "epsilon = 0.3" in said


@pytest.mark.parametrize("name", PRIVATE)
def test_the_code_that_is_printed_plays_the_policy_that_was_played(name, tmp_path, monkeypatch):
    found = fliphat.simulate(labelled(), label="arm", policies=[name], epsilons=[20.0], orders=4)
    assert found.recommended is not None
    code = textwrap.dedent(str(found).split("Take this:\n")[1].split("\n\nMind:")[0])
    assert found.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    here = {"row": dict.fromkeys(found.encoder.columns, 0.5), "reward": 1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a policy must not tell people to take another one
        exec(code, here)
    assert here["decision"].arm in found.arms
    assert here["policy"].rounds == 1 and here["policy"].guarantee.proven


def test_a_guarded_fliphat_is_simulated_as_it_is_played():
    bandit = make_bandit(read_frame(labelled(2000)), label="arm")
    player = make_player(
        "FLIPHAT", 10.0, public_numbers(bandit, None, None), bandit, np.random.default_rng(0)
    )
    rows = bandit.features.matrix
    at = 0
    while at < 1000:
        here = np.arange(at, at + min(50, player.remaining))
        arms = player.choose(rows[here])
        rewards = bandit.outcomes.of(here, arms)
        player.learn(PlayedRounds(np.arange(len(here)), rows[here], arms, rewards))
        at += len(here)
    known = player._policy._engine.known
    for fallback, arms_seen in ((None, 1), (-1, 3)):
        player._policy._engine.known = dataclasses.replace(
            known, earned=dataclasses.replace(known.earned, fallback=fallback)
        )
        player._episode = -1
        assert len(set(player.choose(np.repeat(rows[:1], 200, axis=0)).tolist())) == arms_seen
