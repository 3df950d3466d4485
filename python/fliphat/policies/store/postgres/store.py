"""The shared dialect: a policy in a PostgreSQL database, and what its workers ask of it. Private.

Each method is one transaction, durable when it returns (``synchronous_commit`` is on). Of a release's steps
only the commit is waited for: those before it were seen by nobody, and those after it, if a server that
crashes loses them, are taken again with the bits that were committed. Playing is two transactions: the first
counts the rounds and gives the counter's lock back before it is on disk, so that other workers need not wait
for each other's disk; the second is empty and waits for the disk. What is in a write-ahead log is durable in
the order in which it was written, so nothing is told to anyone before it, and all that it rests on, is on
disk. No transaction waits for a reader of the tables: rows of a release are deleted, not truncated.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar

from fliphat.fit.settings import EngineSettings
from fliphat.policies.engine import faults, lifecycle
from fliphat.policies.engine.age import AgeLimit
from fliphat.policies.engine.keeping import EpisodeRow, Key, PackedRound
from fliphat.policies.engine.lifecycle import MAY, Phase
from fliphat.policies.engine.rows import ChosenRows
from fliphat.policies.store.postgres import schema
from fliphat.policies.store.postgres.connections import Array, Busy, Connection, Connections, array
from fliphat.policies.store.rounds import contents_checksum, packed
from fliphat.policies.store.sql import SqlStore, Transaction, Work, episodes_in, write_life
from fliphat.policies.types import Decision, StoreError

__all__ = ["Age", "PostgresStore", "reading"]

_Result = TypeVar("_Result")
_CLAIM_LOCK: Final = 2  # the last part of the number of this policy's lock among the advisory ones

_PLAY: Final = (
    b"CALL fliphat_count(NULL, %s::boolean, %s::integer, %s::integer, %s::bigint, %s::bigint, %s::bigint,"
    b" %s::boolean, %s::boolean, %s::text, %s::boolean[], %s::bytea[], %s::boolean, %s::bytea[], %s::bytea[],"
    b" %s::bigint[], %s::bytea[], %s::integer[], %s::double precision[], %s::text[], %s::integer)"
)
_AGAIN: Final = 6  # the place among its arguments of whether it may have been called before
_REWARD: Final = (
    b"SELECT fliphat_reward(%s::bigint[], %s::double precision[], %s::bigint, %s::bigint, %s::boolean,"
    b" %s::bigint, %s::double precision)"
)
#: An empty transaction that returns when everything before it in the log is durable.
_WAIT_FOR_DISK: Final = b"SELECT pg_logical_emit_message(true, 'fliphat', '')"
#: Seconds that an age can have at most here: a longer one is none.
_LONGEST_AGE: Final = 3e9
#: Steps of a release that can be lost: rounds that rest on them are later in the log.
_NOT_WAITED_FOR: Final = frozenset(("claim", "renew", "let_go", "accept", "show", "close"))
_EMPTY: Final = (
    "UPDATE fliphat_rewards SET reward = 'Infinity' WHERE round IN"
    " (SELECT round FROM fliphat_rounds WHERE {})",
    "UPDATE fliphat_rounds SET learned = false, columns = NULL, numbers = NULL, checksum = NULL WHERE {}",
)


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


class _Transaction:
    """See :class:`fliphat.policies.store.sql.Transaction`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def do(self, sql: str, *given: Any) -> int:
        return self._connection.execute(sql.replace("?", "%s").encode(), given).rowcount

    def script(self, sql: str) -> None:
        """Run several statements without values."""
        self._connection.execute(sql.encode(), prepare=False)

    def all(self, sql: str, *given: Any) -> list[Any]:
        return self._connection.execute(sql.replace("?", "%s").encode(), given, binary=True).fetchall()


