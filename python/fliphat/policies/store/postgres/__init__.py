"""A policy in a PostgreSQL database, played by any number of workers.

Importing this package does not import psycopg; `store` and `connections` do.
"""

from __future__ import annotations

__all__ = ["is_url"]


def is_url(store: object) -> bool:
    """Whether a store is the address of a database.

    Examples
    --------
    >>> is_url("postgresql://localhost/shop"), is_url("policies/shop")
    (True, False)
    """
    return isinstance(store, str) and store.startswith(("postgresql://", "postgres://"))
