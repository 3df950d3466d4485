"""Policies go on with the constants they were made with, whatever this version would give a new one."""

import dataclasses
import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from fliphat import FLIPHAT, Iht, PrivateLinear, Pursuit
from fliphat.fit import kept_tuning, make_fit
from fliphat.fit.dense import DenseTuning
from fliphat.fit.settings import Settings
from fliphat.fit.tuning import Tuning, tuning
from fliphat.lab.display.store_report import store_lines
from fliphat.policies.store.base import refuse_other_settings
from fliphat.policies.store.inspect import inspect_path, verify_path
from fliphat.policies.store.migrate import migrate_path
from fliphat.policies.types import StoreError

FIXTURES = Path(__file__).parents[1] / "fixtures" / "unrecorded"
_spec = importlib.util.spec_from_file_location("make_unrecorded", FIXTURES / "make.py")
old = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(old)
EXPECTED = json.loads((FIXTURES / "expected.json").read_text())
KINDS = ("pursuit", "linear")


def other(constants):
    """Return constants of which every number is different."""
    changed = {
        field.name: value * 1.07
        for field in dataclasses.fields(constants)
        if isinstance(value := getattr(constants, field.name), float)
    }
    changed |= {"late_pick_share": 0.4} if isinstance(constants, Tuning) else {"first": 41}
    return dataclasses.replace(constants, **changed)


@pytest.fixture
def changed(monkeypatch):
    """Let this version be one with other constants."""
    monkeypatch.setattr("fliphat.fit.pursuit.tuning", lambda mu: other(tuning(mu)))
    monkeypatch.setattr("fliphat.fit.dense.fit.DenseTuning", lambda: other(DenseTuning()))


@pytest.fixture
def copies(tmp_path):
    shutil.copytree(FIXTURES, tmp_path / "copies")
    return tmp_path / "copies"


def fresh(name):
    """What a policy of this version does when nothing interrupts it."""
    with old.make(name, None) as policy:
        old.play(policy, 0, old.ROUNDS + old.MORE)
        return old.seen(policy)


