"""A policy in a PostgreSQL database: what its workers ask of it. Private.

Each method is one transaction, durable when it returns (``synchronous_commit`` is on). Playing is two: the
first counts the rounds and gives the counter's lock back before it is on disk, so that other workers need
not wait for each other's disk; the second is empty and waits for the disk. What is in a write-ahead log is
durable in the order in which it was written, so nothing is told to anyone before it, and all that it rests
on, is on disk.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat.fit.settings import EngineSettings
from fliphat.policies.engine.age import AgeLimit
from fliphat.policies.engine.episode import Released
from fliphat.policies.engine.rows import ChosenRows, SparseChosen
from fliphat.policies.store import faults
from fliphat.policies.store.base import refuse_other_settings
from fliphat.policies.store.postgres import schema, wire
from fliphat.policies.store.postgres.connections import Connection, Connections
from fliphat.policies.types import Decision, StoreError

__all__ = ["Age", "EpisodeRow", "Fitting", "Key", "PackedRound", "PostgresStore", "Seen", "recorded"]

#: Bytes of rows that are read at once for a fit.
_CHUNK: Final = 1 << 22
#: Seconds after which a worker that still fits is taken for one that hangs, and another fits, too. Only one
#: of them can commit, and nothing is seen of the other.
LEASE: Final = 120.0
#: The first half of the numbers of this policy's locks among the database's advisory locks.
_FIT_LOCK, _CLAIM_LOCK = 1, 2

_PLAY_ARGUMENTS: Final = (
    *("integer", "integer", "bigint", "bigint", "bigint", "boolean", "boolean", "text", "boolean[]"),
    *("bytea[]", "boolean", "bytea[]", "bytea[]", "bytea[]", "integer[]", "double precision[]", "text[]"),
    "integer",
)
_AGAIN: Final = 5  # the place among them of whether it may have been called before
_PLAY: Final = [wire.function(f"fliphat_play_{half}", _PLAY_ARGUMENTS) for half in (0, 1)]
_REWARD: Final = wire.function(
    "fliphat_reward",
    ("bigint[]", "double precision[]", "bigint", "bigint", "boolean", "bigint", "double precision"),
)
#: An empty transaction that returns when everything before it in the log is durable.
_WAIT_FOR_DISK: Final = b"SELECT pg_logical_emit_message(true, 'fliphat', '')"
#: Seconds that an age can have at most here: a longer one is none, in a server's calendar.
_LONGEST_AGE: Final = 3e9


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """An episode as the database has it; see `fliphat.policies.store.postgres.schema`."""

    episode: int
    first_round: int
    room: int
    filled: int
    releases: int
    arms: int
    opened: bool
    claimed: bool
    released: bool


@dataclass(frozen=True, slots=True)
class Key:
    """What is kept of a round for whoever asks again; `name` is the id of its arm, if arms have ids."""

    digest: bytes
    arm: int
    probability: float
    name: Any = None


@dataclass(frozen=True, slots=True)
class PackedRound:
    """A round as it is sent: its row in bytes, `columns` only if it is sparse."""

    valid: bool
    owner: bytes | None
    columns: bytes | None
    numbers: bytes
    key: Key | None


@dataclass(frozen=True)
class Seen:
    """What one look at the database shows: episodes without a public estimate, new releases, counts."""

    unseen: tuple[EpisodeRow, ...]
    releases: list[tuple[dict[str, Any], npt.NDArray[np.int64], npt.NDArray[np.float64]]]
    known: dict[str, Any] | None
    with_users: bool | None
    user_kind: str | None
    late: int
    arms_version: int
    arms: Any  # the table of arms, None if it is not newer than what was known


@dataclass(frozen=True)
class Age:
    """A limit of age: in rounds, or in seconds by the server's clock; neither is no limit."""

    rounds: int | None = None
    seconds: float | None = None

    @classmethod
    def of(cls, limit: AgeLimit | None) -> Age:
        """Return a limit as the database is told it."""
        if isinstance(limit, timedelta):
            return cls(seconds=min(limit.total_seconds(), _LONGEST_AGE))
        return cls(rounds=limit)


