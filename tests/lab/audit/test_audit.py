import json
import math

import numpy as np
import pytest
from scipy import stats

from fliphat import FLIPHAT, Iht, _native, cli
from fliphat.fit.board import BOARD_SQUARED
from fliphat.fit.dense.parts import NAMES
from fliphat.lab.audit import Case, Finding, audit_case, linear
from fliphat.lab.audit import pursuit as _audit_pursuit
from fliphat.lab.audit.bounds import bound_event, choose_event, clopper_pearson, epsilon_bound
from fliphat.lab.audit.fliphat import database_cases
from fliphat.lab.audit.replay import replaying
from fliphat.lab.audit.steps import recorded_steps
from fliphat.lab.audit.table import all_cases
from fliphat.regression import PrivateSparseRegressor
from postgres_server import running_server
from pursuit_question import question

CASES = all_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_claims_stand_and_controls_are_caught(case):
    # Runs that play whole episodes are slow: a few hundred show that they can be made.
    runs = 100_000 if case.cost < 100 else 200
    finding = audit_case(case, runs * case.cost, seed=11, threads=2)
    assert finding.as_it_should_be, finding


def test_a_policy_in_a_database_keeps_its_claim_and_its_control_is_caught():
    with running_server() as server:
        claim, control = database_cases(server.new)
        for case in (claim, control):
            finding = audit_case(case, 100_000 * case.cost, seed=11, threads=2)
            assert finding.as_it_should_be and finding.control == (case is control), finding


def test_there_are_controls_and_claims():
    controls = [case.name for case in CASES if case.broken is not None]
    assert len(CASES) - len(controls) >= 20
    assert len(controls) == 31
    assert "FLIPHAT, pursuit, a pick that follows another, noise at 2/3" in controls
    assert "FLIPHAT, named arms, a pick and what it opens, noise at 2/3" in controls
    assert "FLIPHAT, noise at 2/3 of what is needed" in controls
    assert "FLIPHAT, an episode's rows used twice" in controls
    assert "FLIPHAT, pursuit, noise at 2/3 of what is needed" in controls
    assert "FLIPHAT, pursuit, an episode's rows used twice" in controls


@pytest.mark.parametrize("estimator", ["policy", "regressor"])
def test_what_is_replayed_is_what_the_kernel_was_given_and_released(estimator):
    # Recorded calls made again with the same predictable noise release the very same estimate.
    X = np.random.default_rng(1).normal(size=(12, 5)).astype(np.float32)
    y = X[:, 1].astype(float)
    noise = _native.RecordingNoise()
    if estimator == "policy":
        policy = FLIPHAT(dim=5, sparsity=2, epsilon=1.0, delta=0.1, first_episode=12, fit=Iht(), seed=3)
        policy._fit.noise = lambda episode: noise
        decisions = policy.select_batch(X[:, None])
        policy.update_batch(decisions.ids[:9], y[:9])  # three rewards never come
        policy.select_batch(X[:1, None])
        assert not policy._fit.guarantee().proven
    else:
        model = PrivateSparseRegressor(1.0, 0.1, sparsity=2, random_state=3, solver=Iht())
        model._noise = noise
        model.fit(X, y)
    calls = noise.fits
    assert len(calls) == 1
    rows, rewards, start, settings, present = calls[0]
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, X)
    assert start.tolist() == [0] * 5
    if estimator == "policy":
        assert present.tolist() == [1] * 9 + [0] * 3
        np.testing.assert_array_equal(rewards[:9], y[:9].astype(np.float32))
    (columns, values), *_ = reversed(
        _native.niht_fit(rows, rewards, start, settings, present, None, _native.SeededNoise(5, 0))
    )
    # One run on one side with the seed's first stream: its score is the estimate's first picked value.
    for column, value in zip(columns, values, strict=True):
        weights = np.zeros((1, 5))
        weights[0, column] = 1.0
        view = (np.zeros((1, 2, 5)), weights, value - 1e-9, value + 1e-9, 3)
        (counts,) = _native.audit_fits(([calls[0]], [calls[0]]), [view], 1, 1, 5)
        assert counts[0].tolist() == [0, 1, 0]


def test_a_fit_that_is_not_recorded_is_an_error():
    with pytest.raises(RuntimeError, match="no fit was recorded"):
        replaying(lambda: ([], [], []))(10, 1, None)


