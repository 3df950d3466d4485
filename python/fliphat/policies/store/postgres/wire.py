"""The calls of a round in the server's binary form, each a transaction, several in one round trip. Private.

psycopg's cursors adapt any value to any statement, and take longer for that than the server for a round. What
a round sends is the same few functions with arguments of known types; they are packed here, and sent with the
part of psycopg that is libpq. Numbers are big-endian, and an array is a head and then its elements, each
behind its length.
"""

from __future__ import annotations

import itertools
import select
import struct
from collections.abc import Sequence
from typing import Any, Final

try:
    import psycopg
    from psycopg import errors, pq
except ImportError as missing:  # pragma: no cover - depends on what is installed
    raise ImportError("store='postgresql://...' needs psycopg: pip install 'fliphat[postgres]'") from missing

__all__ = [
    "Call",
    "Session",
    "bigint",
    "boolean",
    "booleans",
    "bytes_array",
    "double",
    "function",
    "integer",
    "numbers",
    "read_integers",
    "send",
    "text",
    "texts",
]

#: A statement and its arguments, packed; None is NULL.
Call = tuple[bytes, list[bytes | None]]

_BYTES, _BOOLEAN, _TEXT = 17, 16, 25
_NUMBERS: Final = {
    "integer": (23, struct.Struct(">i")),
    "bigint": (20, struct.Struct(">q")),
    "double": (701, struct.Struct(">d")),
}
_NULL: Final = struct.pack(">i", -1)
_HEAD: Final = struct.Struct(">iiIii")
#: Milliseconds.
_LOOK_UP: Final = 200


class Session(psycopg.Connection[tuple[Any, ...]]):
    """A connection that remembers which statements its server has prepared."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.prepared: dict[bytes, bytes] = {}
        self.names = itertools.count()


def function(name: str, types: Sequence[str]) -> bytes:
    """Return the statement that calls a function.

    Examples
    --------
    >>> function("fliphat_show", ["integer"])
    b'SELECT fliphat_show($1::integer)'
    """
    return f"SELECT {name}({', '.join(f'${i}::{one}' for i, one in enumerate(types, 1))})".encode()


def send(session: Session, calls: Sequence[Call]) -> list[bytes | None]:
    """Make calls, each a transaction of its own, and return the one value of each, as it came.

    After one that failed the others are made nevertheless, and its error is raised.
    """
    connection = session.pgconn
    connection.enter_pipeline_mode()
    new: dict[bytes, bytes] = {}
    for statement, given in calls:
        name = session.prepared.get(statement) or new.get(statement)
        if name is None:
            # A name of its own, also after a failure: the server may have prepared what failed later.
            name = new[statement] = b"fliphat_%d" % next(session.names)
            connection.send_prepare(name, statement)
        connection.send_query_prepared(name, given, (1,) * len(given), 1)
        connection.pipeline_sync()
    answers, failed = _answers(connection, len(calls))
    connection.exit_pipeline_mode()
    if failed is not None:
        error = errors.error_from_result(failed)
        if isinstance(error, errors.InvalidSqlStatementName):
            session.prepared.clear()  # psycopg drops all prepared statements after a rollback of its own
        raise error
    session.prepared |= new
    return answers


def _answers(connection: Any, syncs: int) -> tuple[list[bytes | None], Any]:
    """Read until every transaction is over, and return values and the first error."""
    found: list[bytes | None] = []
    failed, unsent, ready = None, connection.flush(), select.poll()
    ready.register(connection.socket, select.POLLIN | (select.POLLOUT if unsent else 0))
    while syncs:
        # An answer, or nothing for a while: an interrupt is taken between two looks.
        if ready.poll(_LOOK_UP):
            connection.consume_input()
        if unsent:
            unsent = connection.flush()
            if not unsent:
                ready.modify(connection.socket, select.POLLIN)
        ended = False  # of what was asked, before the next answer
        while syncs and not connection.is_busy():
            result = connection.get_result()
            if result is None:
                if ended:
                    break
                ended = True
                continue
            ended = False
            if result.status == pq.ExecStatus.PIPELINE_SYNC:
                syncs -= 1
            elif result.status == pq.ExecStatus.TUPLES_OK:
                found.append(result.get_value(0, 0))
            elif result.status == pq.ExecStatus.FATAL_ERROR:
                if connection.status != pq.ConnStatus.OK:
                    raise psycopg.OperationalError("the connection is lost")
                failed = failed or result
    return found, failed


# Values


def boolean(value: bool | None) -> bytes | None:
    """Return a boolean."""
    return None if value is None else b"\x01" if value else b"\x00"


def integer(value: int | None) -> bytes | None:
    """Return an integer of four bytes."""
    return None if value is None else struct.pack(">i", value)


def bigint(value: int | None) -> bytes | None:
    """Return an integer of eight bytes."""
    return None if value is None else struct.pack(">q", value)


def double(value: float | None) -> bytes | None:
    """Return a number."""
    return None if value is None else struct.pack(">d", value)


def text(value: str | None) -> bytes | None:
    """Return text."""
    return None if value is None else value.encode()


# Arrays


def booleans(values: Sequence[bool]) -> bytes:
    """Return an array of booleans."""
    return _array(_BOOLEAN, [b"\x01" if one else b"\x00" for one in values])


def bytes_array(values: Sequence[bytes | None] | None) -> bytes | None:
    """Return an array of byte strings."""
    return None if values is None else _array(_BYTES, values)


def texts(values: Sequence[str | None]) -> bytes:
    """Return an array of texts."""
    return _array(_TEXT, [text(one) for one in values])


def numbers(values: Sequence[float | None], kind: str) -> bytes:
    """Return an array of "integer", "bigint" or "double" numbers."""
    element, packed = _NUMBERS[kind]
    return _array(element, [None if one is None else packed.pack(one) for one in values])


def _array(kind: int, elements: Sequence[bytes | None]) -> bytes:
    if not elements:
        return struct.pack(">iiI", 0, 0, kind)
    parts = [_HEAD.pack(1, int(None in elements), kind, len(elements), 1)]
    for one in elements:
        parts += (_NULL,) if one is None else (struct.pack(">i", len(one)), one)
    return b"".join(parts)


def read_integers(value: bytes) -> list[int]:
    """Return an array of four-byte integers without NULLs."""
    count = (len(value) - _HEAD.size) // 8 if len(value) > _HEAD.size else 0
    return [pair[1] for pair in struct.iter_unpack(">ii", value[_HEAD.size : _HEAD.size + 8 * count])]
