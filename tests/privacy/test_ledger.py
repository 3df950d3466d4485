"""A ledger prices all fits on the same people as one sequence, and refuses what passes its budget."""

import contextlib
import copy
import math
import multiprocessing
import os
import pickle
import signal
import sqlite3
import time
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from fliphat import Iht, PrivateSparseClassifier, PrivateSparseRegressor, Pursuit, process
from fliphat.kernels import _niht
from fliphat.privacy import BudgetError, Ledger, composition, epsilon_from_rho
from fliphat.privacy.calibration import calibrate
from fliphat.privacy.composition import Gaussian, Pick
from fliphat.privacy.conversion import rho_from_epsilon
from fliphat.privacy.guarantee import state_guarantee
from fliphat.privacy.priced import Part, PickNoise, PricedRelease, VectorNoise
from fliphat.regression import parts

X = np.random.default_rng(0).standard_normal((400, 6))
Y = X[:, 1] - X[:, 4]


def model(ledger, **given):
    # Hard thresholding, whose releases have a price together; fits in parts are at the end of this file.
    usual = {"epsilon": 0.5, "delta": 1e-4, "sparsity": 2, "solver": Iht()}
    return PrivateSparseRegressor(**usual | given, ledger=ledger)


def events_of(noise, rows=1):
    """The releases of a fit, written down by hand: s picks, then s values, M times."""
    shift = rows * 2**16
    eta, mu = Fraction(2 * shift, noise.pick_scale), shift / noise.value_scale * math.sqrt(noise.sparsity)
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


def test_rows_of_one_person_make_every_release_as_much_larger():
    ledger, events = Ledger(delta=1e-3), []
    for epsilon in (0.4, 0.6):
        fitted = model(ledger, epsilon=epsilon, rows_per_user=3).fit(X, Y)
        events += events_of(fitted.noise_, rows=3)
        assert fitted.guarantee_.accounting == "exact"
        assert fitted.guarantee_.epsilon == pytest.approx(composition.epsilon(1e-3, events), rel=1e-5)
    # The control: as if each had one row.
    alone = [event.scaled(1 / 3) for event in events]
    assert composition.epsilon(1e-3, alone) < 0.5 * fitted.guarantee_.epsilon


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


def test_a_release_priced_for_one_row_is_not_written_down_for_several():
    claim = PrivateSparseRegressor(rows_per_user=3, sparsity=1, solver=Iht()).fit(X, Y).guarantee_
    priced = PricedRelease(noise=(PickNoise(47, 200),), epsilon=1.0, delta=0.01)
    ledger = Ledger(delta=0.005)
    with pytest.raises(ValueError, match="noise must be priced for one row of a person"):
        ledger.spend(priced, claim)
    assert ledger.fits == 0


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


@pytest.mark.parametrize("solver", [Iht(), Pursuit()])
def test_a_refused_fit_has_read_no_row(monkeypatch, solver):
    ledger = Ledger(delta=1e-4, epsilon=0.51)
    fitted = model(ledger, solver=solver).fit(X, Y)
    before = fitted.coef_.copy()

    def read(*rows, **more):
        raise AssertionError("rows were read")

    monkeypatch.setattr(_niht, "fit", read)
    monkeypatch.setattr(parts, "parts_from_rows", read)
    with pytest.raises(BudgetError):
        fitted.fit(X, Y)
    assert ledger.fits == 1 and np.array_equal(fitted.coef_, before)
    with pytest.raises(AssertionError, match="rows were read"):  # the check can fail
        model(None, solver=solver).fit(X, Y)


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
    assert ledger.fits == 1
    seeded = model(ledger, random_state=1).fit(X, Y)
    assert not seeded.guarantee_.proven
    assert not model(ledger).fit(X, Y).guarantee_.proven  # one of the fits had no noise worth the name


