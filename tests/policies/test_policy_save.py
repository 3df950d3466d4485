"""One file, one live copy: saving hands over, loading consumes, damage is refused."""

import io
import os
import stat

import numpy as np
import pytest
import scipy.sparse as sp

from flat_options import nested
from fliphat import FLIPHAT, Iht
from fliphat.policies import CopyError, SnapshotError, StoreError
from fliphat.policies.engine import faults, files, snapshot, state
from policy_model import DIM, Fits


def make(**changes):
    given = {"dim": DIM, "sparsity": 2, "epsilon": 1.0, "delta": 0.01, "first_episode": 4, "growth": 2}
    return FLIPHAT(**nested(given | changes))


def play(policy, seed, rounds, sparse=False, users=True):
    rng, log = np.random.default_rng(seed), []
    for i in range(rounds):
        X = rng.standard_normal((3, DIM)).astype(np.float32)
        X[rng.random(X.shape) < 0.3] = 0
        decision = policy.select(
            sp.csr_array(X) if sparse else X, user=i % 7 if users else None, key=f"{seed} {i}"
        )
        if i % 3:
            policy.update(decision, float(rng.standard_normal()))
        log.append(decision)
    return log


@pytest.mark.parametrize("rounds", [0, 3, 4, 9])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("stored", [False, True])
def test_a_loaded_policy_goes_on_where_the_saved_one_stopped(tmp_path, rounds, sparse, stored):
    arguments = {"seed": 3, "rounds_per_user": 2, "iterations": [1, 2]}
    through, moved = make(**arguments), make(**arguments, **({"store": tmp_path / "s"} if stored else {}))
    assert play(through, 1, rounds, sparse) == play(moved, 1, rounds, sparse)
    pending = moved.pending
    moved.save(tmp_path / "file")
    loaded = FLIPHAT.load(tmp_path / "file")
    assert loaded.pending == pending == through.pending
    assert play(through, 2, 30, sparse) == play(loaded, 2, 30, sparse)
    assert play(through, 1, rounds, sparse) == play(loaded, 1, rounds, sparse)  # retries
    assert loaded.late == through.late and loaded.rounds == through.rounds
    for ours, theirs in zip(through.history, loaded.history, strict=True):
        assert ours == theirs
        np.testing.assert_array_equal(ours.estimate.to_dense(), theirs.estimate.to_dense())
    assert str(loaded.guarantee) == str(through.guarantee)


