"""How many connections workers need of their database, and whether it has them."""

from __future__ import annotations

from typing import Final

from fliphat.policies.types import StoreError

__all__ = ["BESIDE_THREADS", "refuse_too_few"]

#: Connections of a worker beside those of its threads: one renews a lease, one is made while another ends.
BESIDE_THREADS: Final = 2

_ASK: Final = """
SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
    (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user),
    (SELECT datconnlimit FROM pg_database WHERE datname = current_database())
"""


def refuse_too_few(url: str, workers: int, threads: int) -> None:
    """Raise if a server has fewer connections than workers with so many threads need."""
    import psycopg

    try:
        with psycopg.connect(url, connect_timeout=10) as connection:
            limits = connection.execute(_ASK).fetchone()
    except psycopg.Error as error:
        raise StoreError(
            f"the database can't be reached ({type(error).__name__}): check address, account and password"
        ) from None
    assert limits is not None
    allowed = min(limit for limit in limits if limit is not None and limit >= 0)
    need = workers * (threads + BESIDE_THREADS)
    if need > allowed:
        raise ValueError(
            f"{workers} workers of {threads} threads need up to {need} connections, and the database allows "
            f"{allowed}: fewer workers, fewer threads (limits), or max_connections"
        )
