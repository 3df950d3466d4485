"""Stores and a saved file of the first version: this version and every later one opens them and goes on."""

import shutil

import pytest

from format_1 import EXPECTED, FIXTURES, make, plain


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(FIXTURES, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.mark.parametrize("name", ["dense", "csr", "saved"])
def test_what_the_first_version_wrote_opens_and_goes_on(copy, name):
    expected = EXPECTED[name]
    with make.reopen(copy, name) as policy:
        assert plain(make.state(policy)) == expected["state"]
        for number, (identity, arm, valid, episode) in enumerate(expected["decisions"]):
            user = f"user {number % 6}" if make.USERS[name] else None
            again = policy.select(make.contexts(name, number), user=user, key=f"key {number}")
            assert again[:4] == (identity, arm, valid, episode)  # keys of the first version are still known
        assert make.go_on(policy, name) == expected["later_decisions"]
        assert plain(make.state(policy)) == expected["later_state"]
        assert len(policy.history) > len(expected["state"]["history"])


def test_the_stores_can_be_opened_by_several_versions_in_turn(copy):
    for rounds in (6, 7, 8):
        with make.reopen(copy, "dense") as policy:
            assert policy.rounds == rounds
            make.play(policy, "dense", rounds)


def test_the_comparison_can_fail(copy):
    with make.reopen(copy, "dense") as policy:
        make.play(policy, "dense", 6)
        assert plain(make.state(policy)) != EXPECTED["dense"]["state"]
