"""The embedded dialect: a policy in one SQLite file of its directory, with one live owner.

Rows in memory are the working copy of the open episode, and this file is the log of everything: a call is
one transaction of a write-ahead log, synced when it returns ("full"), at most a tenth of a second later
("batch") or together with all others at `flush` ("group"). A release, and a hand-over, also leaves the log
for the file itself before anybody sees it: SQLite drops what is damaged at the end of a log. While somebody
reads, it can't leave; its mark is then written beside the file, and a store without it is refused.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import json
import os
import shutil
import sqlite3
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from fliphat.fit.settings import EngineSettings
from fliphat.policies.engine import faults, files, lifecycle
from fliphat.policies.engine.episode import Episode
from fliphat.policies.engine.keeping import PlayedRounds
from fliphat.policies.engine.lifecycle import Life, Phase, StepRefused
from fliphat.policies.engine.rows import ChosenRows, SparseChosen
from fliphat.policies.store import tables
from fliphat.policies.store.rounds import ROUND, packed, row_checksum
from fliphat.policies.store.sql import SqlStore, Transaction, Work, write_life
from fliphat.policies.store.tables import checksum
from fliphat.policies.types import Decision, StoreError

__all__ = ["FILE", "SqliteStore", "reading"]

FILE: Final = "policy.sqlite3"
#: Seconds between syncs when durability is "batch".
_GROUP: Final = 0.1
_SYNCHRONOUS = "FULL"  # tests that do not stop the machine set it to OFF
_NEW: Final = FILE + ".new-"
#: Says what the log must not lose; written where a reader keeps the log from being emptied.
_IN_LOG: Final = FILE + "-released"
#: Rows of one statement; every SQLite takes the parameters of the largest.
_AT_ONCE: Final = (64, 16, 4, 1)
_LOST: Final = (
    "without it nobody knows which budget was promised and spent. Put it back as it was when the store was "
    "last used, with what lies beside it; if no round was ever played with this store, remove the directory "
    "and begin anew"
)
_OPENINGS: Final = "SELECT openings FROM fliphat_policy"
_STATEMENTS: Final = tables.tables("INTEGER", " WITHOUT ROWID")

_Result = TypeVar("_Result")
_LIVE: weakref.WeakSet[SqliteStore] = weakref.WeakSet()


class _Connection(sqlite3.Connection):
    """See :class:`fliphat.policies.store.sql.Transaction`."""

    def do(self, sql: str, *given: Any) -> int:
        return self.execute(sql, given).rowcount

    def all(self, sql: str, *given: Any) -> list[Any]:
        return self.execute(sql, given).fetchall()


class _Tallies:
    """Values by digest, read from the file when they are asked for; what is not written yet comes first."""

    def __init__(self, store: SqliteStore, table: str, columns: str, read: Callable[..., Any]) -> None:
        self.pending: dict[bytes, Any] = {}
        # Weak: a store that an interrupt kept from closing closes itself when nobody has it any more.
        self._store, self._table, self._read = weakref.ref(store), table, read
        self._select = f"SELECT digest, {columns}, checksum FROM fliphat_{table}"

    def get(self, name: bytes, default: Any = None, /) -> Any:
        found = self.pending.get(name)
        if found is None:
            rows = self._rows(f"{self._select} WHERE digest = ?", name)
            found = next((self._checked(row) for row in rows), None)
        return default if found is None else found

    def __setitem__(self, name: bytes, value: Any, /) -> None:
        self.pending[name] = value

    def items(self) -> Iterator[tuple[bytes, Any]]:
        for row in self._rows(self._select):
            yield bytes(row[0]), self._checked(row)

    def _rows(self, sql: str, *given: Any) -> Iterator[Any]:
        store = self._store()
        assert store is not None
        return store.rows_of(sql, *given)

    def _checked(self, row: Any) -> Any:
        if row[-1] != checksum(*row[:-1]):
            raise StoreError(f"the store's {self._table} are damaged, a checksum does not match: {_LOST}")
        return self._read(*row[1:-1])


class _Held:
    """What calls did and is not in the file yet, one list for each table."""

    def __init__(self) -> None:
        self.rounds: list[tuple[Any, ...]] = []
        self.rewards: list[tuple[Any, ...]] = []
        self.filled: dict[int, tuple[int, int, Phase]] = {}  # episode: rounds before, rounds now, its phase
        self.users: tuple[bool, str | None] | None = None
        self.late = 0


class SqliteStore(SqlStore):
    """The open directory of one live policy."""

    clock = "(julianday('now') - 2440587.5) * 86400.0"

    def __init__(
        self,
        path: str | os.PathLike[str],
        settings: EngineSettings,
        durability: str,
        policy: str,
        options: dict[str, Any],
        secret: bytes,
        room: int,
        arms: Any,
    ) -> None:
        # Absolute: files beside the database are found whatever the working directory becomes.
        self.path, self.settings, self._durability = Path(path).absolute(), settings, durability
        self._log = self.path / (FILE + "-wal")
        self._failed, self._synced = False, time.monotonic()
        self._log_tried: float | None = None  # when a log that should be empty could not be emptied
        self._held = _Held()
        self._users_told = False
        self.users = _Tallies(self, "users", "rounds", int)
        self.keys = _Tallies(self, "keys", "id, arm, valid, episode, probability", _decision)
        self._connection: _Connection | None = None
        # A file object, which closes itself if an interrupt keeps `close` from doing it.
        self._lock: io.FileIO | None = None
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_new(self.path):
            files.sync_directory(self.path.parent)
            try:
                self._create(policy, options, secret, room, arms)
            except (OSError, sqlite3.Error):
                # Another policy was faster, and has tidied up behind this one.
                if not (self.path / FILE).exists():
                    raise
        try:
            # After the file: a lock without one is a store that lost it.
            self._lock = io.FileIO(files.create_private(self.path / "lock"), "r+")
            files.lock(self._lock.fileno(), f"store {str(path)!r}")
            refuse_missing(self.path)
            for stray in self.path.glob(_NEW + "*"):
                stray.unlink(missing_ok=True)
            files.sync_directory(self.path)
            with _telling_damage():
                self._connection = _connected(self.path / FILE)
                for choice in ("journal_mode = WAL", f"synchronous = {_SYNCHRONOUS}", "secure_delete = ON"):
                    self._connection.execute(f"PRAGMA {choice}")
            self._check()
            with _telling_damage():
                _refuse_lost_log(self._connection, _in_log(self.path))
                self.kept = self.run("open", lambda tx, again: self.join(tx, policy, options))
                self._check_tables()
                self._settle_log()  # what a process that was killed had committed is shown soon
            _LIVE.add(self)
        except BaseException:
            self.close()
            raise

    def _create(self, policy: str, options: dict[str, Any], secret: bytes, room: int, arms: Any) -> None:
        """Make the file; it appears under its name whole or not at all."""
        new = self.path / (_NEW + os.urandom(8).hex())
        os.close(files.create_private(new, exclusive=True))  # SQLite gives its own files the mode of this one
        try:
            with contextlib.closing(_connected(new)) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE")
                for statement in _STATEMENTS:
                    connection.execute(statement)
                self.make(connection, policy, options, secret, room, arms)
                connection.execute("COMMIT")
            _rename_to_new(new, self.path / FILE)
        finally:
            for left in self.path.glob(new.name + "*"):
                left.unlink(missing_ok=True)

    def _check(self) -> None:
        with _telling_damage():
            if not self._open.all("SELECT 1 FROM sqlite_master"):
                raise StoreError(f"the store's file {FILE!r} is empty: {_LOST}")
            if self._open.all("PRAGMA quick_check(1)") != [("ok",)]:
                raise StoreError(f"the store's file {FILE!r} is damaged: {_LOST}")

    def _check_tables(self) -> None:
        """Refuse tables that are not told as they were made: SQLite reads them by their text."""
        found = {sql for (sql,) in self.rows_of("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
        if found != {statement.strip() for statement in _STATEMENTS}:
            raise StoreError(f"the store's file {FILE!r} is damaged: {_LOST}")

    # Transactions

    @staticmethod
    def is_whole(one: Any) -> bool:
        """See :class:`SqlStore`."""
        *values, reward, kept, reward_kept = one
        return kept == row_checksum(*values) and (reward is None or reward_kept == checksum(one[0], reward))

    def run(self, name: str, work: Work[_Result]) -> _Result:
        """See :class:`SqlStore`; whatever calls were held comes before."""
        with self:
            self._write_held()
            if name in ("look", "rows"):
                assert self._connection is not None
                with _telling_damage() if name == "rows" else contextlib.nullcontext():
                    return work(self._connection, False)
            return self._transaction(name, work, sync=True)

    @property
    def _open(self) -> _Connection:
        if self._connection is None:
            raise StoreError(f"store {str(self.path)!r} was closed: open it again")
        return self._connection

    def _transaction(self, name: str, work: Work[_Result], *, sync: bool) -> _Result:
        connection = self._connection
        assert connection is not None
        if self._durability == "batch":
            connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS if sync else 'NORMAL'}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            # The lock makes a clear error early. This keeps a second owner out, also where the lock was lost.
            if name != "open" and connection.execute(_OPENINGS).fetchone() != (self.opening,):
                raise StoreError("the store was opened by another policy, which goes on: this one can't")
            result = work(connection, False)
            faults.reached(f"{name} written")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if sync:
            self._synced = time.monotonic()
        faults.reached(f"{name} durable")
        if name in ("commit", "hand over", "empty"):
            self._settle_log()
            faults.reached(f"{name} moved")
        elif self._log_tried is not None and time.monotonic() - self._log_tried >= _GROUP:
            self._empty_log()
        return result

    def _settle_log(self) -> None:
        """Let what must not be undone leave the log before anybody sees it, and what was erased at once."""
        if not self._empty_log():
            self._write_mark()

    def _empty_log(self) -> bool:
        """Move the log to the file; False if somebody reads, for whom nobody waits."""
        connection = self._open
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            ((busy, _, _),) = connection.all("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.execute("PRAGMA busy_timeout = 10000")
        self._log_tried = time.monotonic() if busy else None
        return not busy

    def _write_mark(self) -> None:
        """Write down what the log has, so that a log that lost it is noticed."""
        (found,) = self.rows_of(
            "SELECT e.episode, e.mark, p.handed_over_checksum FROM fliphat_policy AS p LEFT JOIN"
            " fliphat_episodes AS e ON e.mark IS NOT NULL ORDER BY e.episode DESC LIMIT 1"
        )
        new = self.path / (_NEW + os.urandom(8).hex())
        with open(files.create_private(new, exclusive=True), "wb") as file:
            file.write(json.dumps(found).encode())
            file.flush()
            files.sync(file.fileno())
        os.replace(new, self.path / _IN_LOG)
        files.sync_directory(self.path)

    def _write_held(self) -> None:
        held = self._held
        if held.rounds or held.rewards or held.late:
            self._held = _Held()
            sync = self._durability != "batch" or time.monotonic() - self._synced >= _GROUP
            self._transaction("calls", functools.partial(self._write, held), sync=sync)

    def _write(self, held: _Held, connection: Any, again: bool) -> None:
        if held.users is not None:
            connection.execute(
                "UPDATE fliphat_policy SET with_users = ?, user_kind = coalesce(user_kind, ?)", held.users
            )
        if held.rounds:
            _insert(connection, "INSERT INTO fliphat_rounds", held.rounds)
        for episode, (before, filled, phase) in held.filled.items():
            moved = connection.execute(
                "UPDATE fliphat_episodes SET filled = ?, phase = ?"
                " WHERE episode = ? AND filled = ? AND phase = 'open'",
                (filled, str(phase), episode, before),
            )
            if moved.rowcount != 1:
                raise StoreError(f"episode {episode} is not where this policy left it: the store was changed")
        if held.rewards:
            _insert(connection, "INSERT OR REPLACE INTO fliphat_rewards", held.rewards)
        if self.users.pending:
            users = [(name, count, checksum(name, count)) for name, count in self.users.pending.items()]
            _insert(connection, "INSERT OR REPLACE INTO fliphat_users", users)
            self.users.pending = {}
        if self.keys.pending:
            keys = [_key(name, decision) for name, decision in self.keys.pending.items()]
            _insert(connection, "INSERT INTO fliphat_keys", keys)
            self.keys.pending = {}
        if held.late:
            connection.execute("UPDATE fliphat_policy SET late = late + ?", (held.late,))

    def _done(self) -> None:
        """Finish a call: write it now, unless all calls are written together."""
        if self._durability != "group":
            self._write_held()

    # What a call appends

    def append_rounds(self, episode: Episode, played: PlayedRounds, rows: ChosenRows) -> None:
        """Keep played rounds, behind those that the open episode has."""
        with self:
            held, at = self._held, episode.filled
            first = episode.first_round + at
            count = len(played.learned)
            if played.users is not None or not self._users_told:
                held.users, self._users_told = (played.users is not None, played.user_kind), True
            owners = [None] * count if played.users is None else played.users
            for i, (owner, learned, contents) in enumerate(
                zip(owners, played.learned, packed(rows, self.settings.dtype), strict=True)
            ):
                columns, numbers = contents if learned else (None, None)
                sparse = int(isinstance(rows, SparseChosen))
                values = (first + i, played.first_id + i, int(learned), sparse, 0, played.played, owner)
                held.rounds.append((*values, columns, numbers, row_checksum(*values, columns, numbers)))
                if owner is not None:
                    self.users[owner] = self.users.get(owner, 0) + 1
            for name, decision in played.keys.items():
                self.keys[name] = decision
            before = held.filled.get(episode.index, (at,))[0]
            full = at + count == episode.length
            life = lifecycle.step(Life(Phase.OPEN), "fill") if full else Life(Phase.OPEN)
            held.filled[episode.index] = (before, at + count, life.phase)
            self._done()

    def append_rewards(self, first_round: int, rows: Any, codes: Any, late: int = 0) -> None:
        """Keep codes of rewards, by row of the open episode, and how many came too late."""
        with self:
            for row, code in zip(rows, codes, strict=True):
                # SQLite keeps no sign of a zero: what is read back would not have the checksum of -0.0.
                number, value = first_round + int(row), float(code) + 0.0
                self._held.rewards.append((number, value, 0, checksum(number, value)))
            self._held.late += late
            self._done()

    def empty(self, episode: int, first_round: int, rows: Any, expired: int, *, cancel: bool = False) -> Life:
        """Drop the contents of rows; a claim of the episode is taken back."""

        def work(tx: Transaction, again: bool) -> Life:
            for number in (first_round + int(row) for row in rows):
                ((*values,),) = tx.all(f"SELECT {ROUND} FROM fliphat_rounds WHERE round = ?", number)
                values[2], values[7:] = 0, [None, None]
                tx.do(
                    "UPDATE fliphat_rounds SET learned = 0, columns = NULL, numbers = NULL, checksum = ?"
                    " WHERE round = ?",
                    *(row_checksum(*values), number),
                )
                nothing = (number, np.inf, 0, checksum(number, np.inf))
                if cancel or tx.all("SELECT 1 FROM fliphat_rewards WHERE round = ?", number):
                    tx.do("INSERT OR REPLACE INTO fliphat_rewards VALUES (?, ?, ?, ?)", *nothing)
            row, _ = self._row(tx, episode)
            life = lifecycle.emptied(row.life)
            write_life(tx, episode, life)
            tx.do("UPDATE fliphat_episodes SET expired = ? WHERE episode = ?", expired, episode)
            return life

        return self.run("cancel" if cancel else "empty", work)

    def was_handed_over(self) -> bool:
        """Whether a `hand_over` that was cut off was kept; if in doubt it was."""
        try:
            with reading(self.path) as tx:
                return tx.all("SELECT handed_over FROM fliphat_policy")[0][0] is not None
        except Exception:
            return True

    def discard_rows(self) -> None:
        """Drop all rows and rewards."""
        self.run("empty", lambda tx, again: self.drop_rounds(tx, 0, 2**62))

    def rows_of(self, sql: str, *given: Any) -> Iterator[Any]:
        """Return what a query finds."""
        return self._open.execute(sql, given)

    # Opening and closing

    def flush(self) -> None:
        """Return when every call so far is durable."""
        with self:
            self._write_held()
            if self._durability == "batch" and _SYNCHRONOUS != "OFF":
                # SQLite syncs what it writes, and here there is nothing to write.
                with contextlib.suppress(FileNotFoundError), open(self._log, "rb+", buffering=0) as file:
                    files.sync(file.fileno())
                self._synced = time.monotonic()

    def refuse_until_reopened(self) -> None:
        """Raise, now and in every later call."""
        self._failed = True
        with self:
            pass

    def close(self) -> None:
        """Give the directory up; another policy may open it."""
        connection, self._connection = getattr(self, "_connection", None), None
        if connection is not None:
            if self._held and not self._failed:
                with contextlib.suppress(sqlite3.Error, StoreError):
                    self._connection = connection
                    self._write_held()
                self._connection = None
            with contextlib.suppress(sqlite3.Error):
                connection.close()
        if self._lock is not None and not self._lock.closed:
            files.unlock(self._lock.fileno())
            self._lock.close()

    def close_in_child(self) -> None:
        """Let go in a forked child, whose parent goes on: the lock and the connection are the parent's."""
        if self._lock is not None:
            self._lock.close()
        connection, self._connection = self._connection, None
        if connection is not None:
            # Never closed here: SQLite would end the parent's transaction in the memory that both share.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def __enter__(self) -> None:
        """Begin a durable step. After one failed, what is on disk is known again only after reopening."""
        if self._failed or self._connection is None:
            raise StoreError(f"store {str(self.path)!r} failed or was closed: open it again")

    def __exit__(self, kind: object, error: object, *_: object) -> None:
        if kind is None or isinstance(error, StepRefused):
            return
        self._failed = True
        if isinstance(error, sqlite3.Error):
            raise StoreError(
                f"the store can't be read or written: {error}. Nothing acknowledged is lost, open it again"
            ) from None