@dataclass
class Fitting:
    """The right to fit, held by a session: it ends with the session, whatever happens to the worker."""

    connection: Connection

    def close(self) -> None:
        """Give the right back; whoever asks after this returns finds it free."""
        # A session that was closed ends on the server a moment later, and its locks with it.
        with contextlib.suppress(Exception):
            self.connection.execute(b"SELECT pg_advisory_unlock_all()")
        self.connection.close()


class PostgresStore:
    """One worker's door to the policy that a database holds."""

    def __init__(
        self,
        url: str,
        policy: str,
        settings: EngineSettings,
        secret: bytes,
        first_room: int,
        arms: Any = None,
    ) -> None:
        self._connections = Connections(url)
        self._settings = settings
        self._number = np.dtype(settings.dtype).newbyteorder("<")
        self._durable = True
        try:
            self._create(policy, secret, first_room, arms)
            self._open(policy)
        except BaseException:
            self.close()
            raise

    def _create(self, policy: str, secret: bytes, first_room: int, arms: Any) -> None:
        """Create the tables unless they are there, which one of several workers does."""

        def create(connection: Connection, again: bool) -> None:
            with connection.transaction():
                # Any number: who creates waits for whoever else does, and then finds the tables.
                connection.execute(b"SELECT pg_advisory_xact_lock(hashtext(current_schema() || ' fliphat'))")
                (found,) = _one(connection.execute(b"SELECT to_regclass('fliphat_policy') IS NOT NULL"))
                if found:
                    return
                connection.execute(schema.SCHEMA.encode(), prepare=False)
                connection.execute(
                    b"INSERT INTO fliphat_policy (format, policy, settings, secret, openings, arms)"
                    b" VALUES (%s, %s, %s, %s, -1, %s)",
                    (schema.FORMAT, policy, json.dumps(self._settings.to_dict()), secret, json.dumps(arms)),
                )
                connection.execute(
                    b"INSERT INTO fliphat_episodes (episode, first_round, room, releases, opened)"
                    b" VALUES (0, 1, %s, 0, true)",
                    (first_room,),
                )

        self._connections.run(create)

    def _open(self, policy: str) -> None:
        def read(connection: Connection, again: bool) -> Any:
            return _one(
                connection.execute(
                    b"SELECT format, policy, settings, secret,"
                    b" 'fliphat_policy'::regclass::oid::bigint FROM fliphat_policy"
                )
            )

        version, made, settings, secret, oid = self._connections.run(read)
        if version > schema.FORMAT:
            raise StoreError(
                f"the store was written by a newer version (format {version}, this one reads {schema.FORMAT})"
            )
        if made != policy:
            raise StoreError(f"the database holds a {made}, not a {policy}: a schema holds one policy")
        refuse_other_settings(json.loads(settings), self._settings)
        self.secret = bytes(secret)
        self._locks = oid << 8

        def count(connection: Connection, again: bool) -> Any:
            return _one(
                connection.execute(b"UPDATE fliphat_policy SET openings = openings + 1 RETURNING openings")
            )

        (self.opening,) = self._connections.run(count)

        def rewrite(connection: Connection, again: bool) -> None:
            (due,) = _one(connection.execute(b"SELECT rewritten < emptied FROM fliphat_policy"))
            if due:
                _rewrite(connection)

        self._connections.run(rewrite)

    def set_durability(self, durability: str) -> None:
        """Say whether a call waits for the disk ("full") or `flush` does ("batch")."""
        self._durable = durability == "full"

    # Looking

    def look(self, known: int, arms_version: int) -> Seen:
        """Return what is not public yet, and what became public after the first `known` releases.

        Also the table of arms, if it is newer than `arms_version`.
        """

        def read(connection: Connection, again: bool) -> list[Any]:
            # One statement, which sees one moment.
            return connection.execute(
                b"SELECT episode, first_round, room, filled, releases, e.arms, opened, claimed, released,"
                b" seen, CASE WHEN seen THEN facts END, CASE WHEN seen THEN indices END,"
                b" CASE WHEN seen THEN numbers END, CASE WHEN seen THEN known END,"
                b" with_users, user_kind, late, arms_version, CASE WHEN arms_version > %s THEN p.arms END"
                b" FROM fliphat_episodes AS e CROSS JOIN fliphat_policy AS p"
                b" WHERE NOT seen OR episode >= %s ORDER BY episode",
                (arms_version, known),
                binary=True,
            ).fetchall()

        rows = self._connections.run(read)
        unseen = tuple(EpisodeRow(*row[:9]) for row in rows if not row[9])
        if not unseen:
            raise _lost()
        shown = [row for row in rows if row[9]]
        with_users, user_kind, late, version, arms = rows[0][14:]
        return Seen(
            unseen,
            [
                (json.loads(row[10]), np.frombuffer(row[11], "<i8"), np.frombuffer(row[12], "<f8"))
                for row in shown
            ],
            json.loads(shown[-1][13]) if shown else None,
            with_users,
            user_kind,
            late,
            version,
            None if arms is None else json.loads(arms),
        )

    def decision(self, key: bytes) -> Decision | None:
        """Return what was played for a key, once that is on disk; None if nothing was."""

        def find(connection: Connection, again: bool) -> Any:
            with connection.pipeline():
                found = connection.execute(
                    b"SELECT id, arm, valid, episode, probability, name FROM fliphat_keys WHERE digest = %s",
                    (key,),
                )
            row = found.fetchone()
            if row is not None:  # perhaps by a worker that is still waiting for the disk
                connection.execute(_WAIT_FOR_DISK)
            return row

        row = self._connections.run(find)
        if row is None:
            return None
        found = Decision(*row[:5])
        return found if row[5] is None else found._replace(arm=json.loads(row[5]))

    def pending(self, timeout: Age) -> list[int]:
        """Return the ids of rounds whose reward may still come."""

        def find(connection: Connection, again: bool) -> list[int]:
            with connection.transaction():
                connection.execute(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                open_ones = connection.execute(
                    b"SELECT episode, filled FROM fliphat_episodes WHERE NOT claimed ORDER BY episode"
                ).fetchall()
                return [
                    identity
                    for episode, filled in open_ones
                    for (identity,) in connection.execute(
                        b"SELECT id FROM fliphat_rounds_%d AS rounds"
                        b" LEFT JOIN fliphat_rewards_%d AS rewards USING (slot)"
                        b" WHERE rewards.slot IS NULL AND slot >= %%s"
                        b" AND played > coalesce(now() - make_interval(secs => %%s), '-infinity')"
                        b" ORDER BY slot" % (episode % 2, episode % 2),
                        (0 if timeout.rounds is None else max(0, filled - timeout.rounds), timeout.seconds),
                    )
                ]

        return self._connections.run(find)

    # Playing

    def play(
        self,
        row: EpisodeRow,
        rounds: Sequence[PackedRound],
        *,
        limit: int,
        users: tuple[bool, str | None] | None,
        first: int,
    ) -> int | None:
        """Play rounds, and return the first one's id; None if the episode has no room or a newer estimate.

        Parameters
        ----------
        row : EpisodeRow
            The episode, as it was when the arms were chosen.
        rounds : sequence of PackedRound
            All dense, or all sparse; all with a user, or all without.
        limit : int
            Rounds of one user that are learned from.
        users : (bool, str or None), or None
            Whether there are user ids, and their kind; None if the database is known to agree.
        first : int
            What is added to the number of a round to make its id.
        """
        sparse, owned = rounds[0].columns is not None, rounds[0].owner is not None
        keyed = any(one.key is not None for one in rounds)
        with_users, kind = (None, None) if users is None else users
        given = [
            *(wire.integer(row.episode), wire.integer(row.releases), wire.bigint(first), wire.bigint(limit)),
            *(wire.bigint(secrets.randbits(62)), None, wire.boolean(with_users), wire.text(kind)),
            wire.booleans([one.valid for one in rounds]),
            wire.bytes_array([one.owner for one in rounds]) if owned else None,
            wire.boolean(sparse),
            wire.bytes_array([one.columns for one in rounds]) if sparse else None,
            wire.bytes_array([one.numbers for one in rounds]),
            *((None,) * 4 if not keyed else _packed_keys(rounds)),
            wire.integer(row.arms),
        ]

        def send(connection: Connection, again: bool) -> int | None:
            given[_AGAIN] = wire.boolean(again)
            calls: list[wire.Call] = [(_PLAY[row.episode % 2], given)]
            if self._durable:
                calls.append((_WAIT_FOR_DISK, []))
            first_id = wire.send(connection, calls)[0]
            faults.reached("played")
            return None if first_id is None else int.from_bytes(first_id, "big")

        return self._connections.run(send)

    def packed(
        self, valid: Sequence[bool], rows: ChosenRows, owners: list[bytes] | None, key: Key | None
    ) -> list[PackedRound]:
        """Return rounds as they are sent; `key` is that of a single one."""
        columns: list[bytes] | list[None]
        if isinstance(rows, SparseChosen):
            ends = np.cumsum(rows.lengths)
            parts = [slice(int(end - size), int(end)) for end, size in zip(ends, rows.lengths, strict=True)]
            stored, values = rows.columns.astype("<i4"), rows.values.astype(self._number, copy=False)
            columns = [stored[part].tobytes() for part in parts]
            numbers = [values[part].tobytes() for part in parts]
        else:
            columns = [None] * len(rows)
            numbers = [row.tobytes() for row in rows.astype(self._number, copy=False)]
        users = [None] * len(numbers) if owners is None else owners
        return [PackedRound(*one, key) for one in zip(valid, users, columns, numbers, strict=True)]

    def reward(self, ids: list[int], rewards: list[float | None], timeout: Age) -> list[int]:
        """Keep rewards: 1 if it was taken, 0 if late, 2 if it is a second one or None; unknown ids raise."""
        order = sorted(range(len(ids)), key=ids.__getitem__)  # so that two batches can't wait for each other
        given = [
            wire.numbers([ids[i] for i in order], "bigint"),
            wire.numbers([rewards[i] for i in order], "double"),
            wire.bigint(secrets.randbits(62)),
            wire.bigint(self._lock(_CLAIM_LOCK)),
            wire.boolean(self._durable),
            wire.bigint(timeout.rounds),
            wire.double(timeout.seconds),
        ]

        def send(connection: Connection, again: bool) -> bytes | None:
            (answer,) = wire.send(connection, [(_REWARD, given)])
            faults.reached("rewarded")
            return answer

        told = wire.read_integers(self._connections.run(send) or b"")
        outcome = [0] * len(ids)
        for i, one in zip(order, told, strict=True):
            outcome[i] = one
        return outcome

    # Arms

    def change_arms(self, arms: Any, before: int) -> bool:
        """Let rounds play by another table of arms; False if there is a newer one than version `before`."""

        def change(connection: Connection, again: bool) -> Any:
            return _one(
                connection.execute(
                    b"SELECT fliphat_change_arms(%s, %s, %s, %s)",
                    (before, json.dumps(arms), again, self._lock(_CLAIM_LOCK)),
                )
            )

        (done,) = self._connections.run(change)
        return bool(done)

    # Releasing

    def claim(self, episode: int, next_room: int) -> None:
        """Fix which rewards of a full episode count; as many rounds of the next may be played meanwhile."""
        faults.reached("before claim")
        self._connections.run(
            lambda connection, again: connection.execute(
                b"SELECT fliphat_claim(%s, %s, %s)", (episode, next_room, self._lock(_CLAIM_LOCK))
            )
        )
        faults.reached("claimed")

    def begin_fitting(self, episode: int) -> Fitting | None:
        """Return the right to fit an episode, None if another worker has it."""
        lock = self._lock(_FIT_LOCK)

        def begin(connection: Connection, again: bool) -> Fitting | None:
            # A look first: whoever waits for another's fit asks often, and a session of its own is dear.
            (held, stale) = _one(
                connection.execute(
                    b"SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted"
                    b" AND objsubid = 1 AND (classid::bigint << 32) + objid::bigint = %s"
                    b" AND database = (SELECT oid FROM pg_database WHERE datname = current_database())),"
                    b" (SELECT coalesce(fitting_since < now() - make_interval(secs => %s), false)"
                    b" FROM fliphat_episodes WHERE episode = %s)",
                    (lock, LEASE, episode),
                )
            )
            if held and not stale:
                return None
            own = self._connections.keep()
            try:
                (got,) = _one(own.execute(b"SELECT pg_try_advisory_lock(%s)", (lock,)))
                if got or stale:
                    own.execute(
                        b"UPDATE fliphat_episodes SET fitting_since = now() WHERE episode = %s", (episode,)
                    )
                    return Fitting(own)
            except BaseException:
                own.close()
                raise
            own.close()
            return None

        return self._connections.run(begin)

    def layout(self, episode: EpisodeRow) -> str:
        """Return the layout of a claimed episode's first row, which all of them are given to the fit in."""
        (sparse,) = self._connections.run(
            lambda connection, again: _one(
                connection.execute(
                    b"SELECT bool_or(sparse) FROM fliphat_rounds_%d WHERE slot = 0" % (episode.episode % 2)
                )
            )
        )
        return "csr" if sparse else "dense"

    def codes(self, episode: EpisodeRow) -> npt.NDArray[np.float64]:
        """Return the code of each round's reward; to be read after the rows.

        A row that is emptied meanwhile, by whoever forgets, then has none that counts.
        """

        def read(connection: Connection, again: bool) -> Any:
            return connection.execute(
                b"SELECT CASE WHEN learned THEN coalesce(reward, 'NaN')"
                b" WHEN reward IS NULL THEN '-Infinity' ELSE 'Infinity' END"
                b" FROM fliphat_rounds_%d LEFT JOIN fliphat_rewards_%d USING (slot) ORDER BY slot"
                % (episode.episode % 2, episode.episode % 2),
                binary=True,
            ).fetchall()

        rows = self._connections.run(read)
        if len(rows) != episode.room:
            raise StoreError(
                f"episode {episode.episode} has {len(rows)} rounds in the database instead of the "
                f"{episode.room} that were played: restore what was removed"
            )
        return np.array([code for (code,) in rows], np.float64)

    def rows(self, episode: EpisodeRow, layout: str) -> Iterator[tuple[int, ChosenRows]]:
        """Yield a claimed episode's rows in order, in parts, each with its first slot."""
        dim, table = self._settings.row_width, b"fliphat_rounds_%d" % (episode.episode % 2)
        width = dim * self._number.itemsize
        step = max(1, _CHUNK // width) if layout == "dense" else 4096
        for at in range(0, episode.room, step):
            given = (at, at + step)
            if layout == "dense":
                (whole,) = self._connections.run(
                    lambda connection, again, given=given: _one(  # type: ignore[misc]
                        connection.execute(
                            b"SELECT string_agg(coalesce(numbers, %s), ''::bytea ORDER BY slot) FROM "
                            + table
                            + b" WHERE slot >= %s AND slot < %s AND NOT sparse",
                            (bytes(width), *given),
                            binary=True,
                        )
                    )
                )
                size = min(step, episode.room - at)
                if whole is not None and len(whole) == size * width:
                    yield at, np.frombuffer(whole, self._number).reshape(size, dim)
                    continue
            listed = self._connections.run(
                lambda connection, again, given=given: connection.execute(  # type: ignore[misc]
                    b"SELECT sparse, columns, numbers FROM " + table + b" WHERE slot >= %s AND slot < %s"
                    b" ORDER BY slot",
                    given,
                    binary=True,
                ).fetchall()
            )
            yield at, self._unpacked(listed, layout)

    def _unpacked(self, listed: list[Any], layout: str) -> ChosenRows:
        """Return rows of whatever layout each was played in, in one."""
        dim, parts = self._settings.row_width, []
        for sparse, columns, numbers in listed:
            values = np.frombuffer(numbers or b"", self._number)
            if sparse:
                parts.append((np.frombuffer(columns or b"", "<i4"), values))
            else:
                (kept,) = np.nonzero(values)
                parts.append((kept.astype(np.int32), values[kept]))
        if layout == "csr":
            lengths = np.array([len(columns) for columns, _ in parts], np.uint32)
            return SparseChosen(
                lengths,
                np.concatenate([columns for columns, _ in parts]).astype(np.int32),
                np.concatenate([values for _, values in parts]),
            )
        dense = np.zeros((len(parts), dim), self._number)
        for row, (columns, values) in zip(dense, parts, strict=True):
            row[columns] = values
        return dense

    def commit(self, released: Released, fence: str, show: bool) -> None:
        """Make an estimate durable unless another worker's was first, public if `show`, and drop the rows."""
        facts, estimate = released.facts, released.facts.estimate
        given = (
            facts.episode,
            json.dumps(facts.to_dict()),
            estimate.indices.astype("<i8").tobytes(),
            estimate.values.astype("<f8").tobytes(),
            json.dumps(released.known.to_record()),
            released.following.length,
            fence,
            show,
        )
        faults.reached("before commit")
        self._connections.run(
            lambda connection, again: connection.execute(
                b"SELECT fliphat_commit(%s, %s, %s, %s, %s, %s, %s, %s)", given
            )
        )
        faults.reached("committed")

    def fences(self, releases: int) -> list[str]:
        """Return the fences of the last two of the first `releases` releases."""

        def read(connection: Connection, again: bool) -> dict[int, str]:
            return dict(
                connection.execute(
                    b"SELECT episode, fence FROM fliphat_episodes WHERE released AND episode >= %s",
                    (releases - 2,),
                ).fetchall()
            )

        found = self._connections.run(read)
        return [found.get(releases - 2, ""), found.get(releases - 1, "")]

    def show(self, episode: int) -> None:
        """Make a committed estimate public."""
        self._connections.run(
            lambda connection, again: connection.execute(b"SELECT fliphat_show(%s)", (episode,))
        )

    def witnessed(self) -> bool:
        """Whether the policy is played with a witness."""
        (found,) = self._connections.run(
            lambda connection, again: _one(connection.execute(b"SELECT witnessed FROM fliphat_policy"))
        )
        return bool(found)

    def keep_witnessed(self) -> None:
        """Record that the policy is played with a witness."""
        self._connections.run(
            lambda connection, again: connection.execute(b"UPDATE fliphat_policy SET witnessed = true")
        )

    # Forgetting

    def cancel(self, identity: int) -> bool:
        """Empty one round, whose reward can't come any more; False if its episode is claimed."""
        given = (identity, self._lock(_CLAIM_LOCK))
        (done,) = self._connections.run(
            lambda connection, again: _one(connection.execute(b"SELECT fliphat_cancel(%s, %s)", given))
        )
        return bool(done)

    def forget(self, owner: bytes | None = None) -> int:
        """Empty the rows that are not fitted yet, all of them or one user's, in the tables' files too."""
        which = b"owner = %s" if owner is not None else b"true"
        given = (owner,) if owner is not None else ()

        def empty(connection: Connection, again: bool) -> int:
            emptied = 0
            with connection.transaction():
                connection.execute(b"SELECT pg_advisory_xact_lock(%s)", (self._lock(_CLAIM_LOCK),))
                for half in (0, 1):
                    connection.execute(
                        b"UPDATE fliphat_rewards_%d SET reward = 'Infinity' WHERE slot IN"
                        b" (SELECT slot FROM fliphat_rounds_%d WHERE " % (half, half) + which + b")",
                        given,
                    )
                    emptied += connection.execute(
                        b"UPDATE fliphat_rounds_%d SET learned = false, columns = NULL, numbers = NULL WHERE "
                        % half
                        + which,
                        given,
                    ).rowcount
                connection.execute(b"UPDATE fliphat_policy SET emptied = emptied + 1")
            faults.reached("forgotten")
            _rewrite(connection)
            return emptied

        return self._connections.run(empty)

    def expire(self, limit: Age, early: Age) -> int:
        """Empty rows once one is older than `limit`: all that are older than `early`; how many."""
        given = (limit.rounds, early.rounds, limit.seconds, early.seconds, self._lock(_CLAIM_LOCK))

        def empty(connection: Connection, again: bool) -> int:
            (emptied,) = _one(
                connection.execute(
                    b"SELECT fliphat_expire(%s::bigint, %s::bigint, %s::float8, %s::float8, %s)", given
                )
            )
            faults.reached("expired")
            if emptied:
                _rewrite(connection)
            return int(emptied)

        return self._connections.run(empty)

    # Opening and closing

    @property
    def closed(self) -> bool:
        """Whether this worker has let go."""
        return self._connections.closed

    def flush(self) -> None:
        """Return when every call so far is durable."""
        self._connections.run(lambda connection, again: connection.execute(_WAIT_FOR_DISK))

    def close(self) -> None:
        """Close this worker's connections; others play on."""
        self._connections.close()

    def _lock(self, which: int) -> int:
        return int(self._locks + which)


def recorded(url: str) -> dict[str, Any] | None:
    """Return the record of the settings that a database's policy was made with; None if there is none yet."""
    connections = Connections(url)
    try:

        def read(connection: Connection, again: bool) -> Any:
            (found,) = _one(connection.execute(b"SELECT to_regclass('fliphat_policy') IS NOT NULL"))
            return connection.execute(b"SELECT settings FROM fliphat_policy").fetchone() if found else None

        row = connections.run(read)
    finally:
        connections.close()
    return None if row is None else json.loads(row[0])


def _packed_keys(rounds: Sequence[PackedRound]) -> tuple[bytes | None, ...]:
    keys = [one.key for one in rounds]
    names = [None if key is None or key.name is None else json.dumps(key.name) for key in keys]
    return (
        wire.bytes_array([None if key is None else key.digest for key in keys]),
        wire.numbers([None if key is None else key.arm for key in keys], "integer"),
        wire.numbers([None if key is None else key.probability for key in keys], "double"),
        wire.texts(names),
    )


def _rewrite(connection: Connection) -> None:
    """Write the tables of rows again, without what was emptied; whoever opens does what was cut off."""
    (emptied,) = _one(connection.execute(b"SELECT emptied FROM fliphat_policy"))
    for half in (0, 1):
        for table in (b"rounds", b"rewards"):
            connection.execute(b"VACUUM FULL fliphat_%s_%d" % (table, half), prepare=False)
    connection.execute(
        b"UPDATE fliphat_policy SET rewritten = greatest(rewritten, %s::bigint) WHERE rewritten < %s::bigint",
        (emptied, emptied),
    )


def _one(cursor: Any) -> Any:
    row = cursor.fetchone()
    if row is None:
        raise _lost()
    return row


def _lost() -> StoreError:
    return StoreError("the database has lost the policy's row: restore what was removed")
