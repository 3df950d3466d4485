"""Why a policy refuses to go on. Messages hold no value of a context, a reward or a user id."""

from __future__ import annotations

__all__ = ["CopyError", "SnapshotError", "SpillError", "StoreError"]


class CopyError(RuntimeError):
    """Not the one live policy: a copy, a forked child's, or one that was handed over or closed."""


class StoreError(RuntimeError):
    """A store can't be opened, or failed and must be opened again."""


class SnapshotError(ValueError):
    """A saved file can't be loaded; nothing was consumed."""


class SpillError(OSError):
    """Rows beyond `memory_limit` could not be written to their temporary file, or read from it."""