@contextlib.contextmanager
def reading(path: Path) -> Iterator[Transaction]:
    """Give one moment of a directory's policy, and change nothing, also while it plays.

    A log that a crash left is completed in a copy: completing it in place is for whoever opens the store.
    """
    refuse_missing(path)
    with contextlib.ExitStack() as kept, _telling_damage():
        in_log = _in_log(path)  # before the moment that is read
        try:
            connection = _begin_to_read(path / FILE, "ro", kept)
        except sqlite3.OperationalError:
            copies = Path(kept.enter_context(tempfile.TemporaryDirectory()))
            for name in (FILE, FILE + "-wal"):
                if (path / name).exists():
                    shutil.copyfile(path / name, copies / name)
            connection = _begin_to_read(copies / FILE, "rw", kept)
        _refuse_lost_log(connection, in_log)
        yield connection


def _in_log(path: Path) -> list[Any] | None:
    """Return what the log had when it could not be emptied; None if it always could."""
    log, found = path / _IN_LOG, None
    if log.exists():
        with contextlib.suppress(FileNotFoundError):  # whoever has the store open has just emptied the log
            found = json.loads(log.read_bytes())
    return found


def _refuse_lost_log(tx: Transaction, in_log: list[Any] | None) -> None:
    """Raise if a release that was shown, or a hand-over, is not there any more."""
    if in_log is None:
        return
    episode, mark, handed_over = in_log
    ((kept, left),) = tx.all(
        "SELECT (SELECT mark FROM fliphat_episodes WHERE episode = ?), handed_over_checksum"
        " FROM fliphat_policy",
        episode,
    )
    if kept != mark or handed_over not in (None, left):
        raise StoreError(
            f"the store's log {FILE + '-wal'!r} was lost, and what was released with it: {_LOST}"
        )


