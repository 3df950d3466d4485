"""A ledger prices all fits on the same people as one sequence, and refuses what passes its budget."""

import contextlib
import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from fliphat import PrivateSparseClassifier, PrivateSparseRegressor
from fliphat.privacy import BudgetError, Ledger, composition, epsilon_from_rho
from fliphat.privacy.calibration import calibrate
from fliphat.privacy.composition import Gaussian, Pick
from fliphat.privacy.conversion import rho_from_epsilon
from fliphat.privacy.guarantee import state_guarantee
from fliphat.privacy.priced import Part, PickNoise, PricedRelease, VectorNoise

X = np.random.default_rng(0).standard_normal((400, 6))
Y = X[:, 1] - X[:, 4]


def model(ledger, **given):
    # Hard thresholding, whose releases have a price together; fits in parts are at the end of this file.
    usual = {"epsilon": 0.5, "delta": 1e-4, "sparsity": 2, "solver": "iht"}
    return PrivateSparseRegressor(**usual | given, ledger=ledger)


def events_of(noise):
    """The releases of a fit, written down by hand: s picks, then s values, M times."""
    eta, mu = Fraction(2 * 2**16, noise.pick_scale), 2**16 / noise.value_scale * math.sqrt(noise.sparsity)
    return ([Pick(float(eta))] * noise.sparsity + [Gaussian(mu)]) * noise.iterations


def test_all_fits_together_cost_what_their_sequence_costs():
    ledger, events = Ledger(delta=1e-3), []
    for epsilon in (0.3, 0.7, 0.5):
        fitted = model(ledger, epsilon=epsilon).fit(X, Y)
        events += events_of(fitted.noise_)
        expected = composition.epsilon(1e-3, events)
        assert fitted.guarantee_.epsilon == pytest.approx(expected, rel=1e-5)
        assert fitted.guarantee_.delta == 1e-3 and fitted.guarantee_.proven
        assert composition.delta(fitted.guarantee_.epsilon, events) <= 1e-3 * (1 + 1e-9)
    assert ledger.fits == fitted.guarantee_.fits == 3 and ledger.epsilon == fitted.guarantee_.epsilon
    assert "3 fits" in str(fitted.guarantee_)
    # Less than adding up claims, and than zCDP: that is what the exact price is for.
    assert ledger.epsilon < epsilon_from_rho(float(ledger.rho), 1e-3) and ledger.epsilon < 1.5


def test_the_order_of_fits_is_part_of_the_price():
    # The control: a ledger that sorted its fits would claim the cheaper order.
    claim = state_guarantee(
        calibrate(epsilon=1.0, delta=0.01, rows=10, dim=5, sparsity=1, iterations=1, step_size=1.0,
                  l1_radius=1.0, clip=1.0), setting="regression")  # fmt: skip
    picks = PricedRelease(noise=(PickNoise(47, 200, count=2),), epsilon=2.0, delta=0.01)
    vector = PricedRelease(noise=(VectorNoise(Part(37**2, 100)),), epsilon=2.0, delta=0.01)

    def total(*order):
        ledger = Ledger(delta=0.005)
        for one in order:
            stated = ledger.spend(one, claim)
        return stated.epsilon

    assert total(vector, picks) > 1.02 * total(picks, vector)


def test_a_fit_beyond_the_budget_is_refused_before_rows_are_read():
    ledger = Ledger(delta=1e-3, epsilon=1.0)
    estimator = model(ledger)
    for _ in range(20):
        with contextlib.suppress(BudgetError):
            estimator.fit(X, Y)
    done = ledger.fits
    assert 1 < done < 20 and ledger.fits == done and ledger.epsilon <= 1.0
    before = estimator.coef_.copy()
    with pytest.raises(BudgetError, match=r"budget of epsilon = 1\.0"):
        estimator.fit(X, Y)
    assert np.array_equal(before, estimator.coef_) and ledger.fits == done
    events = [event for _ in range(done + 1) for event in events_of(estimator.noise_)]
    assert composition.delta(1.0, events) > 1e-3  # one more would indeed be too much


def test_cross_validation_and_searches_spend_once_a_fit():
    ledger = Ledger(delta=1e-3)
    cross_val_score(model(ledger, epsilon=0.1), X, Y, cv=3)
    assert ledger.fits == 3
    search = GridSearchCV(model(ledger, epsilon=0.1), {"sparsity": [1, 2]}, cv=2).fit(X, Y)
    assert ledger.fits == 3 + 2 * 2 + 1
    assert search.best_estimator_.guarantee_.fits == 8
    assert search.best_estimator_.guarantee_.epsilon == ledger.epsilon > 0.2
    assert clone(search.best_estimator_).ledger is ledger and copy.deepcopy(ledger) is ledger


def test_a_copy_for_another_process_can_be_read_and_cannot_spend():
    ledger = Ledger(delta=1e-3)
    fitted = pickle.loads(pickle.dumps(model(ledger).fit(X, Y)))
    assert fitted.ledger.fits == 1 and fitted.ledger.epsilon == ledger.epsilon
    with pytest.raises(TypeError, match="ledger is a copy"):
        fitted.fit(X, Y)