def test_the_saved_object_cannot_go_on_and_the_file_is_consumed(tmp_path):
    policy, file = make(), tmp_path / "file"
    play(policy, 1, 3)
    policy.save(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(CopyError, match="handed over by save: load the file to go on"):
        policy.select(np.ones((2, DIM)), user=1)
    assert policy.rounds == 3
    os.link(file, tmp_path / "other name")
    loaded = FLIPHAT.load(file)
    assert loaded.rounds == 3 and not file.exists()
    with pytest.raises(SnapshotError, match="does not exist"):
        FLIPHAT.load(file)
    with pytest.raises(SnapshotError, match="was loaded before"):
        FLIPHAT.load(tmp_path / "other name")


def test_a_file_is_never_overwritten(tmp_path):
    policy, file = make(), tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(SnapshotError, match="path must be a new file"):
        policy.save(file)
    policy.select(np.ones((2, DIM)))
    assert file.read_text() == "mine"


def saved(tmp_path):
    policy = make()
    play(policy, 1, 6)
    policy.save(tmp_path / "file")
    return (tmp_path / "file").read_bytes()


def test_every_flipped_byte_is_refused_and_nothing_is_consumed(tmp_path):
    data, file = saved(tmp_path), tmp_path / "damaged"
    places = [*range(80), *range(80, len(data), 37), len(data) - 1]
    for place in places:
        bad = bytearray(data)
        bad[place] ^= 0x40
        file.write_bytes(bad)
        with pytest.raises(SnapshotError, match=r"damaged|version|truncated"):
            FLIPHAT.load(file)
        assert file.read_bytes() == bad
    file.write_bytes(data)
    assert FLIPHAT.load(file).rounds == 6  # control: undamaged, it loads


def test_every_truncation_is_refused(tmp_path):
    data, file = saved(tmp_path), tmp_path / "damaged"
    for size in [*range(0, 80, 3), *range(80, len(data), 101), len(data) - 1]:
        file.write_bytes(data[:size])
        with pytest.raises(SnapshotError, match=r"damaged|truncated"):
            FLIPHAT.load(file)
    file.write_bytes(data + b"x")
    with pytest.raises(SnapshotError, match="truncated or damaged"):
        FLIPHAT.load(file)


def test_a_newer_version_is_refused(tmp_path, monkeypatch):
    policy = make()
    monkeypatch.setattr(snapshot, "VERSION", 11)
    policy.save(tmp_path / "file")
    monkeypatch.undo()
    with pytest.raises(SnapshotError, match=r"saved by a newer version \(format 11, this one reads 10\)"):
        FLIPHAT.load(tmp_path / "file")


def test_functions_must_be_given_again(tmp_path):
    policy, file = make(iterations=lambda n: 1), tmp_path / "file"
    policy.save(file)
    with pytest.raises(ValueError, match="iterations was a function, which a file can't hold"):
        FLIPHAT.load(file)
    with pytest.raises(ValueError, match="step_size is in the file already: leave it out"):
        FLIPHAT.load(file, fit=Iht(iterations=lambda n: 1, step_size=1.0))
    assert FLIPHAT.load(file, fit=Iht(iterations=lambda n: 1)).rounds == 0


def test_a_load_that_failed_does_not_keep_the_file_locked(tmp_path):
    policy, file = make(iterations=lambda n: 1), tmp_path / "file"
    play(policy, 1, 3)
    policy.save(file)
    with pytest.raises(ValueError, match="iterations was a function") as kept:  # and with it what was read
        FLIPHAT.load(file)
    assert FLIPHAT.load(file, fit=Iht(iterations=lambda n: 1)).rounds == 3
    assert kept.value is not None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_that_was_forked_during_a_save_does_not_keep_the_file_locked(tmp_path, monkeypatch):
    policy, file, (ended, end) = make(), tmp_path / "file", os.pipe()
    play(policy, 1, 3)
    children = []

    def fork(point):
        if point == "unsealed":
            child = os.fork()
            if child == 0:
                os.close(end)
                os.read(ended, 1)  # lives until the test is over
                os._exit(0)
            children.append(child)

    monkeypatch.setattr(faults, "reached", fork)
    try:
        policy.save(file)
        assert children and FLIPHAT.load(file).rounds == 3
    finally:
        os.close(end)
        os.close(ended)
        for child in children:
            os.waitpid(child, 0)


class Cut(BaseException):
    pass


def cut_at(monkeypatch, point):
    def reached(name):
        if name == point:
            raise Cut

    monkeypatch.setattr(faults, "reached", reached)


def live_copies(tmp_path, policy, fits):
    """How many objects can be brought to fit the rows of the open episode, by any road left."""
    fits.calls.clear()
    roads = [lambda: policy] + [lambda p=path: FLIPHAT.load(p) for path in tmp_path.glob("file*")]
    if (tmp_path / "s").exists():
        if policy._engine is not None and policy._engine.store is not None:
            policy._engine.store.close()  # the process is gone
            roads = roads[1:]
        roads.append(lambda: make(store=tmp_path / "s"))
        roads.append(lambda: FLIPHAT.load(tmp_path / "file"))
    for road in roads:
        try:
            copy = road()
            for _ in range(copy.remaining + 1):
                copy.select(np.ones((2, DIM)), user=1)
        except (CopyError, SnapshotError, RuntimeError):
            continue
    return len(fits.of(0))


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("point", ["unsealed", "hand over durable", "sealed"])
def test_a_save_cut_off_anywhere_leaves_one_live_copy(tmp_path, monkeypatch, point, stored):
    fits = Fits(monkeypatch)
    policy = make(**({"store": tmp_path / "s"} if stored else {}))
    play(policy, 1, 3)
    with monkeypatch.context() as patch:
        cut_at(patch, point)
        if point == "hand over durable" and not stored:
            policy.save(tmp_path / "file")  # there is no such point
        else:
            with pytest.raises(Cut):
                policy.save(tmp_path / "file")
    assert live_copies(tmp_path, policy, fits) == 1


@pytest.mark.parametrize("point", ["before consume", "consumed"])
def test_a_load_cut_off_leaves_one_copy(tmp_path, monkeypatch, point):
    fits, policy = Fits(monkeypatch), make()
    play(policy, 1, 3)
    policy.save(tmp_path / "file")
    with monkeypatch.context() as patch:
        cut_at(patch, point)
        with pytest.raises(Cut):
            FLIPHAT.load(tmp_path / "file")
    # Cut off after the mark, nobody has the policy: it is saved again.
    assert live_copies(tmp_path, policy, fits) == 1


def test_a_load_that_was_cut_off_is_not_saved_again_beside_whoever_loads_the_file_next(tmp_path, monkeypatch):
    policy, file = make(), tmp_path / "file"
    policy.save(file)  # without rows, which keep the file locked for as long as they are read
    loaded, close = [], io.FileIO.close

    class File(io.FileIO):
        def close(self):
            close(self)
            if not loaded:  # another process, as soon as the lock is free
                monkeypatch.undo()
                loaded.append(FLIPHAT.load(file))

    cut_at(monkeypatch, "before consume")
    monkeypatch.setattr(io, "FileIO", File)
    with pytest.raises(Cut):
        FLIPHAT.load(file)
    fits = Fits(monkeypatch)
    assert not list(tmp_path.iterdir())
    assert live_copies(tmp_path, loaded[0], fits) == 1


def test_of_two_policies_that_are_saved_to_one_file_at_once_one_lives_on(tmp_path, monkeypatch):
    one, other, file, told = make(), make(), tmp_path / "file", []
    play(one, 1, 3)
    play(other, 2, 5)

    def save_the_other(point):
        if point in ("unsealed", "sealed") and point not in told:
            told.append(point)
            with pytest.raises(SnapshotError, match="in use by another process or another policy"):
                other.save(file)

    monkeypatch.setattr(faults, "reached", save_the_other)
    one.save(file)
    assert told == ["unsealed", "sealed"]
    with pytest.raises(SnapshotError, match="path must be a new file"):
        other.save(file)
    assert other.select(np.ones((2, DIM)), user=9).id == 6 and FLIPHAT.load(file).rounds == 3


def test_a_file_that_was_sealed_while_another_policy_was_on_its_way_there_stays(tmp_path, monkeypatch):
    one, other, file = make(), make(), tmp_path / "file"
    play(one, 1, 3)
    late = snapshot.Saving(file)  # the name was free
    one.save(file)
    with pytest.raises(SnapshotError, match="path must be a new file"):
        late.write(*state.to_arrays(other._engine))
    late.discard()
    late.close()
    assert [path.name for path in tmp_path.iterdir()] == ["file"] and FLIPHAT.load(file).rounds == 3


def test_a_failed_write_leaves_the_policy_alive(tmp_path, monkeypatch):
    policy = make()
    play(policy, 1, 3)
    with pytest.raises(FileNotFoundError):
        policy.save(tmp_path / "no such directory" / "file")
    assert policy.select(np.ones((2, DIM)), user=1).id == 4


def partial_of(file):
    return file.with_name(file.name + ".partial")


@pytest.mark.parametrize("goes_on", [False, True])
def test_opening_the_old_store_seals_nobody_elses_file(tmp_path, monkeypatch, goes_on):
    # The store's policy went to a file and was loaded as another, whose own save to that name was cut off.
    fits, file = Fits(monkeypatch), tmp_path / "file"
    policy = make(store=tmp_path / "s")
    play(policy, 1, 3)
    policy.save(file)
    other = FLIPHAT.load(file)
    if goes_on:
        other.select(np.ones((2, DIM)), user=99)
    with monkeypatch.context() as patch:
        cut_at(patch, "unsealed")
        patch.setattr(snapshot.Saving, "discard", lambda _: False)  # the process ends there
        with pytest.raises(Cut):
            other.save(file)
    assert partial_of(file).exists()
    with pytest.raises(StoreError, match="handed over to the file"):
        make(store=tmp_path / "s")
    assert not file.exists()  # not sealed: `other` is alive
    assert live_copies(tmp_path, other, fits) == 1


def test_a_hand_over_that_was_cut_off_is_completed_by_its_own_file(tmp_path, monkeypatch):
    file = tmp_path / "file"
    policy = make(store=tmp_path / "s")
    play(policy, 1, 3)
    with monkeypatch.context() as patch:
        cut_at(patch, "hand over durable")
        with pytest.raises(Cut):
            policy.save(file)
    with pytest.raises(CopyError, match="save was cut off: open the store again"):
        policy.select(np.ones((2, DIM)), user=1)
    assert partial_of(file).exists() and not file.exists()
    with pytest.raises(StoreError, match="handed over to the file"):
        make(store=tmp_path / "s")
    assert not list((tmp_path / "s").glob("episode-*"))
    assert FLIPHAT.load(file).rounds == 3


def test_the_object_has_lost_the_right_to_play_when_the_hand_over_can_be_seen(tmp_path, monkeypatch):
    policy, seen = make(store=tmp_path / "s"), []
    play(policy, 1, 3)
    monkeypatch.setattr(faults, "reached", lambda point: seen.append((point, policy._engine is None)))
    policy.save(tmp_path / "file")
    assert seen[:1] == [("unsealed", False)] and all(detached for _, detached in seen[1:])
    assert [point for point, _ in seen if point in ("hand over durable", "sealed")] == [
        "hand over durable",
        "sealed",
    ]


@pytest.mark.parametrize("stored", [False, True])
def test_a_save_that_fails_leaves_no_file_behind(tmp_path, monkeypatch, stored):
    policy = make(**({"store": tmp_path / "s"} if stored else {}))
    play(policy, 1, 3)
    for point in ("unsealed", "sealed") if not stored else ("unsealed",):
        with monkeypatch.context() as patch:
            cut_at(patch, point)
            with pytest.raises(Cut):
                policy.save(tmp_path / "file")
        assert not list(tmp_path.glob("file*"))
    assert policy.select(np.ones((2, DIM)), user=1).id == 4  # and the policy lives


def test_the_name_of_a_file_is_on_disk_before_the_store_names_it(tmp_path, monkeypatch):
    policy, order = make(store=tmp_path / "s"), []
    play(policy, 1, 3)
    monkeypatch.setattr(files, "sync_directory", lambda path: order.append(str(path)))
    monkeypatch.setattr(faults, "reached", order.append)
    policy.save(tmp_path / "file")
    assert order.index(str(tmp_path)) < order.index("hand over written")
