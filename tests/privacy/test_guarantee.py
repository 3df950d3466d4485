"""The claim shown to users: true to what was run, readable, and impossible to overstate."""

from __future__ import annotations

import dataclasses
import json
import pickle
import subprocess
import sys
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from fliphat import paper, reference
from fliphat.privacy import (
    Guarantee,
    PrivacyWarning,
    calibrate,
    rho_from_epsilon,
    state_guarantee,
)
from fliphat.privacy.statement import _exp_rounded_up, _rounded_up

SHAPE = {
    "rows": 2048,
    "dim": 400,
    "sparsity": 10,
    "iterations": 3,
    "step_size": 1.0,
    "l1_radius": 4.0,
    "epsilon": 1.0,
    "delta": 0.01,
}


def claim(setting="bandit", user_ids_checked=False, seeded=False, **changes):
    scales = calibrate(**(SHAPE | {"clip": 2.0} | changes))
    return state_guarantee(scales, setting=setting, user_ids_checked=user_ids_checked, seeded=seeded)


def paper_claim(x_max=None, seeded=False):
    rng = np.random.default_rng(0) if seeded else None
    with pytest.warns(PrivacyWarning) as caught:
        found = paper.Fliphat(400, 10, 1.0, 0.01, b_max=4.0, x_max=x_max, rng=rng).guarantee
    assert len(caught) == 1
    return found, str(caught[0].message), caught[0].filename


def test_a_proven_bandit_states_the_whole_budget():
    found = claim()
    assert found.proven
    assert found.reasons == ()
    assert (found.accounting, found.rho, found.release.price <= 0.01) == ("exact", None, True)
    zcdp = claim(accounting="zcdp")
    assert (zcdp.accounting, zcdp.rho) == ("zcdp", Fraction(rho_from_epsilon(1.0, 0.01)))
    assert (found.unit, found.user_ids, found.neighbours) == ("round", "not used", "replace-one")


def test_a_proven_regression_states_what_its_fit_cost():
    scales = calibrate(**SHAPE, clip=2.0)
    assert state_guarantee(scales, setting="regression").rho == scales.rho
    scales = calibrate(**SHAPE, clip=2.0, accounting="zcdp")
    found = state_guarantee(scales, setting="regression")
    assert found.rho == scales.rho < Fraction(rho_from_epsilon(1.0, 0.01))
    assert found.unit == "row"


def test_the_paragraph_says_what_is_and_what_is_not_protected():
    text = str(claim())
    assert text.startswith("Proven: joint differential privacy with epsilon = 1.0, delta = 0.01.")
    for phrase in (
        "everything one round brought (contexts, reward, and whether a reward came)",
        "replaced by anything else",
        "at most 2.719 p plus 0.01",
        "protected for each of them, not for all of them together",
        "Not protected: that a round took place",
        "how long a computation takes",
        "the arm this person was shown",
        "exponential mechanism, rounded Gaussian noise",
        "priced exactly against an observer who adapts to everything released",
        "ChaCha20",
    ):
        assert phrase in text
    zcdp = str(claim(accounting="zcdp"))
    assert "discrete Gaussian noise on integer values, at most 0.1035-zCDP" in zcdp
    assert "NOT PROVEN" not in text
    assert "\n" not in text


def test_the_paragraph_tells_who_answers_for_user_ids():
    promised, checked = claim(rounds_per_user=3), claim(rounds_per_user=3, user_ids_checked=True)
    assert (promised.unit, promised.user_ids) == ("user", "promised")
    assert "no user has more than 3 rounds is promised by the caller and not checked" in str(promised)
    assert (checked.unit, checked.user_ids) == ("user", "checked")
    assert "only the first 3 rounds of a user can be learned from" in str(checked)
    assert "in all their rounds" in str(checked)
    assert "promised" not in str(checked)
    assert "only the first round of a user" in str(claim(user_ids_checked=True))


def test_pure_privacy_has_its_own_words():
    found = claim(delta=0.0)
    assert str(found).startswith("Proven: pure joint differential privacy with epsilon = 1.0, delta = 0.")
    assert "2.719 p, whatever" in str(found)
    assert "zCDP" not in str(found)
    assert "discrete Laplace" in str(found)
    assert found.rho == Fraction(1, 2)


def test_a_regression_is_not_called_joint():
    text = str(claim(setting="regression"))
    assert "joint" not in text
    assert "fitted coefficients" in text
    assert "everything one row brought (features and target)" in text
    assert claim(setting="regression").to_dict()["definition"] == "central"
    assert claim().to_dict()["definition"] == "joint"


def test_a_seed_unproves_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = claim(seeded=True)
    assert not found.proven
    assert "seed" in found.reasons[0]
    assert str(found).startswith("NOT PROVEN: joint differential privacy")
    assert "ChaCha20" not in str(found)
    assert "Meant to be protected" in str(found)


def test_the_papers_noise_is_unproven_and_warns_with_the_factor():
    found, message, filename = paper_claim()
    assert "at least 13.8 times too small" in message
    assert filename == __file__
    assert not found.proven
    assert found.rho is None
    assert found.noise_shortfall == pytest.approx(13.85, abs=0.01)
    assert "at least 13.8 times too small" in str(found)
    both, _, _ = paper_claim(seeded=True)
    assert len(both.reasons) == 2


def test_the_papers_noise_stays_unproven_where_the_factor_is_small():
    found, message, _ = paper_claim(x_max=0.2)
    assert "contexts are not clipped" in message and "times too small" not in message
    assert not found.proven


