"""Which process this is: a policy and its store belong to the process that made them.

Not told by the process id: a child in another namespace, or one that got the id of a process that is gone,
may have the same one.
"""

from __future__ import annotations

import os

__all__ = ["current"]


def current() -> object:
    """Return an object that stays the same in this process, and is another in a forked child."""
    return _current


def _begin() -> None:
    global _current
    _current = object()


_current = object()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin)