class Scores:
    """Sums that columns are picked by, and no others: as bytes."""

    def __init__(self, scores, after=None):
        self.scores, self.after = np.array(scores), after

    def candidates(self):
        return self.scores.tobytes()

    def further(self, columns, signs):
        return (self.scores - self.after * signs[0] * np.arange(len(self.scores))).tobytes()

    def vector(self, columns, signs):
        m = 1 + len(columns)
        return bytes(8 * (m * (m + 3) // 2 + 1))


def test_a_release_that_is_not_recorded_or_not_alone_is_an_error():
    asked = question(pick_scale=9)

    def twice(noise):
        for _ in range(2):
            _native.release_sums(asked, Scores([1, 2]), noise)

    with pytest.raises(RuntimeError, match="no release was recorded"):
        recorded_steps(lambda noise: None)
    with pytest.raises(RuntimeError, match="one release was expected, got 2 of picks and 2 of vectors"):
        recorded_steps(twice)


@pytest.mark.parametrize("signed", [False, True])
def test_chances_of_picks_are_those_that_the_kernel_draws(signed):
    asked = question([3], [0.0, 0.0], picks=2, pick_scale=10, signed=signed)
    sums = Scores([5, -20, 8, 3])
    sums.vector = lambda columns, signs: bytes(8 * 15)
    call = recorded_steps(lambda noise: _native.release_sums(asked, sums, noise))
    assert len(call.outcomes) == (24 if signed else 6)
    assert np.exp(call.log_chances()).sum() == pytest.approx(1)
    places = {outcome: place for place, outcome in enumerate(call.outcomes)}
    drawn = np.zeros(len(places))
    for seed in range(20_000):
        _, columns, signs, _ = _native.release_sums(asked, sums, _native.SeededNoise(seed, 0))
        drawn[places[tuple(zip(columns.tolist(), signs.tolist(), strict=True))]] += 1
    assert stats.chisquare(drawn, 20_000 * np.exp(call.log_chances())).pvalue > 1e-6
    again = np.bincount(call.drawn(20_000, None), minlength=len(call.outcomes))
    assert stats.chisquare(again, 20_000 * np.exp(call.log_chances())).pvalue > 1e-6


def test_the_scoreboards_case_moves_its_numbers_as_far_as_they_were_charged_for():
    first, second = linear._lived(0, 0, linear._REWARDS)
    (one,), (other,) = ([part for part in life[0] if part.name == NAMES["board"]] for life in (first, second))
    assert ((one.added - other.added) ** 2).sum() == BOARD_SQUARED


def test_the_exact_price_leaves_no_slack():
    # Within a tenth of the claim from runs alone: noise that is smaller by a tenth is a control.
    case = next(case for case in CASES if case.name == "one pick and its value, exact price")
    assert 0.9 < audit_case(case, 400_000, seed=3, threads=2).lower_bound < 1


@pytest.mark.parametrize("name", ["peel, exponential", "niht, M = 1", "niht, M = 3, every iterate"])
def test_the_audit_is_not_toothless(name):
    # The bounds come close enough to the claim that noise of half the scale would be refuted.
    case = next(case for case in CASES if case.name == name)
    assert audit_case(case, 200_000, seed=3, threads=2).lower_bound > 0.5 * case.claimed_epsilon


def test_clopper_pearson_is_the_exact_interval():
    for hits, runs in [(0, 10), (3, 10), (10, 10), (500, 10_000)]:
        low, high = clopper_pearson(hits, runs, 0.999)
        interval = stats.binomtest(hits, runs).proportion_ci(0.999, "exact")
        assert (float(low), float(high)) == pytest.approx((interval.low, interval.high), rel=1e-9)


def randomised_response(epsilon, answers=1):
    """Return the exact law of a mechanism whose epsilon is known."""

    def count(runs, threads, seed):
        rng = np.random.default_rng(seed)
        truth = 1 / (1 + math.exp(-epsilon))
        sides = [rng.binomial(runs, p) for p in (truth, 1 - truth)]
        return [tuple(np.array([hits, runs - hits], np.uint64) for hits in sides)]

    return count


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_bound_is_below_the_truth_and_close_to_it(epsilon):
    true = audit_case(Case("response", epsilon, 0.0, randomised_response(epsilon)), 1_000_000, seed=1)
    assert 0.9 * epsilon < true.lower_bound <= epsilon
    lie = audit_case(Case("response", 0.85 * epsilon, 0.0, randomised_response(epsilon)), 1_000_000, seed=1)
    assert lie.refuted


def test_bounds_hold_at_their_confidence():
    # 2 000 audits of a mechanism whose epsilon is known: about one in a thousand may exceed it.
    rng = np.random.default_rng(0)
    runs, truth = 2_000, 1 / (1 + math.exp(-1.0))
    above = 0
    for _ in range(2_000):
        halves = []
        for _ in range(2):
            hits = [rng.binomial(runs, p) for p in (truth, 1 - truth)]
            halves.append([tuple(np.array([h, runs - h], np.uint64) for h in hits)])
        event = choose_event(halves[0], runs, 0.0, 0.999)
        above += bound_event(event, halves[1], runs, 0.0, 0.999) > 1.0
    assert above <= 8


def test_delta_is_respected():
    # An event that only ever happens on one side, with probability delta, proves nothing.
    assert epsilon_bound(100, 0, 100_000, 0.002, 0.999) == 0
    assert epsilon_bound(100, 0, 100_000, 0.0, 0.999) > 1


def test_findings_say_what_they_mean():
    finding = Finding("x", 1.0, 0.0, 1.5, 10, control=False)
    assert (finding.verdict, finding.as_it_should_be) == ("REFUTED", False)
    finding = Finding("x", 1.0, 0.0, 0.5, 10, control=True)
    assert (finding.verdict, finding.as_it_should_be) == ("MISSED", False)
    with pytest.raises(ValueError, match="runs must be at least 2, got 1"):
        audit_case(CASES[0], 1)


def test_same_seed_same_finding_and_other_noise_without():
    case = CASES[0]
    assert audit_case(case, 10_000, seed=5) == audit_case(case, 10_000, seed=5)
    assert case.count(1000, 1, None)[1][0].tolist() != case.count(1000, 1, None)[1][0].tolist()


def test_the_command_prints_a_table_and_its_exit_code_tells(capsys, monkeypatch):
    assert cli.main(["audit", "--runs", "40000", "--seed", "1", "--case", "M = 2"]) == 0
    shown = capsys.readouterr().out
    assert "consistent" in shown
    assert "caught" in shown
    assert "1 of 1 claims stand, 1 of 1 broken mechanisms are caught." in shown
    assert cli.main(["audit", "--runs", "40000", "--seed", "1", "--case", "M = 2", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["sound"]
    assert {finding["verdict"] for finding in record["findings"]} == {"consistent", "caught"}


@pytest.mark.parametrize(
    "case",
    [
        Case("refuted", 0.1, 0.0, randomised_response(1.0)),
        Case("missed", 9.0, 0.0, randomised_response(1.0), "x"),
    ],
)
def test_a_refuted_claim_or_a_missed_control_is_exit_code_1(case, capsys, monkeypatch):
    monkeypatch.setattr("fliphat.lab.audit.table.all_cases", lambda: [case])
    assert cli.main(["audit", "--runs", "40000", "--seed", "1"]) == 1
    assert "refuted or a control was missed" in capsys.readouterr().err


def test_an_unknown_case_is_one_line_and_exit_code_2(capsys):
    assert cli.main(["audit", "--case", "nothing"]) == 2
    assert "--case must be part of a case's name, got 'nothing'" in capsys.readouterr().err


def test_a_pick_that_follows_another_is_recorded_after_every_outcome_of_the_first():
    (first,), _ = _audit_pursuit._recorded(_audit_pursuit._TWO_PICKS, 0)
    assert len(first.pickings[()].outcomes()) == 10
    after = {outcome: picking for outcome, picking in first.pickings.items() if outcome}
    assert sorted(after) == sorted(first.pickings[()].outcomes())
    for ((column, _),), picking in after.items():
        assert picking.count == 1 and picking.excluded == (column,)
    # What a pick is likely to explain is taken off: the sums that the next one sees depend on it.
    assert len({picking.scores.tobytes() for picking in after.values()}) > 2
    assert np.exp(first.log_chances()).sum() == pytest.approx(1)


def test_picks_that_follow_one_another_have_the_chances_that_the_kernel_draws():
    asked = question(picks=2, pick_scale=10, assumed=1.0, last_signed=False)
    sums = Scores([5, -20, 8], after=6)
    call = recorded_steps(lambda noise: _native.release_sums(asked, sums, noise))
    assert len(call.outcomes) == 12
    assert np.exp(call.log_chances()).sum() == pytest.approx(1)
    places = {outcome: place for place, outcome in enumerate(call.outcomes)}
    drawn = np.zeros(len(places))
    for seed in range(20_000):
        _, columns, signs, _ = _native.release_sums(asked, sums, _native.SeededNoise(seed, 0))
        drawn[places[tuple(zip(columns.tolist(), signs.tolist(), strict=True))]] += 1
    assert stats.chisquare(drawn, 20_000 * np.exp(call.log_chances())).pvalue > 1e-6
