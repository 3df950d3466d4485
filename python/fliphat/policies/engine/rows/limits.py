"""How much memory an episode's rows may take before they move to a file."""

from __future__ import annotations

import re
from typing import Final

from fliphat import arguments

__all__ = ["DEFAULT_MEMORY_LIMIT", "MemoryLimit", "checked_memory_limit"]

#: Bytes, a number with a unit, or None for no limit.
MemoryLimit = int | str | None

DEFAULT_MEMORY_LIMIT: Final = "4GB"

_MOST: Final = 2**63 - 1
_TEXT: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*((?:[kmgt]i?)?b)\s*", re.IGNORECASE)
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def checked_memory_limit(value: object) -> int | None:
    """Return a limit in bytes.

    Examples
    --------
    >>> checked_memory_limit("3GB"), checked_memory_limit("1.5 KiB"), checked_memory_limit(10)
    (3000000000, 1536, 10)
    """
    if value is None:
        return None
    if not isinstance(value, str):
        return arguments.integer("memory_limit", value, 0, _MOST)
    found = _TEXT.fullmatch(value)
    if found is None:
        raise ValueError(
            f"memory_limit must be bytes, None, or a number with one of the units B, KB, MB, GB, TB, KiB, "
            f"MiB, GiB, TiB, got {value!r}"
        )
    number, unit = found.groups()
    prefix = unit[:-1].lower()
    base = 1024 if prefix.endswith("i") else 1000
    size = round(float(number) * base ** _POWERS[prefix.rstrip("i")])
    return arguments.integer("memory_limit", size, 0, _MOST)
