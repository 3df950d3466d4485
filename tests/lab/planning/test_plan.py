"""Plans: what is predicted from public numbers, against what simulated policies do."""

import dataclasses
import json
import math

import numpy as np
import pytest

import fliphat
from fliphat import FLIPHAT, Iht, Pursuit, cli
from fliphat.environments import Equicorrelated, SparseLinear
from fliphat.simulation import play

NUMBERS = {"dim": 400, "sparsity": 10, "epsilon": 1.0, "delta": 0.01}


REWARD_SCALE = 1.5


def test_the_first_episode_of_pursuit_is_the_one_it_plays():
    found = fliphat.plan(**NUMBERS, reward_scale=1.5, rounds=3000, fit=Pursuit())
    policy = FLIPHAT(**NUMBERS, reward_scale=1.5, fit=Pursuit(), seed=1)
    play(policy, SparseLinear(400, seed=1), 1000)
    planned, facts = found.episodes[0], policy.history[0]
    assert (planned.rounds, planned.picks, planned.noise) == (facts.rounds, facts.sparsity, facts.noise_scale)
    assert found.episodes[-1].first_round <= 3000 < found.episodes[-1].released_before
    assert found.guarantee == str(FLIPHAT(**NUMBERS, fit=Pursuit()).guarantee)
    assert found.guarantee.startswith("Proven")


def test_hard_thresholding_is_not_planned():
    with pytest.raises(ValueError, match="fit must be Pursuit"):
        fliphat.plan(**NUMBERS, fit=Iht())


COURSES = {
    "much noise": {"epsilon": 0.3},
    "usual": {},
    "little noise": {"epsilon": 4.0},
    "many columns": {"dim": 4000},
    "correlated": {"correlation": 0.8},
    "mean reward": {"intercept": 3.0},
    "many arms": {"arms": 24},
    "small coefficients": {"coefficient": 0.3},
    "ten matter": {"matter": 10, "sparsity": 20, "coefficient": 0.45},
    "two arms, few columns": {"dim": 100, "arms": 2},
    "very little noise": {"epsilon": 10.0},
    "very much noise": {"epsilon": 0.1},
    "many columns, eight of them small": {
        "dim": 1000, "sparsity": 20, "matter": 8, "coefficient": 0.3, "epsilon": 2.0,
    },
    "ten arms, correlated": {"arms": 10, "correlation": 0.5},
    "correlated, mean reward": {"correlation": 0.3, "intercept": 2.0},
    "tiny coefficients, little noise": {"coefficient": 0.2, "epsilon": 4.0},
    "tiny coefficients": {"coefficient": 0.15},
    "one matters": {"matter": 1, "coefficient": 1.0, "sparsity": 3},
    "twenty matter": {"matter": 20, "sparsity": 40, "coefficient": 0.3},
    "many arms, much noise": {"arms": 24, "epsilon": 0.5},
}  # fmt: skip


