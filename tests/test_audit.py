import json
import math

import numpy as np
import pytest
from scipy import stats

from fliphat import cli
from fliphat._audit_command import all_cases
from fliphat.privacy.audit import Case, Finding, audit_case
from fliphat.privacy.audit.bounds import bound_event, choose_event, clopper_pearson, epsilon_bound

CASES = all_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_claims_stand_and_controls_are_caught(case):
    # The policy's own runs are slow: a few hundred show what they must.
    runs = 100_000 if case.cost == 1 else 700 * case.cost
    finding = audit_case(case, runs, seed=11, threads=2)
    assert finding.as_it_should_be, finding


def test_there_are_controls_and_claims():
    assert sum(case.broken is None for case in CASES) >= 7
    assert sum(case.broken is not None for case in CASES) == 5


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
    monkeypatch.setattr("fliphat._audit_command.all_cases", lambda: [case])
    assert cli.main(["audit", "--runs", "40000", "--seed", "1"]) == 1
    assert "refuted or a control was missed" in capsys.readouterr().err


def test_an_unknown_case_is_one_line_and_exit_code_2(capsys):
    assert cli.main(["audit", "--case", "nothing"]) == 2
    assert "--case must be part of a case's name, got 'nothing'" in capsys.readouterr().err