class _Keys:
    """Decisions by digests of keys; rounds put them there."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def get(self, name: bytes, default: Any = None, /) -> Decision | None:
        """Return what was played for a key, once that is on disk; None if nothing was."""

        def find(connection: Connection, again: bool) -> Any:
            row = connection.execute(
                b"SELECT id, arm, valid, episode, probability, name FROM fliphat_keys WHERE digest = %s",
                (name,),
            ).fetchone()
            if row is not None:  # perhaps by a worker that is still waiting for the disk
                connection.execute(_WAIT_FOR_DISK)
            return row

        row = self._connections.run(find)
        if row is None:
            return None
        found = Decision(*row[:5])
        return found if row[5] is None else found._replace(arm=json.loads(row[5]))


class PostgresStore(SqlStore):
    """One worker's door to the policy that a database holds."""

    locking = " FOR UPDATE"
    or_forget = ", or forget() to go on without the episode's rows"
    clock = "extract(epoch FROM clock_timestamp())::double precision"

    def __init__(
        self,
        url: str,
        settings: EngineSettings,
        durability: str,
        policy: str,
        options: dict[str, Any],
        secret: bytes,
        room: int,
        arms: Any,
    ) -> None:
        self._connections = Connections(url)
        self.keys: Any = _Keys(self._connections)
        self.settings = settings
        self._durable = durability == "full"

        def begin(tx: Any, again: bool) -> dict[str, Any]:
            # Any number: who creates waits for whoever else does, and then finds the tables.
            tx.all("SELECT pg_advisory_xact_lock(hashtext(current_schema() || ' fliphat'))")
            ((found, _),) = tx.all("SELECT to_regclass('fliphat_policy') IS NOT NULL, 0")
            if not found:
                tx.script(schema.statements())
                self.make(tx, policy, options, secret, room, arms)
            elif not tx.all("SELECT to_regproc('fliphat_count') IS NOT NULL, 0")[0][0]:
                tx.script(schema.procedures().replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))
            kept = self.join(tx, policy, options)
            ((self._locks,),) = tx.all("SELECT ('fliphat_policy'::regclass::oid::bigint) << 8")
            return kept

        try:
            self.kept = self.run("open", begin)
            self._rewrite()
        except BaseException:
            self.close()
            raise

    def run(self, name: str, work: Work[_Result]) -> _Result:
        """See :class:`SqlStore`; a look is one statement, which needs no transaction around it."""

        def inside(connection: Connection, again: bool) -> _Result:
            if name == "look":
                return work(_Transaction(connection), again)
            with connection.transaction():
                if name in _NOT_WAITED_FOR:
                    connection.execute(b"SET LOCAL synchronous_commit = off")
                if name == "rows":
                    connection.execute(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    return work(_Transaction(connection), again)
                result = work(_Transaction(connection), again)
                faults.reached(f"{name} written")
            faults.reached(f"{name} durable")
            return result

        return self._connections.run(inside)

    @staticmethod
    def is_whole(one: Any) -> bool:
        """See :class:`SqlStore`; emptied rows have no checksum."""
        columns, numbers, _, kept, _ = one[7:]
        return numbers is None or kept == contents_checksum(columns, numbers)

    def wait_for_rewards(self, tx: Transaction) -> None:
        """See :class:`SqlStore`."""
        tx.all("SELECT pg_advisory_xact_lock(?)", self._claim_lock)

    @property
    def _claim_lock(self) -> int:
        return int(self._locks + _CLAIM_LOCK)

    # Looking

    def pending(self, timeout: Age) -> list[int]:
        """Return the ids of rounds whose reward may still come."""
        allowed = ", ".join(f"'{phase}'" for phase in sorted(MAY["reward"]))

        def find(tx: Transaction, again: bool) -> list[int]:
            return [
                identity
                for (identity,) in tx.all(
                    "SELECT a.id FROM fliphat_rounds AS a JOIN fliphat_episodes AS e"
                    " ON a.round >= e.first_round AND a.round < e.first_round + e.filled"
                    f" AND phase IN ({allowed})"
                    " LEFT JOIN fliphat_rewards AS b ON b.round = a.round WHERE b.round IS NULL"
                    " AND a.round >= e.first_round + greatest(e.filled - ?::bigint, 0)"
                    f" AND a.played >= coalesce({self.clock} - ?::double precision, '-Infinity')"
                    " ORDER BY a.round",
                    *(timeout.rounds, timeout.seconds),
                )
            ]

        return self.run("look", find)

    # Playing

    def play(
        self, row: EpisodeRow, rounds: Sequence[PackedRound], *, limit: int, kind: str | None, first: int
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
        kind : str or None
            The kind of the user ids, if rounds have them.
        first : int
            What is added to the number of a round to make its id.
        """
        sparse, owned = rounds[0].columns is not None, rounds[0].owner is not None
        keyed = any(one.key is not None for one in rounds)
        sums = [contents_checksum(one.columns, one.numbers) for one in rounds]
        given = [
            *(self._durable, row.episode, row.releases, first, limit, secrets.randbits(62), None),
            *(owned, kind, array("boolean", [one.valid for one in rounds])),
            array("bytea", [one.owner for one in rounds]) if owned else None,
            sparse,
            array("bytea", [one.columns for one in rounds]) if sparse else None,
            array("bytea", [one.numbers for one in rounds]),
            array("bigint", sums),
            *((None,) * 4 if not keyed else _packed_keys(rounds)),
            row.arms,
        ]

        def send(connection: Connection, again: bool) -> int | None:
            given[_AGAIN] = again
            answer = connection.execute(_PLAY, given, binary=True).fetchone()
            faults.reached("played")
            assert answer is not None
            first_id: int | None = answer[0]
            return first_id

        return self._connections.run(send)

    def packed(
        self, valid: Sequence[bool], rows: ChosenRows, owners: list[bytes] | None, key: Key | None
    ) -> list[PackedRound]:
        """Return rounds as they are sent; `key` is that of a single one."""
        users = [None] * len(valid) if owners is None else owners
        contents = packed(rows, self.settings.dtype)
        return [
            PackedRound(fine, owner, *row, key)
            for fine, owner, row in zip(valid, users, contents, strict=True)
        ]

    def reward(self, ids: list[int], rewards: list[float | None], timeout: Age) -> list[int]:
        """Keep rewards: 1 if it was taken, 0 if late, 2 if it is a second one or None; unknown ids raise."""
        order = sorted(range(len(ids)), key=ids.__getitem__)  # so that two batches can't wait for each other
        given = (
            array("bigint", [ids[i] for i in order]),
            array("double", [rewards[i] for i in order]),
            *(secrets.randbits(62), self._claim_lock, self._durable, timeout.rounds, timeout.seconds),
        )

        def send(connection: Connection, again: bool) -> list[int]:
            answer = connection.execute(_REWARD, given, binary=True).fetchone()
            faults.reached("rewarded")
            assert answer is not None
            told: list[int] = answer[0]
            return told

        told = self._connections.run(send)
        outcome = [0] * len(ids)
        for i, one in zip(order, told, strict=True):
            outcome[i] = one
        return outcome

    # Arms

    def change_arms(self, arms: Any, before: int) -> bool:
        """Let rounds play by another table of arms; False if there is a newer one than version `before`."""

        def change(tx: Transaction, again: bool) -> bool:
            # No episode is opened meanwhile, and no round counted: both read the version below.
            self.wait_for_rewards(tx)
            ((version, kept),) = tx.all("SELECT arms_version, arms FROM fliphat_policy FOR UPDATE")
            if version != before:
                return again and (version, kept) == (before + 1, json.dumps(arms))
            tx.do(f"UPDATE fliphat_episodes SET arms = ? WHERE phase <> '{Phase.CLOSED}'", before + 1)
            self.set_policy(tx, arms_version=before + 1, arms=json.dumps(arms))
            return True

        return self.run("arms", change)

    # Forgetting

    def cancel(self, identity: int) -> bool:
        """Empty one round, whose reward can't come any more; False if its episode is claimed."""

        def work(tx: Transaction, again: bool) -> bool:
            ((told,),) = tx.all(
                "SELECT fliphat_reward(ARRAY[?::bigint], ARRAY['Infinity'::double precision], 0, ?::bigint,"
                " true, NULL, NULL)",
                *(identity, self._claim_lock),
            )
            if told[0] == 0:
                tx.do("UPDATE fliphat_policy SET late = late - 1")
                return False
            for statement in _EMPTY:
                tx.do(statement.format("id = ?"), identity)
            return True

        return self.run("cancel", work)

    def forget(self, owner: bytes | None = None) -> int:
        """Empty the rows that are not committed yet, all of them or one user's, in the tables' files too.

        A claim is taken back: no fit that has read one of these rows can be committed after this.
        """

        def work(tx: Transaction, again: bool) -> int:
            self.wait_for_rewards(tx)
            emptied = 0
            for row in episodes_in(tx):
                if row.phase not in MAY["empty"]:
                    continue
                row, _ = self._row(tx, row.episode)
                end = row.first_round + row.filled
                which, given = "round >= ? AND round < ?", list[Any]([row.first_round, end])
                if owner is not None:
                    which, given = which + " AND owner = ?", [*given, owner]
                tx.do(_EMPTY[0].format(which), *given)
                count = tx.do(_EMPTY[1].format(which), *given)
                if count:
                    write_life(tx, row.episode, lifecycle.emptied(row.life))
                emptied += count
            tx.do("UPDATE fliphat_policy SET emptied = emptied + 1")
            return emptied

        emptied = self.run("empty", work)
        self._rewrite()
        return emptied

    def expire(self, limit: Age, early: Age) -> int:
        """Empty rows once one is older than `limit`: all that are older than `early`; how many.

        A fit that is under way has read them all or none: it may go on.
        """

        def over(tx: Transaction, row: EpisodeRow, end: int, age: Age, now: float) -> int:
            """Return how many of an episode's first rows are older than an age."""
            if age.rounds is not None:
                return max(0, min(end - age.rounds - row.first_round, row.filled))
            assert age.seconds is not None
            ((last,),) = tx.all(
                "SELECT max(round) FROM fliphat_rounds WHERE round >= ? AND round < ? AND played <= ?",
                *(row.first_round, row.first_round + row.filled, now - age.seconds),
            )
            return 0 if last is None else int(last - row.first_round + 1)

        def work(tx: Transaction, again: bool) -> int:
            rows = [row for row in episodes_in(tx) if row.phase in MAY["empty"]]
            end = max((row.first_round + row.filled for row in rows), default=0)
            ((now, _),) = tx.all(f"SELECT {self.clock}, 0")
            due = [row for row in rows if over(tx, row, end, limit, now) > row.expired]
            if not due:
                return 0
            self.wait_for_rewards(tx)
            gone = 0
            for seen in due:
                row, _ = self._row(tx, seen.episode)
                if row.phase not in MAY["empty"]:
                    continue
                going = over(tx, row, end, early, now)
                given = (row.first_round + row.expired, row.first_round + going)
                for statement in _EMPTY:
                    tx.do(statement.format("round >= ? AND round < ?"), *given)
                tx.do("UPDATE fliphat_episodes SET expired = ? WHERE episode = ?", going, row.episode)
                gone += max(0, going - row.expired)
            tx.do("UPDATE fliphat_policy SET emptied = emptied + 1")
            return gone

        gone = self.run("empty", work)
        if gone:
            self._rewrite()
        return gone

    def _rewrite(self) -> None:
        """Write the tables of rows again, without what was emptied.

        Whoever reads the tables meanwhile is not waited for long: what is left over is done by the next one
        that forgets or opens the policy.
        """

        def write(connection: Connection, again: bool) -> None:
            ((emptied, rewritten),) = _Transaction(connection).all(
                "SELECT emptied, rewritten FROM fliphat_policy"
            )
            if emptied == rewritten:
                return
            connection.execute(b"SET statement_timeout = 0")
            try:
                for table in (b"rounds", b"rewards"):
                    connection.execute(b"VACUUM FULL fliphat_%s" % table, prepare=False)
            finally:
                connection.execute(b"RESET statement_timeout")
            connection.execute(
                b"UPDATE fliphat_policy SET rewritten = greatest(rewritten, %s::bigint)", (emptied,)
            )

        with contextlib.suppress(Busy):
            self._connections.run(write, patient=False)

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


@contextlib.contextmanager
def reading(url: str) -> Iterator[Transaction]:
    """Give one moment of a database's policy, in a transaction that can't write and that nobody waits for."""
    connections = Connections(url)
    try:
        is_there = b"SELECT to_regclass('fliphat_policy') IS NOT NULL"
        # A server that restarts is waited for; one that does so in the middle of the moment is told of.
        found = connections.run(lambda connection, again: connection.execute(is_there).fetchone())
        if not found or not found[0]:
            raise StoreError("there is no policy in this database")
        with connections.told(), connections.one() as connection, connection.transaction():
            connection.execute(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield _Transaction(connection)
    finally:
        connections.close()


def _packed_keys(rounds: Sequence[PackedRound]) -> tuple[Array, ...]:
    keys = [one.key for one in rounds]
    names = [None if key is None or key.name is None else json.dumps(key.name) for key in keys]
    return (
        array("bytea", [None if key is None else key.digest for key in keys]),
        array("integer", [None if key is None else key.arm for key in keys]),
        array("double", [None if key is None else key.probability for key in keys]),
        array("text", names),
    )
