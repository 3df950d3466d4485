"""A policy keeps the accounting, and so the noise, it was made with."""

import pytest

from flat_options import nested
from fliphat import FLIPHAT, Iht, Store
from fliphat.fit.options import Pursuit
from fliphat.policies.store.opening import kept_choices

PUBLIC = {"dim": 50, "sparsity": 4, "epsilon": 1.0, "delta": 0.01}


def test_a_new_store_is_priced_exactly_and_goes_on_so(tmp_path):
    with FLIPHAT(**PUBLIC, store=tmp_path / "store") as policy:
        assert policy.guarantee.accounting == "exact"
        remaining = policy.remaining
    assert kept_choices(Store(tmp_path / "store"))[1] == "exact"
    with FLIPHAT(**PUBLIC, store=tmp_path / "store") as policy:
        assert (policy.guarantee.accounting, policy.remaining) == ("exact", remaining)


def test_nothing_is_read_from_what_is_no_store(tmp_path):
    assert kept_choices(Store(tmp_path)) is None
    (tmp_path / "policy.sqlite3").write_bytes(b"not a store")
    assert kept_choices(Store(tmp_path)) is None


@pytest.mark.parametrize(
    ("changes", "accounting"),
    [
        ({}, "exact"),
        ({"delta": 0.0, "fit": Iht()}, "pure"),
        ({"rounds_per_user": 3, "fit": Iht()}, "exact"),
        ({"rounds_per_user": 3, "fit": Pursuit()}, "zcdp"),
        ({"rounds_per_user": 3, "iterations": lambda rows: 1}, "zcdp"),
        ({"rounds_per_user": 20}, "zcdp"),
        ({"mechanism": "laplace"}, "exact"),
    ],
)
def test_a_policy_says_which_accounting_it_rests_on(changes, accounting):
    policy = FLIPHAT(**nested(PUBLIC | changes))
    assert policy.guarantee.accounting == accounting
    assert policy.guarantee.proven


def test_fits_of_one_policy_are_priced_together():
    policy = FLIPHAT(**PUBLIC, rounds_per_user=3, fit=Iht())
    first, later = (policy._fit.plan(episode, policy._fit.begin()).noise for episode in (0, 5))
    assert (first.sparsity, later.sparsity) == (2, 4)
    assert first.beside[0].pick_scale == later.pick_scale
    assert later.beside[0].pick_scale == first.pick_scale