def test_mixtures_of_laws_and_rows_of_one_person():
    ledger = Ledger(delta=1e-3)
    model(ledger, rows_per_user=2, solver=Iht(mechanism="laplace")).fit(X, Y)
    mixed = model(ledger, rows_per_user=2).fit(X, Y).guarantee_
    assert mixed.accounting == "exact" and mixed.rounds_per_user == 2 and mixed.proven


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
        fitted = model(ledger, solver=None).fit(X, Y)
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
    both = model(ledger, solver=Pursuit()).fit(X, Y).guarantee_
    assert both.rho == single.noise_.rho + Fraction(rho_from_epsilon(0.5, 1e-4)) and both.fits == 2
    # The control: the exact price of a part is not a bound of its zCDP cost, and is refused as one.
    alone = model(None, solver=Pursuit()).fit(X, Y).guarantee_
    assert alone.accounting == "exact"
    with pytest.raises(ValueError, match="noise must be the zCDP cost"):
        ledger.spend(Fraction(rho_from_epsilon(0.5, 1e-4)), alone)
    with pytest.raises(ValueError, match="delta must be 0"):
        model(Ledger(delta=0.0), solver=Pursuit()).fit(X, Y)


# A ledger in other processes, and in a file.

fork = multiprocessing.get_context("fork")


def in_child(act):
    """Return what `act` returned, or the name of what it raised, in a forked child."""
    here, there = fork.Pipe(duplex=False)

    def run():
        try:
            there.send(act())
        except Exception as refusal:
            there.send(type(refusal).__name__)

    child = fork.Process(target=run)
    child.start()
    child.join(60)
    assert child.exitcode == 0
    return here.recv()


def fits_run(calls):
    """Count fits that reach the kernel."""
    real = _niht.fit

    def counted(*rows, **more):
        calls.append(1)
        return real(*rows, **more)

    return counted


def test_a_forked_child_can_read_and_cannot_spend(monkeypatch):
    calls = []
    monkeypatch.setattr(_niht, "fit", fits_run(calls))
    ledger = Ledger(delta=1e-4, epsilon=0.51)
    estimator = model(ledger)

    def fit_twice():
        with contextlib.suppress(TypeError):
            estimator.fit(X, Y)
        return len(calls), ledger.fits

    assert in_child(fit_twice) == (0, 0)
    assert in_child(lambda: estimator.fit(X, Y).guarantee_.proven) == "TypeError"
    # The control: with the process's own mark taken for the child's, every child would spend the one fit.
    inherited = ledger._account

    def forgetful():
        inherited._owner = (process.token, os.getpid())
        return estimator.fit(X, Y).guarantee_.proven

    assert [in_child(forgetful) for _ in range(2)] == [True, True]
    assert ledger.fits == 0
    assert estimator.fit(X, Y).guarantee_.fits == 1
    with pytest.raises(BudgetError):
        estimator.fit(X, Y)


def test_a_child_that_was_forked_while_a_thread_spends_does_not_wait_for_ever():
    ledger = Ledger(delta=1e-3)
    with ledger._account._lock:
        assert in_child(lambda: model(ledger).fit(X, Y)) == "TypeError"


@pytest.mark.parametrize("accounting", ["exact", "zcdp"])
def test_a_ledger_in_a_file_is_one_account_for_every_process(tmp_path, accounting):
    def opened():
        return Ledger(delta=1e-3, epsilon=1.5, accounting=accounting, path=tmp_path / "people.ledger")

    first = model(opened()).fit(X, Y).guarantee_
    second = in_child(lambda: model(opened()).fit(X, Y).guarantee_.epsilon)  # as another run of the script
    assert opened().fits == 2 and first.epsilon < second == opened().epsilon
    inherited = model(opened())
    assert in_child(lambda: inherited.fit(X, Y).guarantee_.fits) == 3  # a child may spend: all see it
    pickled = pickle.loads(pickle.dumps(inherited)).fit(X, Y).guarantee_
    memory = Ledger(delta=1e-3, epsilon=1.5, accounting=accounting)
    for _ in range(4):
        together = model(memory).fit(X, Y).guarantee_
    assert (pickled.fits, pickled.epsilon, pickled.rho) == (4, together.epsilon, together.rho)
    for _ in range(30):
        with contextlib.suppress(BudgetError):
            model(memory).fit(X, Y)
    for _ in range(30):
        with contextlib.suppress(BudgetError):
            in_child(lambda: model(opened()).fit(X, Y).guarantee_.fits)
    assert opened().fits == memory.fits < 30 and opened().epsilon == memory.epsilon <= 1.5


