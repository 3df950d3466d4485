"""Receipts of decisions: ids count upwards, and only who was shown an arm may say what it earned.

An id is given out as ``17.9f86d081884c7d65``: its number, and a keyed digest of it. Nothing is stored: the
key follows from the store's secret, which all workers have.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from fliphat.serve.refusal import Refusal, unprocessable

__all__ = ["Receipts", "read_id"]

_BYTES: Final = 8
_DIGITS: Final = frozenset("0123456789abcdef")
_LONGEST: Final = 19


class Receipts:
    """Makes and checks receipts, of 64 bits.

    Examples
    --------
    >>> receipts = Receipts(bytes(32))
    >>> identity, receipt = read_id(receipts.id(17))
    >>> identity, receipts.all_right([17], [receipt]), receipts.all_right([18], [receipt])
    (17, True, False)
    """

    def __init__(self, secret: bytes) -> None:
        self._key = hashlib.blake2b(b"receipts of decisions", key=secret, digest_size=32).digest()

    def of(self, identity: int) -> int:
        """Return the receipt of a decision."""
        digest = hashlib.blake2b(identity.to_bytes(8, "little"), key=self._key, digest_size=_BYTES).digest()
        return int.from_bytes(digest, "little")

    def id(self, identity: int) -> str:
        """Return a decision's id as clients get it."""
        return f"{identity}.{self.of(identity):016x}"

    def all_right(self, ids: list[int], receipts: list[int]) -> bool:
        """Whether every one of them belongs to its id."""
        wrong = 0
        for identity, receipt in zip(ids, receipts, strict=True):
            wrong |= self.of(identity) ^ receipt  # all are looked at: how long it takes tells nothing
        return wrong == 0

    def require(self, ids: list[int], receipts: list[int]) -> None:
        """Refuse ids that were made up, in the words for ids that never were."""
        if not self.all_right(ids, receipts):
            raise _unknown()


def read_id(value: Any) -> tuple[int, int]:
    """Return number and receipt of an id as clients have it."""
    if isinstance(value, str):
        number, point, receipt = value.partition(".")
        if (
            point
            and len(receipt) == 2 * _BYTES
            and set(receipt) <= _DIGITS
            and number.isascii()
            and number.isdigit()
            and len(number) <= _LONGEST
        ):
            return int(number), int(receipt, 16)
    raise _unknown()


def _unknown() -> Refusal:
    return unprocessable("id must be one that /select answered with, as it was")