@pytest.mark.parametrize("name", KINDS)
def test_a_store_goes_on_bit_for_bit_after_the_defaults_changed(name, place, monkeypatch):
    expected = fresh(name)
    with old.make(name, place) as policy:
        old.play(policy, 0, old.ROUNDS)
        before = old.seen(policy)
    monkeypatch.setattr("fliphat.fit.pursuit.tuning", lambda mu: other(tuning(mu)))
    monkeypatch.setattr("fliphat.fit.dense.fit.DenseTuning", lambda: other(DenseTuning()))
    assert fresh(name) != expected  # or nothing was changed under it
    with old.make(name, place) as policy:  # by its arguments
        half = old.play(policy, old.ROUNDS, old.MORE // 2)
    with old.reopen(name, place) as policy:  # and without them
        rest = old.play(policy, old.ROUNDS + len(half), old.MORE - len(half))
        seen = old.seen(policy)
    assert len(seen) > len(before) > 0 and seen[: len(before)] == before
    # Ties and sampled arms are drawn anew after an opening, so rows differ; lengths and plans do not.
    assert [rounds for rounds, _ in seen[: len(before) + 1]] == [
        one for one, _ in expected[: len(before) + 1]
    ]
    assert len(half + rest) == old.MORE


@pytest.mark.parametrize("name", KINDS)
def test_copies_of_a_store_do_the_same_before_and_after_the_defaults_changed(name, tmp_path, monkeypatch):
    with old.make(name, tmp_path / "one") as policy:
        old.play(policy, 0, old.ROUNDS)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    with old.make(name, tmp_path / "one") as policy:
        arms, seen = old.play(policy, old.ROUNDS, old.MORE), old.seen(policy)
    monkeypatch.setattr("fliphat.fit.pursuit.tuning", lambda mu: other(tuning(mu)))
    monkeypatch.setattr("fliphat.fit.dense.fit.DenseTuning", lambda: other(DenseTuning()))
    with old.make(name, tmp_path / "two") as policy:
        assert old.play(policy, old.ROUNDS, old.MORE) == arms
        assert old.seen(policy) == seen


@pytest.mark.parametrize("name", KINDS)
def test_a_saved_file_goes_on_bit_for_bit_after_the_defaults_changed(name, tmp_path, monkeypatch):
    expected = fresh(name)
    with old.make(name, None) as policy:
        old.play(policy, 0, old.ROUNDS)
        policy.save(tmp_path / "file")
    monkeypatch.setattr("fliphat.fit.pursuit.tuning", lambda mu: other(tuning(mu)))
    monkeypatch.setattr("fliphat.fit.dense.fit.DenseTuning", lambda: other(DenseTuning()))
    with (PrivateLinear if name == "linear" else FLIPHAT).load(tmp_path / "file") as policy:
        old.play(policy, old.ROUNDS, old.MORE)
        assert old.seen(policy) == expected
    assert fresh(name) != expected


def assert_near(seen, expected):
    """Lengths are the same; estimates up to the rounding of public floating-point operations.

    Those of pursuit, which these stores had before any release, up to what its rule takes for typical now.
    """
    assert [rounds for rounds, _ in seen] == [rounds for rounds, _ in expected]
    for (_, found), (_, wanted) in zip(seen, expected, strict=True):
        assert found == pytest.approx(wanted, rel=0.01, abs=1e-9)


@pytest.mark.usefixtures("changed")
@pytest.mark.parametrize("name", ["pursuit", "saved"])
def test_what_recorded_no_constants_goes_on_with_those_it_had(name, copies):
    with old.reopen(name, copies / name) as policy:
        assert old.play(policy, old.ROUNDS, old.MORE) == EXPECTED[name]["later"]
        assert_near(old.seen(policy), EXPECTED[name]["seen"])
        assert policy._settings.constants == kept_tuning.UNRECORDED


@pytest.mark.usefixtures("changed")
def test_what_recorded_no_constants_opens_with_its_arguments(copies):
    name = "pursuit"
    with old.make(name, copies / name) as policy:
        assert old.play(policy, old.ROUNDS, old.MORE) == EXPECTED[name]["later"]
    assert verify_path(copies / name).ok
    # With its length, which would follow from another epsilon, too.
    numbers = old.PURSUIT | {"first_episode": policy._settings.first_episode}
    with pytest.raises(StoreError, match=r"other arguments: epsilon was 2\.0, got 3\.0"):
        FLIPHAT(**numbers | {"epsilon": 3.0}, store=copies / name)


def test_a_store_of_the_first_rule_of_private_linear_is_refused_and_left_alone(copies):
    before = sorted((one.name, one.stat().st_size) for one in (copies / "linear").rglob("*"))
    with pytest.raises((StoreError, ValueError), match="first rule of PrivateLinear, which is gone"):
        PrivateLinear.open(copies / "linear")
    assert sorted((one.name, one.stat().st_size) for one in (copies / "linear").rglob("*")) == before


def test_the_constants_under_a_name_are_those_of_that_version():
    small, large = kept_tuning.unrecorded(0.4), kept_tuning.unrecorded(3.5)
    # Written out: this version's own may be others.
    assert (small.signed, small.pick_share, small.prune, small.pick_clip) == (True, 0.76, 0.8, 0.35)
    assert (large.signed, large.pick_share, large.prune, large.pick_clip) == (False, 0.633, 0.9, 0.7)
    between = kept_tuning.unrecorded(1.0)
    assert between.signed and 0.35 < between.pick_clip < 0.7


@pytest.mark.parametrize("name", KINDS)
def test_all_constants_are_in_the_record_and_shown(name, place):
    with old.make(name, place) as policy:
        constants = policy._settings.constants
    facts = inspect_path(place)
    record = facts["settings"]["constants"]
    assert record == json.loads(json.dumps(dataclasses.asdict(constants)))
    assert f"constants of its fit: {len(record)} recorded" in "\n".join(store_lines(facts))
    assert verify_path(place).ok
    assert migrate_path(place)["told"].startswith("nothing to do")


def test_that_there_is_no_record_is_shown(copies):
    for name in ("pursuit", "linear", "saved"):
        facts = inspect_path(copies / name)
        assert facts["settings"]["constants"] == kept_tuning.UNRECORDED
        assert "constants of its fit: not recorded" in "\n".join(store_lines(facts))
        assert verify_path(copies / name).ok
        assert migrate_path(copies / name)["told"].startswith("nothing to do")


def test_hard_thresholding_has_no_constants_in_its_record(tmp_path):
    with FLIPHAT(8, 2, 1.0, 0.01, fit=Iht(), seed=1, store=tmp_path / "store"):
        pass
    facts = inspect_path(tmp_path / "store")
    assert facts["settings"]["constants"] is None
    assert "constants of its fit" not in "\n".join(store_lines(facts))


def test_constants_of_a_newer_version_are_refused_by_name():
    fit = make_fit(Settings.checked(dim=8, sparsity=2, epsilon=1.0, delta=0.01, fit=Pursuit()))
    record = json.loads(json.dumps(fit.settings.to_dict()))
    again = Settings.from_dict(record, {})
    assert again == fit.settings
    record["constants"]["a new one"] = 1.0
    with pytest.raises(ValueError, match="a newer one wrote this policy"):
        Settings.from_dict(record, {})


def test_the_claim_does_not_depend_on_constants():
    settings = Settings.checked(dim=50, sparsity=5, epsilon=1.0, delta=0.01, fit=Pursuit(), seed=1)
    usual = make_fit(settings)
    strange = make_fit(dataclasses.replace(settings, constants=other(usual.settings.constants)))
    plans = [fit.plan(0, fit.begin()) for fit in (usual, strange)]
    assert plans[0].rows != plans[1].rows
    for plan in plans:
        # Priced exactly, for whatever the plan releases: as much of delta as there is, and no more.
        assert 0.009 < plan.release.price <= 0.01
    assert np.isclose(plans[0].release.price, plans[1].release.price, rtol=0.05)


def test_a_store_of_clicks_goes_on_with_the_fit_that_was_the_default(tmp_path):
    clicks = {"dim": 8, "sparsity": 2, "epsilon": 4.0, "delta": 0.01, "loss": "logistic", "first_episode": 20}
    with FLIPHAT(**clicks, fit=Iht(), store=tmp_path / "store") as policy:
        policy.update(policy.select(np.eye(3, 8)), 1.0)
    with FLIPHAT(**clicks, store=tmp_path / "store") as policy:
        assert policy._settings.fit == "iht" and policy.rounds == 1
    with FLIPHAT(**clicks, store=tmp_path / "new") as policy:
        assert policy._settings.fit == "pursuit"


def test_a_store_that_was_made_before_some_constants_existed_is_not_refused(tmp_path, monkeypatch):
    told = {"dim": 8, "sparsity": 2, "epsilon": 4.0, "delta": 0.01, "first_episode": 20}
    new = {"pursued": 0.0, "wide_first": 0.5, "most_residual": 0.0, "shrink": 0.0, "drift_of_one": 1.0}
    usual = kept_tuning.written

    def without(constants):
        record = usual(constants)
        return {name: value for name, value in record.items() if name not in new}

    def play(policy):
        decisions = policy.select_batch(np.tile(np.eye(3, 8), (policy.remaining, 1, 1)))
        policy.update_batch(decisions, np.ones(len(decisions.arms)))

    with monkeypatch.context() as before:
        before.setattr(kept_tuning, "written", without)
        before.setattr("fliphat.fit.pursuit.tuning", lambda mu: dataclasses.replace(tuning(mu), **new))
        with FLIPHAT(**told, store=tmp_path / "store") as policy:
            play(policy)
    for opened in (
        lambda: FLIPHAT(**told, store=tmp_path / "store"),
        lambda: FLIPHAT.open(tmp_path / "store"),
    ):
        with opened() as policy:
            assert dataclasses.asdict(policy._settings.constants).items() >= new.items()
            play(policy)
    # A constant that was another one is still refused.
    with pytest.raises(StoreError, match="constants was"):
        refuse_other_settings(
            policy._settings.to_dict(),
            dataclasses.replace(policy._settings, constants=other(policy._settings.constants)),
        )