def test_fits_that_follow_from_results_are_added_in_zcdp_within_a_budget():
    with pytest.raises(ValueError, match="epsilon must be given"):
        Ledger(delta=1e-3, accounting="zcdp")
    ledger = Ledger(delta=1e-3, epsilon=2.0, accounting="zcdp")
    fitted = [model(ledger).fit(X, Y) for _ in range(3)][-1]
    assert fitted.guarantee_.accounting == "zcdp" and fitted.guarantee_.rho == 3 * fitted.noise_.rho
    assert fitted.guarantee_.epsilon == pytest.approx(epsilon_from_rho(float(ledger.rho), 1e-3), rel=1e-9)


def test_pure_fits_add_up():
    ledger = Ledger(delta=0.0, epsilon=1.0)
    fitted = [model(ledger, epsilon=0.4, delta=0.0).fit(X, Y) for _ in range(2)][-1]
    assert fitted.guarantee_.accounting == "pure" and 0.79 < fitted.guarantee_.epsilon <= 0.8
    with pytest.raises(BudgetError):
        model(ledger, epsilon=0.4, delta=0.0).fit(X, Y)
    with pytest.raises(ValueError, match="delta must be 0 for every fit"):
        model(ledger).fit(X, Y)


def test_what_can_not_be_in_one_account_is_refused():
    ledger = Ledger(delta=1e-3)
    model(ledger).fit(X, Y)
    with pytest.raises(ValueError, match="rows_per_user must be 1"):
        model(ledger, rows_per_user=2).fit(X, Y)
    with pytest.warns(UserWarning, match="No privacy"), pytest.raises(ValueError, match="cost is proven"):
        model(ledger, calibration="paper").fit(X, Y)
    assert ledger.fits == 1
    seeded = model(ledger, random_state=1).fit(X, Y)
    assert not seeded.guarantee_.proven
    assert not model(ledger).fit(X, Y).guarantee_.proven  # one of the fits had no noise worth the name


def test_mixtures_of_laws_and_rows_of_one_person():
    ledger = Ledger(delta=1e-3)
    model(ledger, rows_per_user=2, mechanism="laplace").fit(X, Y)
    mixed = model(ledger, rows_per_user=2).fit(X, Y).guarantee_
    assert mixed.accounting == "exact" and mixed.rounds_per_user == 2 and mixed.proven
    discrete = model(ledger, rows_per_user=2, value_noise="gaussian").fit(X, Y).guarantee_
    assert discrete.accounting == "zcdp" and discrete.fits == 3


def test_the_classifier_takes_one_too():
    ledger = Ledger(delta=1e-3)
    fitted = PrivateSparseClassifier(epsilon=0.5, delta=1e-4, ledger=ledger).fit(X, Y > 0)
    assert ledger.fits == fitted.guarantee_.fits == 1


@pytest.mark.parametrize("estimator", [PrivateSparseRegressor, PrivateSparseClassifier])
def test_weights_of_rows_are_refused_with_the_reason(estimator):
    with pytest.raises(TypeError, match="sample_weight is not supported: a row of weight w"):
        estimator().fit(X, Y > 0, sample_weight=np.ones(len(Y)))
    with pytest.raises(TypeError, match="unexpected keyword argument 'wieghts'"):
        estimator().fit(X, Y, wieghts=1)


@pytest.mark.parametrize("accounting", ["exact", "zcdp"])
def test_fits_in_parts_cost_what_no_part_can_pass(accounting):
    # Sizes of later parts follow from what earlier ones release: only a bound is known before rows are read.
    ledger = Ledger(delta=1e-3, epsilon=2.0, accounting=accounting)
    allowed = Fraction(rho_from_epsilon(0.5, 1e-4))
    for fits in (1, 2, 3):
        fitted = model(ledger, solver="auto").fit(X, Y)
        assert fitted.guarantee_.rho == ledger.rho == fits * allowed
        assert fitted.guarantee_.accounting == "zcdp" and fitted.guarantee_.fits == fits
        assert len(fitted.noise_) > 1 and max(part.rho for part in fitted.noise_) <= allowed
        assert min(part.rho for part in fitted.noise_) > 0.999 * allowed
    assert fitted.guarantee_.epsilon == pytest.approx(epsilon_from_rho(float(3 * allowed), 1e-3), rel=1e-9)
    for _ in range(20):
        with contextlib.suppress(BudgetError):
            fitted.fit(X, Y)
    with pytest.raises(BudgetError):
        fitted.fit(X, Y)
    assert 3 < ledger.fits < 23 and ledger.epsilon <= 2.0


def test_fits_in_parts_beside_others():
    ledger = Ledger(delta=1e-3)
    single = model(ledger).fit(X, Y)
    both = model(ledger, solver="pursuit").fit(X, Y).guarantee_
    assert both.rho == single.noise_.rho + Fraction(rho_from_epsilon(0.5, 1e-4)) and both.fits == 2
    # The control: the exact price of a part is not a bound of its zCDP cost, and is refused as one.
    alone = model(None, solver="pursuit").fit(X, Y).guarantee_
    assert alone.accounting == "exact"
    with pytest.raises(ValueError, match="noise must be the zCDP cost"):
        ledger.spend(Fraction(rho_from_epsilon(0.5, 1e-4)), alone)
    with pytest.raises(ValueError, match="delta must be 0"):
        model(Ledger(delta=0.0), solver="pursuit").fit(X, Y)
