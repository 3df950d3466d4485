"""What a database says no to, for the engine to tell its caller."""

from __future__ import annotations

__all__ = ["Busy", "OtherKey", "OtherUsers", "UnknownDecision"]


class Busy(Exception):
    """Others hold what was asked for, and it is not worth waiting."""


class OtherKey(Exception):
    """Another worker has played a round with this key."""


class OtherUsers(Exception):
    """Other workers gave user ids of another kind, or none where some are given now."""


class UnknownDecision(Exception):
    """No round has this id."""
