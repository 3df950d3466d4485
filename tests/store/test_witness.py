"""A witness outside a store: a restored copy never releases what was released already."""

import os
import shutil

import numpy as np
import pytest

from fliphat import FLIPHAT
from fliphat.policies import StoreError
from fliphat.policies.engine import faults, files, lifecycle
from fliphat.policies.engine.witness import Record
from fliphat.policies.store import witness as store_witness
from fliphat.policies.store.inspect import inspect_path
from fliphat.policies.store.witness import make_witness
from policy_model import DIM
from small_store import FIRST, Crash, crash_at, kill, open_store, points_of

ONES = np.ones((1, DIM), np.float32)
REFUSED = "the store is not the newest copy"


@pytest.fixture(params=["file", "postgres"])
def witness(request, tmp_path):
    if request.param == "file":
        return tmp_path / "witness"
    return request.getfixturevalue("server").new()


@pytest.fixture
def copies(request, place):
    """Copies a store as a backup does: returns where the copy is."""
    numbers = iter(range(100))

    def copy(source):
        if not isinstance(source, str):
            target = source.with_name(f"copy {next(numbers)}")
            shutil.copytree(source, target)
            return target
        server = request.getfixturevalue("server")
        name = f"{source.rsplit('/', 1)[1]}_copy_{next(numbers)}"
        with server.connect() as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                f" WHERE datname = '{source.rsplit('/', 1)[1]}'"
            )
            admin.execute(f"CREATE DATABASE {name} TEMPLATE {source.rsplit('/', 1)[1]}")
        return server.url(name)

    return copy


def play(policy, rounds=FIRST):
    for _ in range(rounds):
        policy.update(policy.select(ONES), 1.0)


def backup(policy, place, copies, **given):
    """Close, copy, open again: a copy of a closed store is as good as a backup can be."""
    policy.close()
    copy = copies(place)
    return open_store(place, **given), copy


def test_a_copy_from_before_a_release_is_refused(place, copies, witness, fits):
    policy = open_store(place, witness=witness)
    play(policy)
    policy, copy = backup(policy, place, copies, witness=witness)
    policy.select(ONES)  # releases, and is seen
    policy.close()
    with pytest.raises(StoreError, match=REFUSED):
        open_store(copy, witness=witness)
    assert len(fits.calls) == 1
    with open_store(place, witness=witness) as policy:  # the newest one goes on
        play(policy, 2 * FIRST)
        assert len(policy.history) == 2


def test_control_without_a_witness_a_copy_fits_again(place, copies, fits):
    policy = open_store(place)
    play(policy)
    policy, copy = backup(policy, place, copies)
    policy.select(ONES)
    policy.close()
    with open_store(copy) as policy:
        policy.select(ONES)
        assert len(fits.of(0)) == 2  # the same rows, twice seen: what the witness is for


def test_of_two_live_copies_the_first_to_release_goes_on(place, copies, witness, fits):
    policy = open_store(place, witness=witness)
    play(policy)
    policy, copy = backup(policy, place, copies, witness=witness)
    with open_store(copy, witness=witness) as other:
        other.select(ONES)
        assert len(other.history) == 1
        for _ in range(2):
            with pytest.raises(StoreError):
                policy.select(ONES)
        # It has fitted, and what came out was seen by nobody.
        assert not policy.history and policy.estimate.indices.size == 0
        kill(policy)
        with pytest.raises(StoreError, match=REFUSED):
            open_store(place, witness=witness)
        play(other, FIRST)


def test_a_copy_of_the_same_episode_may_go_on(place, copies, witness, fits):
    # Its rows were fitted by nobody; the rounds it lost are lost.
    policy = open_store(place, witness=witness)
    play(policy, 1)
    policy, copy = backup(policy, place, copies, witness=witness)
    policy.select(ONES)
    policy.close()
    with open_store(copy, witness=witness) as policy:
        assert policy.rounds == 1
        play(policy)
        assert len(policy.history) == 1


