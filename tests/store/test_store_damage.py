"""Stores that lost or changed bytes: an error that says what to do, or the right state, and never silence."""

import os
import shutil
import sqlite3

import numpy as np
import pytest
import scipy.sparse as sp

from flat_options import nested
from fliphat import FLIPHAT
from fliphat.policies import StoreError
from format_1 import EXPECTED, FIXTURES, make, plain
from policy_model import DIM, Fits, without_syncs

FIRST = 6


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    without_syncs(monkeypatch)


def open_store(path, **changes):
    arguments = {
        "dim": DIM,
        "sparsity": 1,
        "epsilon": 1.0,
        "delta": 0.01,
        "first_episode": FIRST,
        "growth": 2,
    }
    return FLIPHAT(**nested(arguments | changes), store=path)


def played(path, rounds, sparse=False, **changes):
    """A closed store with some rounds of one user each, and their rewards."""
    policy = open_store(path, **changes)
    for number in range(rounds):
        X = np.full((2, changes.get("dim", DIM)), 1.0 + number, np.float32)
        policy.update(policy.select(sp.csr_array(X) if sparse else X, user=number), 1.0)
    policy.close()
    return path


def flip(file, place, bits=0x10):
    data = bytearray(file.read_bytes())
    data[place] ^= bits
    file.write_bytes(data)


# The ledger


@pytest.mark.parametrize("rounds", [0, 2, FIRST, FIRST + 1])
@pytest.mark.parametrize("how", ["removed", "emptied", "without tables"])
def test_a_lost_ledger_is_not_replaced_by_a_new_one(tmp_path, rounds, how):
    played(tmp_path, rounds)
    ledger = tmp_path / "ledger.sqlite3"
    good = ledger.read_bytes()
    if how == "removed":
        ledger.unlink()
    elif how == "emptied":
        ledger.write_bytes(b"")
    else:
        ledger.unlink()
        connection = sqlite3.connect(ledger)
        connection.execute("PRAGMA user_version = 1")
        connection.close()
    for epsilon in (1.0, 50.0):
        with pytest.raises(StoreError, match=r"ledger.*missing or empty.*Put it back|is empty.*Put it back"):
            open_store(tmp_path, epsilon=epsilon)
    ledger.write_bytes(good)
    assert open_store(tmp_path).rounds == rounds


def test_files_of_an_episode_alone_are_no_new_store(tmp_path):
    played(tmp_path, 2)
    for name in ("ledger.sqlite3", "lock"):
        (tmp_path / name).unlink()
    with pytest.raises(StoreError, match="missing or empty"):
        open_store(tmp_path)


def test_a_creation_that_was_cut_off_can_be_begun_again(tmp_path, monkeypatch):
    class Crash(BaseException):
        pass

    def crash(*_):
        raise Crash

    for name in (
        "fliphat.policies.store.directory.ledger._rename_to_new",
        "fliphat.policies.store.files.create_private",
    ):
        path = tmp_path / name
        path.mkdir()
        with monkeypatch.context() as patch:
            if name.endswith("_private"):  # the ledger is made, the lock is not
                made = []

                def second(file, made=made, real=os.open, **_):
                    made.append(file)
                    if len(made) == 2:
                        raise Crash
                    return real(file, os.O_RDWR | os.O_CREAT, 0o600)

                patch.setattr(name, second)
            else:
                patch.setattr(name, crash)
            with pytest.raises(Crash):
                open_store(path)
        assert open_store(path).rounds == 0
        assert not list(path.glob("ledger.new*"))


def test_what_a_ledger_says_is_checked(tmp_path):
    played(tmp_path, FIRST + 1)
    changes = [
        "UPDATE users SET rounds = 0",
        "DELETE FROM users WHERE digest = (SELECT digest FROM users LIMIT 1)",
        "UPDATE meta SET value = replace(value, '1.0', '2.0') WHERE name = 'settings'",
        "UPDATE meta SET value = substr(value, 2) || 'a' WHERE name = 'secret'",
        "UPDATE episodes SET state = 'open' WHERE episode = 0",
        "UPDATE episodes SET numbers = zeroblob(8) WHERE episode = 0",
    ]
    good = (tmp_path / "ledger.sqlite3").read_bytes()
    for change in changes:
        with sqlite3.connect(tmp_path / "ledger.sqlite3") as connection:
            connection.execute(change)
        connection.close()
        with pytest.raises(StoreError, match="its checksums do not match"):
            open_store(tmp_path)
        (tmp_path / "ledger.sqlite3").write_bytes(good)
    assert open_store(tmp_path).rounds == FIRST + 1


