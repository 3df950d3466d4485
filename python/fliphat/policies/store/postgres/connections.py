"""Connections to a database, each used by one thread at a time, and what becomes of their errors. Private.

A server that restarts, or a connection that is cut, is waited for: whatever was under way is asked for, or
done again, on a new connection. So everything that is run here must be able to run twice; each piece of
work is told whether it may have run before. Any other error is one of the database's own, and ends as a
`StoreError` that says what kind it was and nothing of what was sent.
"""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from fliphat import process
from fliphat.policies.store.postgres.schema import APPLICATION, OTHER_KEY, OTHER_USERS, UNKNOWN_DECISION
from fliphat.policies.types import StoreError

try:
    import psycopg
    from psycopg import errors
    from psycopg.adapt import Dumper
    from psycopg.pq import Format
except ImportError as missing:  # pragma: no cover - depends on what is installed
    raise ImportError("store='postgresql://...' needs psycopg: pip install 'fliphat[postgres]'") from missing

__all__ = ["Array", "Busy", "Connections", "OtherKey", "OtherUsers", "UnknownDecision", "array"]


class Busy(Exception):
    """Others hold what was asked for, and it is not worth waiting."""


class OtherKey(Exception):
    """Another worker has played a round with this key."""


class OtherUsers(Exception):
    """Other workers gave user ids of another kind, or none where some are given now."""


class UnknownDecision(Exception):
    """No round has this id."""


Connection = psycopg.Connection[tuple[Any, ...]]
_Result = TypeVar("_Result")
#: What is run: given a connection, and whether an earlier run of it may have come through.
Work = Callable[[Connection, bool], _Result]

#: Seconds that a call waits for a server that does not answer.
PATIENCE: Final = 30.0
_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 0.5

#: A server notices within this time that a worker's machine is gone, and a worker that its server is.
_ALIVE: Final = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "connect_timeout": 10,
    "tcp_user_timeout": 10_000,
    "fallback_application_name": APPLICATION,
}
_REFUSALS: Final[dict[str, type[Exception]]] = {
    OTHER_KEY: OtherKey,
    OTHER_USERS: OtherUsers,
    UNKNOWN_DECISION: UnknownDecision,
}
_SESSION: Final = (
    b"SET tcp_keepalives_idle = 10",
    b"SET tcp_keepalives_interval = 5",
    b"SET tcp_keepalives_count = 3",
    b"SET lock_timeout = '4s'",
    b"SET statement_timeout = '60s'",
    # A worker that hangs in the middle of a transaction must not keep its locks.
    b"SET idle_in_transaction_session_timeout = '4s'",
)


class Array(bytes):
    """An array in the server's binary form: psycopg takes several times as long for one as for a round."""


class _ArrayDumper(Dumper):
    """Sends an array as it is; of which type it is the statement says, by a cast."""

    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:
        return bytes(obj)


_NULL: Final = struct.pack(">i", -1)
#: Of each type of elements: its number at the server, and how an element is packed.
_ELEMENTS: Final[dict[str, tuple[int, Callable[[Any], bytes]]]] = {
    "boolean": (16, struct.Struct(">?").pack),
    "bytea": (17, bytes),
    "bigint": (20, struct.Struct(">q").pack),
    "integer": (23, struct.Struct(">i").pack),
    "text": (25, str.encode),
    "double": (701, struct.Struct(">d").pack),
}


def array(kind: str, values: Sequence[Any]) -> Array:
    """Return an array of one dimension, of values or None.

    Examples
    --------
    >>> array("integer", [7]).hex()
    '00000001000000000000001700000001000000010000000400000007'
    """
    number, pack = _ELEMENTS[kind]
    parts = [struct.pack(">iiIii", 1, int(None in values), number, len(values), 1)]
    for one in values:
        if one is None:
            parts.append(_NULL)
        else:
            packed = pack(one)
            parts += (struct.pack(">i", len(packed)), packed)
    return Array(b"".join(parts))