def simulated_course(rounds, seeds, **numbers):
    """Return the regret of every round of simulated policies in the world that a plan assumes."""
    found, count = [], numbers["matter"]
    own = count * numbers["coefficient"] ** 2
    for seed in range(40_000, 40_000 + seeds):
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], count)
        dim = numbers["dim"]
        environment = SparseLinear(
            dim,
            numbers["arms"],
            coefficients=(np.arange(count) * (dim // count), numbers["coefficient"] * signs),
            contexts=Equicorrelated(numbers["correlation"]),
            noise_scale=math.sqrt(max(REWARD_SCALE**2 - own, 0.01 * REWARD_SCALE**2)),
            reward_offset=numbers["intercept"],
            seed=seed,
        )
        policy = FLIPHAT(
            dim, numbers["sparsity"], numbers["epsilon"], 0.01, reward_scale=REWARD_SCALE, fit=Pursuit(),
            seed=seed,
        )  # fmt: skip
        found.append(play(policy, environment, rounds, to_the_end=True).regret)
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", COURSES)
def test_the_predicted_course_is_the_simulated(name):
    rounds, seeds = 20_000, 40
    numbers = {
        **NUMBERS, "arms": 3, "matter": 5, "coefficient": 0.6, "correlation": 0.0, "intercept": 0.0,
        **COURSES[name],
    }  # fmt: skip
    found = fliphat.plan(**numbers, reward_scale=REWARD_SCALE, rounds=rounds, fit=Pursuit())
    regret = simulated_course(rounds, seeds, **numbers)
    # As in a plan, the worst run counts as the second worst: one in a few hundred is lost for long.
    totals = np.sort(regret.sum(axis=1))
    totals[-1] = totals[-2]
    assert 0.7 <= found.regret / totals.mean() <= 1.4
    low, high = found.regret_range
    assert np.mean((low <= totals) & (totals <= high)) >= 0.45
    # The course itself: rounds whose regret was more than half of the first ones'.
    window, mean = 50, regret.mean(axis=0)
    smooth = np.convolve(mean, np.ones(window) / window, "valid")
    level = found.random_regret / rounds
    start = int(np.flatnonzero(smooth < 0.5 * level)[0]) + window // 2
    # It falls in steps of an episode: one step that ends just above half, or just below, moves it by so much.
    one = found.episodes[0].rounds + window
    assert start / 2 - one <= found.learning_starts <= 2 * start + one


def test_rare_clicks_on_sparse_rows_are_not_promised_early():
    clicks = {**NUMBERS, "loss": "logistic", "rounds": 10_000}
    assert fliphat.plan(**clicks).learning_starts < 3000
    rare = fliphat.plan(**clicks, fit=Pursuit(), intercept=-3.0, nonzeros=20)
    assert rare.learning_starts is None and rare.regret > 0.9 * rare.random_regret
    assert "Values of a context are 0 but for 20 that are normal" in str(rare)
    assert "Rewards have log odds of -3" in str(rare)


def test_no_number_is_printed_as_zero():
    shown = str(fliphat.plan(**NUMBERS, rounds=50_000, fit=Pursuit()))
    rows = [line.split() for line in shown.splitlines()[2:40] if line.strip()]
    noises = [row[4] for row in rows if row[0].isdigit()]
    assert len(noises) > 20 and all(float(noise) > 0 for noise in noises)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arms": 1}, "arms must be an integer from 2"),
        ({"correlation": 1.0}, "correlation must be at least 0 and below 1, got 1.0"),
        ({"correlation": 0.5, "nonzeros": 3}, "correlation must be 0 for contexts with zeros, got 0.5"),
        ({"nonzeros": 401}, "nonzeros must be an integer from 1 to 400, got 401"),
        ({"matter": 0}, "matter must be an integer from 1"),
    ],
)
def test_bad_worlds_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        fliphat.plan(**NUMBERS, **options)


@pytest.mark.parametrize(
    ("harder", "easier"),
    [
        ({"epsilon": 0.5}, {}),
        ({"dim": 4000}, {"dim": 40}),
        ({"coefficient": 0.3}, {}),
        ({"rounds_per_user": 3}, {}),
        ({"reward_scale": 2.0}, {}),
        ({"intercept": 4.0}, {}),
        ({"nonzeros": 200}, {}),
    ],
)
def test_what_is_harder_costs_more_with_pursuit(harder, easier):
    # Learning starts with an episode, so the round may be the same.
    usual = {**NUMBERS, "coefficient": 0.5, "rounds": 8_000}
    costs = [fliphat.plan(**{**usual, **changes}) for changes in (harder, easier)]
    assert costs[0].regret / costs[0].random_regret > costs[1].regret / costs[1].random_regret


@pytest.mark.parametrize(
    "units", [{"context_scale": 10.0, "coefficient": 0.05}, {"reward_scale": 10.0, "coefficient": 5.0}]
)
def test_units_do_not_matter(units):
    plain, other = (
        fliphat.plan(**{**NUMBERS, "rounds": 4_000, **told}) for told in ({"coefficient": 0.5}, units)
    )
    # Courses are drawn with the same bits; scores are rounded differently, which may change a pick.
    assert other.regret / other.random_regret == pytest.approx(plain.regret / plain.random_regret, rel=0.25)


def test_the_same_numbers_make_the_same_plan():
    numbers = {**NUMBERS, "rounds": 1000}
    assert fliphat.plan(**numbers) == fliphat.plan(**numbers)


def test_what_cant_be_found_is_said():
    found = fliphat.plan(**NUMBERS, coefficient=1e-3)
    assert found.learning_starts is None and found.with_half_epsilon is None
    assert "does not come to lose less than half of what random play loses within 20,000 rounds." in said(
        found
    )
    assert "more rounds or a larger epsilon would help" in said(found)
    half = fliphat.plan(**NUMBERS, coefficient=0.3, rounds=1000)
    assert half.learning_starts is not None and half.with_half_epsilon is None
    assert "With epsilon = 0.5, half of it, not within 1,000 rounds." in str(half)