def test_processes_at_once_never_spend_more_than_there_is(tmp_path, monkeypatch):
    within = Ledger._within

    def slowly(*given):
        time.sleep(0.02)  # so that another process is there before this one has written
        return within(*given)

    monkeypatch.setattr(Ledger, "_within", slowly)

    def opened():
        return Ledger(delta=0.0, epsilon=2.0, path=tmp_path / "people.ledger")

    here, there = fork.Pipe(duplex=False)

    def run():
        granted = 0
        try:
            for _ in range(10):
                with contextlib.suppress(BudgetError):
                    model(opened(), epsilon=0.2, delta=0.0).fit(X, Y)
                    granted += 1
        finally:
            there.send(granted)

    children = [fork.Process(target=run) for _ in range(3)]
    for child in children:
        child.start()
    granted = sum(here.recv() for _ in children)
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0, 0, 0]
    assert granted == opened().fits == 10


@pytest.mark.parametrize("place", ["before the commit", "after the commit"])
def test_a_process_killed_while_it_spends_has_spent_a_fit_or_has_not_begun_it(tmp_path, monkeypatch, place):
    path, rows_read = tmp_path / "people.ledger", tmp_path / "read"
    Ledger(delta=1e-3, path=path)

    class Killed(sqlite3.Connection):
        def execute(self, statement, *values):
            if statement != "COMMIT":
                return super().execute(statement, *values)
            if place == "after the commit":
                super().execute(statement)
            os.kill(os.getpid(), signal.SIGKILL)

    connect = sqlite3.connect
    child = fork.Process(
        target=lambda: (
            monkeypatch.setattr(_niht, "fit", lambda *rows, **more: rows_read.touch()),
            monkeypatch.setattr(sqlite3, "connect", lambda *at, **how: connect(*at, **how, factory=Killed)),
            model_with_open_ledger.fit(X, Y),
        )
    )
    model_with_open_ledger = model(Ledger(delta=1e-3, path=path))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    assert not rows_read.exists()
    ledger = Ledger(delta=1e-3, path=path)
    assert ledger.fits == (place == "after the commit")
    assert model(ledger).fit(X, Y).guarantee_.fits == 1 + (place == "after the commit")


def test_rows_are_read_once_the_fit_is_on_the_disk(tmp_path, monkeypatch):
    path, seen = tmp_path / "people.ledger", []
    real = _niht.fit

    def looked(*rows, **more):
        with contextlib.closing(sqlite3.connect(path)) as other:
            seen.extend(other.execute("SELECT number FROM fits").fetchall())
        return real(*rows, **more)

    monkeypatch.setattr(_niht, "fit", looked)
    model(Ledger(delta=1e-3, path=path)).fit(X, Y)
    assert seen == [(1,)]


def test_a_file_that_is_lost_changed_or_of_another_ledger_is_refused(tmp_path):
    path = tmp_path / "people.ledger"
    ledger = Ledger(delta=1e-3, epsilon=5.0, path=path)
    for _ in range(3):
        model(ledger).fit(X, Y)
    for other in ({"delta": 1e-4, "epsilon": 5.0}, {"delta": 1e-3, "epsilon": 6.0}, {"delta": 1e-3}):
        with pytest.raises(ValueError, match="must be those that the ledger"):
            Ledger(**other, path=path)
    for damage in (
        "UPDATE fits SET fit = replace(fit, 'rows_per_user', 'rows_per_uzer') WHERE number = 2",
        "DELETE FROM fits WHERE number = 2",
        "DELETE FROM fits WHERE number = 1",
    ):
        kept = path.read_bytes()
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(damage)
        with pytest.raises(ValueError, match=r"is damaged: fit \d was changed or lost"):
            Ledger(delta=1e-3, epsilon=5.0, path=path)
        path.write_bytes(kept)
    assert ledger.fits == 3
    path.unlink()
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        model(ledger).fit(X, Y)
    assert not path.exists()
    path.write_text("something else, longer than the header of a database" * 40)
    with pytest.raises(ValueError, match="path must be the file of a ledger"):
        Ledger(delta=1e-3, epsilon=5.0, path=path)


def test_a_ledger_says_where_it_is_kept(tmp_path):
    path = tmp_path / "people.ledger"
    assert (
        repr(Ledger(delta=1e-3, path=path)) == f"Ledger(delta=0.001, accounting='exact', path={str(path)!r})"
    )
    assert repr(Ledger(delta=1e-3, epsilon=1.0)) == "Ledger(delta=0.001, epsilon=1.0, accounting='exact')"
    assert [entry.name for entry in tmp_path.iterdir()] == ["people.ledger"]
