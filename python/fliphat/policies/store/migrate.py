"""Bring a store of an earlier version up to date: what opening it does, without its arguments."""

from __future__ import annotations

import os
from typing import Any

from fliphat.policies.fliphat import FLIPHAT
from fliphat.policies.store.inspect import inspect_path, verify_path
from fliphat.policies.store.postgres import is_url
from fliphat.policies.types import StoreError

__all__ = ["migrate_path"]


def migrate_path(path: str | os.PathLike[str], *, dry_run: bool = False) -> dict[str, Any]:
    """Check a store or a saved file, and write a store in today's format; nothing is lost on the way.

    Opening a store is what migrates it: the old events are replaced in one step by new ones, and the ledger
    changes in one transaction, so that a crash leaves the one or the other.

    Parameters
    ----------
    path : path or URL
        The directory of a store, a database, or a file that `save` wrote. Files are loaded as they are by
        every version, and left alone. Databases have had one format so far.
    dry_run : bool
        Whether only to say what would be done.

    Returns
    -------
    dict
        The formats before and after, and a sentence.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     FLIPHAT(dim=20, sparsity=2, epsilon=1.0, delta=1e-2, store=directory).close()
    ...     print(migrate_path(directory)["told"])
    nothing to do: the format is today's
    """
    verdict = verify_path(path)
    if not verdict.ok:
        raise StoreError(f"nothing was changed: {'; '.join(verdict.damage)}")
    facts = inspect_path(path)
    before = facts["format"]
    if before["current"]:
        return {"before": before, "after": before, "told": "nothing to do: the format is today's"}
    if is_url(path):
        raise StoreError(f"there is no way from format {before['database']} of a database to today's")
    if dry_run:
        return {"before": before, "after": None, "told": "the store would be written in today's format"}
    FLIPHAT.open(path).close()
    after = inspect_path(path)["format"]
    return {"before": before, "after": after, "told": "the store is in today's format"}