def _begin_to_read(path: Path, mode: str, kept: contextlib.ExitStack) -> _Connection:
    if mode == "ro" and not path.with_name(path.name + "-shm").exists():
        raise sqlite3.OperationalError("nobody has it open: reading it in place would write files beside it")
    connection = kept.enter_context(contextlib.closing(_connected(f"{path.resolve().as_uri()}?mode={mode}")))
    connection.execute("BEGIN")
    connection.all("SELECT name FROM sqlite_master")
    return connection


def refuse_missing(path: Path) -> None:
    """Raise if a store has lost its file: a new one would forget what was promised and spent."""
    if (path / "ledger.sqlite3").exists():
        raise StoreError(
            "the store was written by an earlier version (format 4 or below), which this one can't read"
        )
    if not (path / FILE).exists() or (path / FILE).stat().st_size == 0:
        raise StoreError(f"the store's file {FILE!r} is missing or empty: {_LOST}")


def _key(name: bytes, decision: Decision) -> tuple[Any, ...]:
    values = (name, *(int(one) for one in decision[:4]), float(decision.probability))
    return (*values, None, checksum(*values))


def _insert(connection: sqlite3.Connection, into: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows, many a statement: after each the interpreter must be won back from busy threads."""
    at = 0
    while at < len(rows):
        size = next(size for size in _AT_ONCE if size <= len(rows) - at)
        some = rows[at : at + size]
        connection.execute(into + _places(len(some[0]), size), [value for row in some for value in row])
        at += size


@functools.cache
def _places(values: int, rows: int) -> str:
    return " VALUES " + ", ".join([f"({', '.join('?' * values)})"] * rows)


def _decision(identity: int, arm: int, valid: int, episode: int, chance: float) -> Decision:
    return Decision(identity, arm, bool(valid), episode, chance)


def _connected(where: Path | str) -> _Connection:
    return sqlite3.connect(
        where, uri=isinstance(where, str), isolation_level=None, timeout=10, check_same_thread=False,
        factory=_Connection,
    )  # fmt: skip


def _is_new(path: Path) -> bool:
    """Whether to begin a store in a directory; refuses a foreign one, and a store without its file."""
    names = {entry.name for entry in path.iterdir()}
    if FILE in names:
        return False
    if names & {"lock", "ledger.sqlite3", FILE + "-wal"}:
        refuse_missing(path)
    if not all(name.startswith(_NEW) for name in names):
        raise StoreError(f"store {str(path)!r} must be an empty directory or one that a policy made")
    return True


def _rename_to_new(path: Path, target: Path) -> None:
    """Give a file another name, which must be new."""
    if os.name == "nt":
        path.rename(target)
        return
    os.link(path, target)
    path.unlink(missing_ok=True)


@contextlib.contextmanager
def _telling_damage() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StoreError(f"the store can't be read: {error}") from None
    except (sqlite3.Error, LookupError, TypeError, ValueError, OverflowError):
        raise StoreError(f"the store's file {FILE!r} is damaged: {_LOST}") from None


def _close_in_child() -> None:
    # A child that kept the lock's file open would keep the store locked after its parent is gone.
    for store in list(_LIVE):
        store.close_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
