"""A witness in a database: one row a policy, moved by a statement that names the row it replaces."""

from __future__ import annotations

from fliphat.policies.store.postgres.connections import Connection, Connections
from fliphat.policies.store.witness import Record

__all__ = ["PostgresWitness"]

_TABLE = (
    b"CREATE TABLE IF NOT EXISTS fliphat_witness"
    b" (policy text PRIMARY KEY, releases bigint NOT NULL, fence text NOT NULL)"
)


class PostgresWitness:
    """The table ``fliphat_witness`` of a database that no backup of the store restores."""

    def __init__(self, url: str) -> None:
        self._connections = Connections(url)

        def create(connection: Connection, again: bool) -> None:
            with connection.transaction():
                connection.execute(b"SELECT pg_advisory_xact_lock(hashtext('fliphat_witness'))")
                connection.execute(_TABLE)

        self._connections.run(create)

    def read(self, policy: str) -> Record | None:
        """See :class:`fliphat.policies.store.witness.Witness`."""
        row = self._connections.run(
            lambda connection, again: connection.execute(
                b"SELECT releases, fence FROM fliphat_witness WHERE policy = %s", (policy,)
            ).fetchone()
        )
        return None if row is None else Record(*row)

    def move(self, policy: str, before: Record | None, after: Record) -> bool:
        """See :class:`fliphat.policies.store.witness.Witness`."""

        def change(connection: Connection, again: bool) -> int:
            if before is None:
                done = connection.execute(
                    b"INSERT INTO fliphat_witness VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                    (policy, after.releases, after.fence),
                )
            else:
                done = connection.execute(
                    b"UPDATE fliphat_witness SET releases = %s, fence = %s"
                    b" WHERE policy = %s AND releases = %s AND fence = %s",
                    (after.releases, after.fence, policy, before.releases, before.fence),
                )
            return done.rowcount

        return self._connections.run(change) == 1

    def close(self) -> None:
        """See :class:`fliphat.policies.store.witness.Witness`."""
        self._connections.close()