def test_a_commit_is_in_the_ledgers_own_file(tmp_path, monkeypatch):
    # A log beside it could be lost or damaged: SQLite would go back to before the commit, and the rows be fitted again.
    fits = Fits(monkeypatch)
    policy = open_store(tmp_path / "s")
    for number in range(FIRST):
        policy.update(policy.select(np.ones((2, DIM)), user=number), 1.0)
    other = sqlite3.connect(tmp_path / "s" / "ledger.sqlite3")  # keeps SQLite from tidying up
    other.execute("SELECT * FROM meta").fetchall()
    policy.select(np.ones((2, DIM)), user=99)
    (tmp_path / "copy").mkdir()
    for file in (tmp_path / "s").iterdir():
        if "-" not in file.name or file.name.startswith("episode-"):
            shutil.copy(file, tmp_path / "copy")
    other.close()
    policy.close()
    policy = open_store(tmp_path / "copy")
    assert policy.episode == 1 and len(policy.history) == 1
    policy.select(np.ones((2, DIM)), user=100)
    assert len(fits.calls) == 1


# Events and rows


def frames(path):
    """Where each frame of rounds and rewards begins, and where the last one ends."""
    events = path / "episode-00000.0.events"
    sizes = [32 + 56 + 8, 32 + 16 + 8] * 20
    places = [16]
    while places[-1] < events.stat().st_size:
        places.append(places[-1] + sizes[len(places) - 1])
    assert places[-1] == events.stat().st_size
    return places


@pytest.mark.parametrize("sparse", [False, True])
def test_every_flipped_byte_of_the_events_is_an_error(tmp_path, sparse):
    played(tmp_path, 3, sparse)
    events = tmp_path / "episode-00000.0.events"
    good, places = events.read_bytes(), frames(tmp_path)
    for place in range(0, len(good), 3):
        flip(events, place, bits=1 << place % 8)
        frame = sum(begin <= place for begin in places) - 1
        whole = (frame + 1) // 2
        message = (
            "first bytes are damaged" if place < 16 else rf"{3 - whole} rounds of.*the {whole} rounds before"
        )
        if sparse and frame % 2 == 0 and place >= 16:  # the damaged frame's own round may not be known
            message = rf"({3 - whole}|{2 - whole}) rounds of.*the {whole} rounds before"
        with pytest.raises(StoreError, match=message) as raised:
            open_store(tmp_path)
        assert "remove all of episode-00000.0.* to go on without" in str(raised.value)
        assert events.stat().st_size == len(good)  # nothing was cut off
        events.write_bytes(good)
    assert open_store(tmp_path).rounds == 3


@pytest.mark.parametrize("sparse", [False, True])
def test_every_flipped_byte_of_the_rows_is_an_error(tmp_path, sparse):
    played(tmp_path, 3, sparse)
    for file in sorted(tmp_path.glob("episode-*")):
        good = file.read_bytes()
        for place in range(0, len(good) if file.suffix != ".events" else 0, 5):
            flip(file, place)
            whole = place // (len(good) // 3)
            with pytest.raises(StoreError, match=rf"{3 - whole} rounds of.*{whole} rounds before are whole"):
                open_store(tmp_path)
            file.write_bytes(good)
    assert open_store(tmp_path).rounds == 3