def test_the_record_is_enough_to_compute_the_price_again():
    record = json.loads(json.dumps(claim().to_dict()))
    assert record["accounting"] == "exact"
    release = record["release"]
    events = [(kind, size) for kind, size, count in release["events"] for _ in range(count)]
    again = reference.price(release["epsilon"], [events], users=release["users"], **release["grid"])
    assert again == pytest.approx(release["price"], rel=1e-6)
    assert again <= record["delta"]
    # Control: half the noise does not support the claim.
    louder = [(kind, 2 * size) for kind, size in events]
    assert reference.price(release["epsilon"], [louder], **release["grid"]) > record["delta"]


@pytest.mark.parametrize("changes", [{}, {"delta": 0.0}, {"epsilon": 0.1, "rounds_per_user": 2}])
def test_records_survive_json(changes):
    found = claim(setting="regression", **changes)
    record = found.to_dict()
    assert json.loads(json.dumps(record)) == record
    assert record["epsilon"] == found.epsilon
    assert Fraction(record["rho_exact"]) == found.rho <= Fraction(record["rho"])
    assert record["proven"] is True
    assert record["reasons"] == []
    assert record["neighbours"] == "replace-one"


def test_the_papers_record():
    found, _, _ = paper_claim()
    record = json.loads(json.dumps(found.to_dict()))
    assert record["rho"] is record["rho_exact"] is None
    assert record["proven"] is False
    assert record["calibration"] == "paper"


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"epsilon": 0.5}, ValueError, "rho must be from 0 to 0.035.*got 0.103"),
        ({"delta": 1e-9}, ValueError, "rho must be from 0 to"),
        ({"rho": Fraction(1)}, ValueError, "rho must be from 0 to 0.103.*got 1"),
        ({"rho": Fraction(-1)}, ValueError, "rho must be from 0 to"),
        ({"rho": 0.1}, TypeError, r"rho must be fractions\.Fraction for proven noise, got float"),
        ({"rho": None}, TypeError, r"rho must be fractions\.Fraction for proven noise, got NoneType"),
        ({"delta": 0.0}, ValueError, "value_noise must be 'laplace' when delta is 0"),
        ({"epsilon": -1.0}, ValueError, "epsilon must be a finite number above 0"),
        ({"noise_shortfall": 3.0}, ValueError, "noise_shortfall must be None for proven noise"),
        ({"calibration": "paper"}, TypeError, "noise_shortfall must be a real number"),
        ({"calibration": "paper", "noise_shortfall": 3.0}, ValueError, "rho must be None for the paper"),
        ({"calibration": "mine"}, ValueError, "calibration must be one of 'proven', 'paper', got 'mine'"),
        ({"setting": "game"}, ValueError, "setting must be one of 'bandit', 'regression', got 'game'"),
        ({"rounds_per_user": 0}, ValueError, "rounds_per_user must be an integer from 1"),
        ({"mechanism": "flip"}, ValueError, "mechanism must be one of"),
    ],
)
def test_control_a_claim_its_cost_does_not_support_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        dataclasses.replace(claim(accounting="zcdp"), **changes)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"epsilon": 0.5}, ValueError, "release must be priced for epsilon = 0.5, got 1.0"),
        ({"delta": 1e-9}, ValueError, "release must be priced for delta = 1e-09, got 0.01"),
        ({"value_noise": "gaussian"}, ValueError, "value_noise must be 'rounded_gaussian' or 'laplace'"),
        ({"release": None}, TypeError, r"rho must be fractions\.Fraction for proven noise, got NoneType"),
        ({"release": 1}, TypeError, "release must be PricedRelease, got int"),
        ({"calibration": "paper", "noise_shortfall": 3.0}, ValueError, "release must be None for the paper"),
    ],
)
def test_control_a_claim_its_releases_do_not_support_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        dataclasses.replace(claim(), **changes)


def test_a_guarantee_cannot_be_changed_or_declared_proven():
    found = claim(seeded=True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.epsilon = 0.1
    with pytest.raises(AttributeError):
        found.proven = True
    with pytest.raises(TypeError, match="proven"):
        dataclasses.replace(found, proven=True)
    assert pickle.loads(pickle.dumps(found)) == found


def test_state_guarantee_refuses_mismatched_input():
    with pytest.raises(TypeError, match="noise must be NoiseScales, got float"):
        state_guarantee(1.0, setting="bandit")
    with pytest.raises(ValueError, match="setting must be one of"):
        state_guarantee(calibrate(**SHAPE, clip=2.0), setting="game")


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.5, 1.0, 5.0, 50.0, 1000.0])
def test_shown_numbers_are_never_below_the_truth(epsilon):
    shown = Decimal(_exp_rounded_up(epsilon))
    assert Decimal(epsilon).exp() <= shown <= Decimal(epsilon).exp() * (1 + Decimal("0.001"))
    assert Fraction(_rounded_up(Fraction(epsilon) / 3)) >= Fraction(epsilon) / 3


def test_importing_privacy_adds_neither_numpy_nor_scipy():
    code = (
        "import sys, fliphat; before = set(sys.modules); import fliphat.privacy; "
        "print(sorted({'numpy', 'scipy'} & (set(sys.modules) - before)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_public_names():
    import fliphat.privacy as privacy

    assert all(hasattr(privacy, name) for name in privacy.__all__)
    assert issubclass(privacy.PrivacyWarning, UserWarning)
    assert privacy.Guarantee is Guarantee