def test_before_the_first_estimate_nothing_is_said_of_runs_that_differ():
    found = fliphat.plan(**{**NUMBERS, "epsilon": 0.1}, rounds=200)
    first = found.episodes[0].rounds
    assert first > 200 and found.learning_starts is None
    assert f"The first estimate comes after {first:,} rounds: until then play is random." in said(found)
    assert "Runs differ" not in said(found) and "not found in time" not in said(found)
    axes = found.plot().axes[0]
    assert "The first estimate comes after" in axes.texts[0].get_text()
    assert axes.get_ylim()[1] > 1  # the line of random play is not cut


def test_coefficients_that_are_found_are_not_said_to_be_missing():
    found = fliphat.plan(**NUMBERS, rounds=2000)
    unfinished = dataclasses.replace(found, learning_starts=None, with_half_epsilon=None)
    assert found.episodes[-2].smallest_coefficient < 0.5
    assert "not found in time" not in said(unfinished)


def test_the_command_prints_a_table_json_and_a_picture(tmp_path, capsys):
    arguments = ["plan", "--dim", "400", "--sparsity", "10", "--epsilon", "1", "--delta", "0.01"]
    assert cli.main(arguments) == 0
    table = capsys.readouterr().out
    found = fliphat.plan(**NUMBERS)
    assert table.strip() == str(found) and found.answer in said(found)
    assert f"from about round {found.learning_starts:,} on" in found.answer and "epsilon = 1" in found.answer
    later = f"half of it, from about round {found.with_half_epsilon:,} on"
    late = found.with_half_epsilon >= 1.1 * found.learning_starts
    assert (later in said(found)) == late and ("half of it, about as soon" in said(found)) != late
    picture = tmp_path / "plan.svg"
    assert cli.main([*arguments, "--json", "--out", str(picture)]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(found.to_dict()))
    assert "What a round loses, epsilon = 1 (band: eight runs in ten)" in picture.read_text()


def said(found):
    return " ".join(str(found).split())


def test_the_page_and_the_card_answer_first(tmp_path, capsys):
    page = tmp_path / "plan.html"
    arguments = [
        "plan",
        "--dim",
        "400",
        "--sparsity",
        "10",
        "--epsilon",
        "1",
        "--delta",
        "0.01",
        "--rounds",
        "2000",
    ]
    assert cli.main([*arguments, "--out", str(page)]) == 0
    found = fliphat.plan(**NUMBERS, rounds=2000)
    text = page.read_text()
    assert f"<h1>{found.answer}</h1>" in text and text.count("<svg ") == 2 and "var(--blue)" in text
    assert all(sentence in text for sentence in found.assumptions)
    assert f"<strong>{found.answer}</strong>" in found._repr_html_()


def test_the_figure_shows_the_course_in_its_band():
    found = fliphat.plan(**NUMBERS, rounds=3000)
    axes = found.plot().axes[0]
    course = axes.lines[1].get_ydata()
    steps = [one for one in found.episodes if one.released_before <= 3000]
    assert course.tolist() == [one.regret_share for one in steps]
    line = dict(zip(*axes.lines[0].get_data(), strict=True))
    shares = {one.released_before: one.regret_share for one in steps}
    # The marked start of learning lies on the line.
    assert line == {found.learning_starts: 0.5} | shares
    assert all(one.regret_band[0] <= one.regret_share <= one.regret_band[1] for one in steps)
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() >= course.max() and "epsilon = 1" in axes.get_title(loc="left")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--epsilon", "-1"], "epsilon must be a finite number above 0, got -1.0"),
        (["--delta", "1"], "delta must be at least 0 and below 1, got 1.0"),
        (["--sparsity", "500"], "sparsity must be an integer from 1 to 400, got 500"),
        (["--coefficient", "0"], "coefficient must be a finite number above 0, got 0.0"),
        (["--out", "plan.gif"], "--out must end in .png, .svg, .pdf or .html, got 'plan.gif'"),
        (["--out", "no/such/plan.png"], "--out must be in a directory that exists"),
    ],
)
def test_mistakes_are_one_line(changes, message, capsys):
    arguments = ["plan", "--dim", "400", "--sparsity", "10", "--epsilon", "1", "--delta", "0.01"]
    assert cli.main([*arguments, *changes]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert captured.err.startswith("fliphat: error: ") and message in captured.err