def test_cut_off_anywhere_in_a_release_it_goes_on_once(request, tmp_path, place, witness, monkeypatch, fits):
    monkeypatch.setattr(lifecycle, "LEASE", 0.0)  # whoever ended is overtaken at once

    def prepare(number):
        where = place.with_name(f"s{number}") if not isinstance(place, str) else None
        where = request.getfixturevalue("server").new() if where is None else where
        policy = open_store(where, witness=witness)
        play(policy)
        return where, policy

    _, dry = prepare("dry")
    points = points_of(monkeypatch, lambda: dry.select(ONES))
    dry.close()
    for number in range(len(points)):
        fits.calls.clear()
        where, policy = prepare(number)
        crash_at(monkeypatch, number, lambda policy=policy: policy.select(ONES))
        kill(policy)
        with open_store(where, witness=witness) as policy:
            policy.select(ONES)
            assert len(policy.history) == 1
            visible = policy.history[0].estimate.to_dense().tolist()
            assert visible == fits.of(0)[-1][2].to_dense().tolist()


def test_a_witness_that_was_there_is_needed_and_must_know_the_store(place, witness, tmp_path):
    with open_store(place, witness=witness) as policy:
        play(policy, 1)
    with pytest.raises(StoreError, match="was played with a witness: give it as witness="):
        open_store(place)
    with pytest.raises(StoreError, match="the witness does not know this store"):
        open_store(place, witness=tmp_path / "another")
    with open_store(place, witness=witness) as policy:
        assert policy.rounds == 1


def test_a_witness_can_come_later_and_serve_several_policies(place, copies, witness, tmp_path, fits):
    with open_store(place) as policy:
        play(policy, FIRST + 1)
    old = copies(place)
    with (
        open_store(place, witness=witness) as policy,
        open_store(tmp_path / "other", witness=witness) as other,
    ):
        play(policy, 2 * FIRST)
        play(other, 2)
    with pytest.raises(StoreError, match=REFUSED):  # from before there was one
        open_store(old, witness=witness)


def test_a_saved_policy_leaves_its_witness(tmp_path, fits):
    given = {"witness": tmp_path / "witness"}
    policy = open_store(tmp_path / "store", **given)
    play(policy, 1)
    policy.close()
    copy = shutil.copytree(tmp_path / "store", tmp_path / "copy")
    with_store = open_store(tmp_path / "store", **given)
    with_store.save(tmp_path / "file")
    with pytest.raises(StoreError, match=REFUSED):
        open_store(copy, **given)
    assert FLIPHAT.load(tmp_path / "file").rounds == 1


def test_a_witness_is_for_a_store(tmp_path):
    with pytest.raises(ValueError, match="witness is for a store"):
        open_store(None, witness=tmp_path / "witness")


def test_a_witness_moves_from_one_record_to_one_other(witness):
    one = make_witness(witness, "somewhere else")
    assert one.read("a") is None
    assert one.move("a", None, Record(0, "")) and not one.move("a", None, Record(5, "x"))
    assert one.move("a", Record(0, ""), Record(1, "x")) and not one.move("a", Record(0, ""), Record(1, "y"))
    assert one.read("a") == Record(1, "x") and one.read("b") is None
    one.close()


def test_a_damaged_witness_is_not_begun_anew(tmp_path):
    path = tmp_path / "witness"
    open_store(tmp_path / "store", witness=path).close()
    for damage in (b"", b"[]", b"\x00" * 10):
        path.write_bytes(damage)
        with pytest.raises(StoreError, match="the witness can't be read: put it back as it was"):
            open_store(tmp_path / "store", witness=path)


def test_a_link_to_a_witness_is_the_witness(tmp_path, fits):
    """Replaced under the link's name, the file itself would show a copy what was there before."""
    store, link = tmp_path / "store", tmp_path / "link"
    link.symlink_to(tmp_path / "witness")
    policy = open_store(store, witness=tmp_path / "witness")
    play(policy)
    policy.close()
    shutil.copytree(store, tmp_path / "copy")
    policy, other = (
        open_store(store, witness=link),
        open_store(tmp_path / "copy", witness=tmp_path / "witness"),
    )
    policy.select(ONES)
    with pytest.raises(StoreError, match=REFUSED):
        other.select(ONES)
    assert link.is_symlink() and len(policy.history) == 1 and not other.history


def test_a_witness_stays_where_it_is_when_the_working_directory_changes(tmp_path, monkeypatch, fits):
    monkeypatch.chdir(tmp_path)
    policy = open_store(tmp_path / "store", witness="witness")
    play(policy)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    policy.select(ONES)
    assert len(policy.history) == 1 and not list((tmp_path / "elsewhere").iterdir())