class Connections:
    """As many open connections as threads are in the middle of a call."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: list[Connection] = []
        self._process = process.token
        self.closed = False
        try:
            # At once: an address that is wrong is not worth waiting for.
            self._idle.append(self._connect())
        except psycopg.Error as error:
            if error.sqlstate is not None:
                raise _explained(error) from None
            raise StoreError(
                f"the database can't be reached ({type(error).__name__}): check address, account and password"
            ) from None

    def run(self, work: Work[_Result], *, patient: bool = True) -> _Result:
        """Run a piece of work, again if its connection is lost or it met another's locks.

        Unless it is `patient`, others' locks raise :class:`Busy`.
        """
        again, until, pause = False, time.monotonic() + PATIENCE, _PAUSE
        while True:
            try:
                with self.one() as connection:
                    return work(connection, again)
            except psycopg.Error as error:
                if not patient and isinstance(error, errors.LockNotAvailable):
                    raise Busy from None
                if not _passes(error):
                    raise _explained(error) from None
                if time.monotonic() >= until:
                    raise StoreError(
                        f"the database did not answer for {PATIENCE:g} seconds: nothing is lost, call again "
                        f"when it does"
                    ) from None
            again = True
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    @contextlib.contextmanager
    def one(self) -> Iterator[Connection]:
        """Give a connection; after an error that it may not have survived, it is closed."""
        self._refuse_closed()
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        kept = False
        try:
            yield connection
            kept = True
        except Exception:
            kept = not connection.closed and connection.pgconn.transaction_status == 0
            raise
        finally:
            if kept and not self.closed:
                self._idle.append(connection)
            else:
                connection.close()

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Turn a database's errors into what callers are told."""
        try:
            yield
        except psycopg.Error as error:
            raise _explained(error) from None

    def close(self) -> None:
        """Close every connection that is not in use; those that are, when they are given back."""
        self.closed = True
        if self._process is not process.token:
            return  # the parent's: a child must not end its parent's sessions
        while self._idle:
            self._idle.pop().close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _connect(self) -> Connection:
        connection = Connection.connect(self._url, autocommit=True, **_ALIVE)  # type: ignore[arg-type]
        try:
            for statement in _SESSION:
                connection.execute(statement)
        except BaseException:
            connection.close()
            raise
        # Everything that is sent is one of a few statements: prepare each at its first use.
        connection.prepare_threshold = 0
        connection.adapters.register_dumper(Array, _ArrayDumper)
        return connection

    def _refuse_closed(self) -> None:
        if self.closed or self._process is not process.token:
            raise StoreError("the database's policy was closed: open it again")


def _passes(error: psycopg.Error) -> bool:
    """Whether an error is over when a new connection can be made, or others have finished."""
    if isinstance(error, (errors.SerializationFailure, errors.DeadlockDetected, errors.LockNotAvailable)):
        return True
    state = error.sqlstate
    if state is None:  # the connection's own: it was lost, or could not be made
        return isinstance(error, psycopg.OperationalError)
    # Shut down, crashed, starting up, out of connections, idle for too long in a transaction, a statement
    # that has to be prepared again, or lost.
    return state in ("57P01", "57P02", "57P03", "53300", "25P03", "26000") or state.startswith("08")


def _explained(error: psycopg.Error) -> BaseException:
    """Return what the caller is told: the kind of error, nothing of what was sent."""
    kind = type(error).__name__
    if error.sqlstate is None:
        why = f"is not there any more ({kind})"
    elif isinstance(error, errors.ReadOnlySqlTransaction):
        why = "is read-only"
    elif isinstance(error, (errors.DiskFull, errors.InsufficientResources)):
        why = "has no room left"
    elif isinstance(error, errors.InsufficientPrivilege):
        why = "does not let this account do that"
    elif isinstance(error, errors.UndefinedTable):
        why = "has lost the policy's tables"
    elif error.sqlstate in _REFUSALS:
        return _REFUSALS[error.sqlstate]()
    else:
        why = f"refused with {kind} ({error.sqlstate})"
    return StoreError(f"the database {why}: this call did not happen, and nothing before it is lost")
