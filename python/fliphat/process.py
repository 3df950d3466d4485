"""Which process this is: a policy, its store and a ledger belong to the process that made them.

Not told by the process id: a child in another namespace, or one that got the id of a process that is gone,
may have the same one.
"""

from __future__ import annotations

import os

__all__ = ["token"]

#: An object that stays the same in this process, and is another in a forked child.
token = object()


def _begin() -> None:
    global token
    token = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin)