def test_a_witness_that_could_not_move_leaves_nothing_behind(tmp_path, monkeypatch, fits):
    (tmp_path / "w").mkdir()
    policy = open_store(tmp_path / "store", witness=tmp_path / "w" / "witness")
    play(policy)

    def full(descriptor, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_all", full)
        for _ in range(3):
            with pytest.raises(OSError, match="No space left"):
                policy.select(ONES)
            assert not policy.history
    policy.select(ONES)
    assert len(policy.history) == len(fits.calls) == 1
    assert {one.name for one in (tmp_path / "w").iterdir()} == {"witness", "witness.lock"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_that_was_forked_while_a_witness_moved_does_not_keep_it_locked(tmp_path, monkeypatch):
    place, (ended, end), children, sync = tmp_path / "witness", os.pipe(), [], files.sync

    def fork(descriptor):
        if not children:
            children.append(os.fork())
            if children[0] == 0:
                os.close(end)
                os.read(ended, 1)  # lives until the test is over
                os._exit(0)
        sync(descriptor)

    monkeypatch.setattr(files, "sync", fork)
    monkeypatch.setattr(store_witness, "_PATIENCE", 0.2)
    try:
        one = make_witness(place, tmp_path / "store")
        assert one.move("p", None, Record(1, "a")) and one.move("p", Record(1, "a"), Record(2, "b"))
    finally:
        os.close(end)
        os.close(ended)
        os.waitpid(children[0], 0)


def test_a_witness_lies_outside_its_store(place, tmp_path):
    where = place if isinstance(place, str) else place / "inside"
    with pytest.raises(ValueError, match=r"witness must (lie outside its store|be in another database)"):
        open_store(place, witness=where)


def test_a_refused_copy_neither_plays_nor_saves_nor_shows(tmp_path, fits):
    a, b, witness = tmp_path / "a", tmp_path / "b", tmp_path / "witness"
    policy = open_store(a, witness=witness)
    play(policy)
    policy.flush()
    shutil.copytree(a, b)
    with open_store(b, witness=witness) as other:
        other.select(ONES)
        for _ in range(2):
            with pytest.raises(StoreError, match=REFUSED):
                policy.select(ONES)
        shown = inspect_path(a)
        assert shown["state"] == "refused" and not shown["history"] and not shown["estimate"]["values"]
        assert inspect_path(b)["estimate"]["values"] == other.estimate.values.tolist()
        for call in (
            lambda: policy.save(tmp_path / "file"),
            lambda: policy.update(1, 1.0),
            policy.forget,
            lambda: policy.cancel(1),
        ):
            with pytest.raises(StoreError, match=REFUSED):
                call()
        assert not list(tmp_path.glob("file*")) and not policy.history
        policy.close()
        with pytest.raises(StoreError, match=REFUSED):
            open_store(a, witness=witness)


def test_a_copy_whose_save_the_witness_refuses_leaves_no_file(tmp_path, fits):
    a, b, witness = tmp_path / "a", tmp_path / "b", tmp_path / "witness"
    policy = open_store(a, witness=witness)
    play(policy, 1)
    policy.flush()
    shutil.copytree(a, b)
    with open_store(b, witness=witness) as other:
        play(other)
    with pytest.raises(StoreError, match=REFUSED):
        policy.save(tmp_path / "file")
    with pytest.raises(StoreError, match=REFUSED):
        open_store(a, witness=witness)
    assert not (tmp_path / "file").exists()


def test_a_hand_over_cut_off_before_the_witness_is_asked_is_asked_about_at_opening(
    tmp_path, fits, monkeypatch
):
    a, b, witness = tmp_path / "a", tmp_path / "b", tmp_path / "witness"
    policy = open_store(a, witness=witness)
    play(policy, 1)
    policy.flush()
    shutil.copytree(a, b)

    def reached(point):
        if point == "hand over durable":
            raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(faults, "reached", reached)
        with pytest.raises(Crash):
            policy.save(tmp_path / "file")
    with open_store(b, witness=witness) as other:
        play(other)
    with pytest.raises(StoreError, match=REFUSED):
        open_store(a, witness=witness)
    assert not (tmp_path / "file").exists()
