"""User ids and retry keys, kept as keyed digests: counting and retries need equality, not names."""

from __future__ import annotations

import hashlib
import operator
from typing import Any

__all__ = ["DIGEST_BYTES", "SECRET_BYTES", "digest", "kind_of"]

DIGEST_BYTES = 16
SECRET_BYTES = 32


def kind_of(value: Any) -> str:
    """Return "str", "bytes" or "int": ids of one policy are all of one kind."""
    return "str" if isinstance(value, str) else "bytes" if isinstance(value, bytes) else "int"


def digest(name: str, value: Any, secret: bytes) -> bytes:
    """Return 16 bytes that stand for a str, an int or bytes; the same value of another type is another id.

    Two ids with the same digest would be counted as one user, which learns less and protects more; at 128
    bits it does not happen.
    """
    if isinstance(value, str):
        token = b"s" + value.encode("utf-8", "surrogatepass")
    elif isinstance(value, bytes):
        token = b"b" + value
    elif not isinstance(value, bool) and hasattr(value, "__index__"):
        token = b"i%d" % operator.index(value)
    else:
        raise TypeError(f"{name} must be a str, an int or bytes, got {type(value).__name__}")
    return hashlib.blake2b(token, digest_size=DIGEST_BYTES, key=secret, person=name.encode()).digest()