@pytest.mark.parametrize("sparse", [False, True])
def test_a_byte_flipped_while_the_policy_lives_stops_the_fit(tmp_path, monkeypatch, sparse):
    fits = Fits(monkeypatch)
    for i, kind in enumerate(["rows"] if not sparse else ["columns", "values"]):
        policy = open_store(tmp_path / str(i))
        for number in range(FIRST):
            X = np.full((2, DIM), 1.0 + number, np.float32)
            policy.update(policy.select(sp.csr_array(X) if sparse else X, user=number), 1.0)
        file = tmp_path / str(i) / f"episode-00000.0.{kind}"
        good = file.read_bytes()
        flip(file, len(good) // 2)
        for call in (
            lambda p=policy, x=X: p.select(x, user=99),
            lambda p=policy: p.save(tmp_path / "file"),
        ):
            with pytest.raises(StoreError, match="is damaged: its checksum does not match: put it back"):
                call()
        assert not fits.calls and policy.history == ()
        file.write_bytes(good)
        policy.select(X, user=99)
        assert len(fits.calls) == 1
        fits.calls.clear()
        policy.close()


def test_users_of_a_damaged_journal_are_never_left_uncounted(tmp_path, monkeypatch):
    # A byte flipped before the commit: the users of later frames would be learned from once more.
    Fits(monkeypatch)
    policy = open_store(tmp_path)
    for number in range(FIRST):
        policy.update(policy.select(np.ones((2, DIM)), user=number), 1.0)
    events = tmp_path / "episode-00000.0.events"
    good = events.read_bytes()
    flip(events, frames(tmp_path)[4] + 60)
    with pytest.raises(StoreError, match=r"4 rounds of the open episode.*the 2 rounds before are whole"):
        policy.select(np.ones((2, DIM)), user=99)
    policy.close()
    events.write_bytes(good)
    policy = open_store(tmp_path)
    policy.select(np.ones((2, DIM)), user=99)
    assert sorted(policy._engine.users.values()) == [1] * (FIRST + 1)
    policy.close()
    with sqlite3.connect(tmp_path / "ledger.sqlite3") as connection:
        assert connection.execute("SELECT count(*), sum(rounds) FROM users").fetchone() == (FIRST, FIRST)
    connection.close()


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_without_events_are_an_error(tmp_path, sparse):
    played(tmp_path, 3, sparse)
    events = tmp_path / "episode-00000.0.events"
    good = events.read_bytes()
    events.unlink()
    with pytest.raises(
        StoreError, match=r"events' is missing.*Put it back.*or remove all of episode-00000.0"
    ):
        open_store(tmp_path)
    events.write_bytes(good[:9])
    with pytest.raises(StoreError, match="was cut off"):
        open_store(tmp_path)
    events.write_bytes(good)
    assert open_store(tmp_path).rounds == 3


def test_a_claimed_episode_must_have_all_its_rounds(tmp_path, monkeypatch):
    fits = Fits(monkeypatch)
    fits.fail = True
    policy = open_store(tmp_path)
    for number in range(FIRST):
        policy.update(policy.select(np.ones((2, DIM)), user=number), 1.0)
    with pytest.raises(OSError, match="no entropy"):
        policy.select(np.ones((2, DIM)), user=99)
    policy.close()
    files = {file: file.read_bytes() for file in tmp_path.glob("episode-*")}
    events = tmp_path / "episode-00000.0.events"
    events.write_bytes(files[events][: frames(tmp_path)[6]])
    with pytest.raises(StoreError, match=r"has 3 rounds on disk instead of the 6 that were played"):
        open_store(tmp_path)
    for file in files:
        file.unlink()
    with pytest.raises(StoreError, match="has 0 rounds on disk instead of the 6"):
        open_store(tmp_path)
    for file, data in files.items():
        file.write_bytes(data)
    fits.fail = False
    policy = open_store(tmp_path)
    policy.select(np.ones((2, DIM)), user=99)
    assert fits.calls[0][1][2].all()


def test_blocks_that_never_reached_the_disk_are_a_call_nobody_heard_of(tmp_path):
    # A machine that stops may leave the last call's bytes as zeros, in either file.
    for kind, tail in (("events", 96), ("rows", 0)):
        path = played(tmp_path / kind, 2, dim=300)
        policy = open_store(path, dim=300)
        policy.select(np.ones((2, 300), np.float32), user=3)
        policy.close()
        file = path / f"episode-00000.0.{kind}"
        data = file.read_bytes()
        start = len(data) - (tail or 1200)
        begin = start if kind == "events" else -(-start // 512) * 512
        file.write_bytes(data[:begin] + bytes(len(data) - begin))
        policy = open_store(path, dim=300)
        assert policy.rounds == 2 and policy.pending == []
        policy.close()


def test_a_short_row_that_never_reached_the_disk_is_a_call_nobody_heard_of(tmp_path):
    """Its frame did, and the file's size: both files wait for the disk at the same time."""
    path = played(tmp_path / "short", 2, dim=20)
    policy = open_store(path, dim=20)
    policy.select(np.ones((2, 20), np.float32), user=3)
    policy.close()
    file = path / "episode-00000.0.rows"
    data = file.read_bytes()
    file.write_bytes(data[:-80] + bytes(80))
    policy = open_store(path, dim=20)
    assert policy.rounds == 2 and policy.pending == []
    policy.close()
    # A row before the last call's is damage: somebody heard of it.
    file.write_bytes(bytes(80) + data[80:])
    with pytest.raises(StoreError, match="damaged"):
        open_store(path, dim=20)


# Random bytes


STATES = {}


def reference(name, directory):
    """A store of today with the rounds that the first version's fixtures have, and what comes of going on."""
    root = directory / "good"
    with FLIPHAT(**make.ARGUMENTS[name], store=root / name) as policy:
        for number in range(make.ROUNDS[name]):
            make.play(policy, name, number)
    shutil.copytree(root, directory / "copy")
    return root / name, outcome(directory / "copy", name)


def outcome(root, name):
    """Open a store, go on with it, and return all there is to see."""
    with make.reopen(root, name) as policy:
        before = plain(make.state(policy))
        return before, make.go_on(policy, name), plain(make.state(policy))


def flip_bytes(tmp_path, name, times):
    """Flip single bytes of each file of a store; how many were refused, and how many did not matter."""
    good, expected = reference(name, tmp_path)
    rng, counts = np.random.default_rng(len(name)), {}
    for file in sorted(good.iterdir()):
        size = file.stat().st_size
        for i in range(times if size else 0):
            root = tmp_path / f"{file.name} {i}"
            shutil.copytree(good, root / name)
            place, bits = int(rng.integers(size)), int(rng.integers(1, 256))
            flip(root / name / file.name, place, bits)
            try:
                assert outcome(root, name) == expected, (file.name, place, bits)
                verdict = "right"
            except StoreError:
                verdict = "refused"
            counts[file.name, verdict] = counts.get((file.name, verdict), 0) + 1
            shutil.rmtree(root)
    return counts


@pytest.mark.parametrize("name", ["dense", "csr"])
def test_some_random_bytes_flipped_in_each_file(tmp_path, name):
    counts = flip_bytes(tmp_path, name, 5)
    assert sum(counts.values()) == 5 * (3 if name == "dense" else 4)
    assert counts["episode-0000" + ("0" if name == "dense" else "1") + ".0.events", "refused"] == 5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dense", "csr"])
def test_a_hundred_random_bytes_flipped_in_each_file(tmp_path, name):
    counts = flip_bytes(tmp_path, name, 100)
    print(counts)
    assert sum(counts.values()) == 100 * (3 if name == "dense" else 4)
    for (file, verdict), count in counts.items():
        assert count == 100 or file == "ledger.sqlite3", (file, verdict)


@pytest.mark.parametrize("name", ["dense", "csr"])
def test_the_first_versions_files_are_as_well_guarded_once_opened(tmp_path, name):
    shutil.copytree(FIXTURES / name, tmp_path / name)
    make.reopen(tmp_path, name).close()
    for file in sorted((tmp_path / name).glob("episode-*")):
        good = file.read_bytes()
        refused = 0
        for place in range(0, len(good), 7):
            flip(file, place, 0x40)
            try:
                with make.reopen(tmp_path, name) as policy:
                    assert plain(make.state(policy)) == EXPECTED[name]["state"], (file.name, place)
            except StoreError as error:
                assert "damaged" in str(error)
                refused += 1
            file.write_bytes(good)
        assert refused == -(-len(good) // 7)
