"""Look at a policy in a database without playing it: one moment, in a transaction that can't write. Private.

Every number comes from one snapshot. The tables of rows are locked against being emptied, and against nothing
else, while it lasts: a release that is committed meanwhile waits for the look to end, and rounds and rewards
do not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fliphat.policies.store.postgres import schema
from fliphat.policies.store.postgres.connections import Connection, Connections
from fliphat.policies.types import StoreError

__all__ = ["Found", "look", "wrong"]

_POLICY: Final = (
    *("format", "policy", "settings", "with_users", "late", "witnessed", "arms", "arms_version", "openings"),
)
_EPISODE: Final = (
    *(
        "episode",
        "first_round",
        "room",
        "filled",
        "releases",
        "arms",
        "opened",
        "claimed",
        "released",
        "seen",
    ),
    *("next_room", "fence", "facts", "indices", "numbers", "known", "fitting_since IS NOT NULL AS fitted"),
)
#: What must hold of the rows of one table; each is a count of rows of which it does not.
_ROWS: Final = """
SELECT count(*) AS rounds, coalesce(max(slot), -1) AS last,
    count(*) FILTER (WHERE id %% 1099511627776 <> %(first)s + slot) AS other_ids,
    count(*) FILTER (WHERE NOT learned) AS not_learned,
    count(*) FILTER (WHERE NOT learned AND (numbers IS NOT NULL OR columns IS NOT NULL)) AS not_emptied,
    count(*) FILTER (WHERE learned AND NOT sparse
        AND octet_length(numbers) IS DISTINCT FROM %(width)s) AS cut,
    count(*) FILTER (WHERE learned AND sparse AND octet_length(columns) / 4 * %(item)s
        IS DISTINCT FROM octet_length(numbers)) AS cut_sparse,
    count(*) FILTER (WHERE (owner IS NOT NULL) IS DISTINCT FROM %(owned)s) AS other_owners
FROM fliphat_rounds_{half}
"""
_REWARDS: Final = """
SELECT count(*) AS rewards, count(*) FILTER (WHERE rounds.slot IS NULL) AS of_nothing,
    count(*) FILTER (WHERE reward = 'NaN' OR reward = '-Infinity') AS no_number,
    count(*) FILTER (WHERE rounds.slot IS NOT NULL AND NOT learned AND reward <> 'Infinity') AS not_emptied
FROM fliphat_rewards_{half} LEFT JOIN fliphat_rounds_{half} AS rounds USING (slot)
"""


@dataclass(frozen=True)
class Found:
    """A database's policy at one moment.

    Attributes
    ----------
    policy : dict
        The policy's row, without its secret.
    episodes : list of dict
    counts : dict
        Of users, of their rounds, of keys, of sessions that play.
    halves : list of dict
        What the two tables of rows hold, if that was asked for.
    checksums : bool
        Whether the server has checksums of its pages.
    missing : list of str
        Functions that are not there.
    """

    policy: dict[str, Any]
    episodes: list[dict[str, Any]]
    counts: dict[str, int]
    halves: list[dict[str, Any]]
    checksums: bool
    missing: list[str]

    @property
    def open(self) -> dict[str, Any]:
        """The episode that rounds are counted in."""
        return self.episodes[-1]

    @property
    def releases(self) -> list[tuple[dict[str, Any], Any, Any]]:
        """What was released and may be seen."""
        return [
            (
                json.loads(one["facts"]),
                np.frombuffer(one["indices"], "<i8"),
                np.frombuffer(one["numbers"], "<f8"),
            )
            for one in self.episodes
            if one["seen"]
        ]

    @property
    def known(self) -> dict[str, Any] | None:
        """What is known after the last of them."""
        seen = [one for one in self.episodes if one["seen"]]
        return json.loads(seen[-1]["known"]) if seen else None


def look(url: str, *, row_bytes: tuple[int, int] | None = None) -> Found:
    """Return what a database holds.

    Parameters
    ----------
    url : str
    row_bytes : (int, int), optional
        Bytes of a dense row and of one number: whether to look at rows and rewards, too.
    """
    connections = Connections(url)

    def read(connection: Connection, again: bool) -> Found:
        with connection.transaction():
            connection.execute(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            if not connection.execute(b"SELECT to_regclass('fliphat_policy')").fetchone()[0]:  # type: ignore[index]
                raise StoreError("there is no policy in this database")
        with connection.transaction():
            connection.execute(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute(
                b"LOCK TABLE fliphat_rounds_0, fliphat_rounds_1, fliphat_rewards_0, fliphat_rewards_1"
                b" IN ACCESS SHARE MODE"
            )
            return _read(connection, row_bytes)

    try:
        return connections.run(read)
    finally:
        connections.close()


def _read(connection: Connection, row_bytes: tuple[int, int] | None) -> Found:
    policies = _records(connection, f"SELECT {', '.join(_POLICY)} FROM fliphat_policy")
    if len(policies) != 1:
        raise StoreError(
            "the database has lost the policy's row: without it nobody knows which budget was promised. "
            "Restore what was removed"
        )
    (policy,) = policies
    if policy["format"] > schema.FORMAT:
        raise StoreError(
            f"the store was written by a newer version (format {policy['format']}, this one reads "
            f"{schema.FORMAT})"
        )
    episodes = _records(connection, f"SELECT {', '.join(_EPISODE)} FROM fliphat_episodes ORDER BY episode")
    if not episodes:
        raise StoreError("the database has lost the policy's episodes: restore what was removed")
    (counts,) = _records(
        connection,
        "SELECT (SELECT count(*) FROM fliphat_users) AS users,"
        " (SELECT coalesce(sum(rounds), 0)::bigint FROM fliphat_users) AS users_rounds,"
        " (SELECT count(*) FROM fliphat_keys) AS keys,"
        " (SELECT count(*) FROM fliphat_keys WHERE id % 1099511627776 NOT BETWEEN 1 AND"
        "   (SELECT max(first_round + filled) - 1 FROM fliphat_episodes)) AS keys_of_nothing,"
        f" (SELECT count(*) FROM pg_stat_activity WHERE application_name = '{schema.APPLICATION}'"
        "   AND datname = current_database() AND pid <> pg_backend_pid()) AS sessions",
    )
    (server,) = _records(
        connection,
        "SELECT current_setting('data_checksums') = 'on' AS checksums, coalesce(("
        " SELECT array_agg(name) FROM unnest(%(names)s::text[]) AS name WHERE NOT EXISTS"
        " (SELECT FROM pg_proc WHERE proname = name AND pronamespace = current_schema()::regnamespace)"
        "), '{}') AS missing",
        {"names": list(schema.FUNCTIONS)},
    )
    halves = []
    if row_bytes is not None:
        for half in (0, 1):
            # The unreleased episode of this table, if there is one.
            mine = next((one for one in episodes if not one["released"] and one["episode"] % 2 == half), None)
            given = {
                "first": mine["first_round"] if mine else 0,
                "width": row_bytes[0],
                "item": row_bytes[1],
                "owned": bool(policy["with_users"]),
            }
            (rows,) = _records(connection, _ROWS.format(half=half), given)
            (rewards,) = _records(connection, _REWARDS.format(half=half))
            halves.append({"episode": mine, "rows": rows, "rewards": rewards})
    return Found(policy, episodes, counts, halves, server["checksums"], server["missing"])


def _records(connection: Connection, query: str, given: Any = None) -> list[dict[str, Any]]:
    cursor = connection.execute(query.encode(), given)
    names = [column.name for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


# What does not add up


def wrong(found: Found) -> list[str]:
    """Return what does not add up, and what it would cost."""
    told = [*_wrong_policy(found), *_wrong_episodes(found)]
    if not told:  # rows are counted against episodes
        for half in found.halves:
            told += _wrong_rows(half)
    return told


def _wrong_policy(found: Found) -> list[str]:
    told = []
    if found.missing:
        told.append(
            f"functions are missing ({', '.join(found.missing)}): no round can be played. Restore them"
        )
    played = found.open["first_round"] - 1 + found.open["filled"]
    expected = played if found.policy["with_users"] else 0
    if found.counts["users_rounds"] != expected:
        told.append(
            f"users have {found.counts['users_rounds']} rounds in all instead of {expected}: somebody could "
            f"be learned from beyond rounds_per_user, and the guarantee would be false. Restore "
            f"fliphat_users, or play no more"
        )
    if found.counts["keys_of_nothing"]:
        told.append(
            f"{found.counts['keys_of_nothing']} keys have decisions of rounds that were not played: their "
            f"retries get a wrong answer"
        )
    return told


def _wrong_episodes(found: Found) -> list[str]:
    told: list[str] = []
    first, fences = 1, set[str]()
    version = found.policy["arms_version"]
    for number, one in enumerate(found.episodes):
        name = f"episode {one['episode']}"
        if one["episode"] != number:
            return [
                *told,
                f"episode {number} is missing: what was released in it, and what it cost, is not known",
            ]
        if one["first_round"] != first:
            told.append(f"{name} begins at round {one['first_round']} instead of {first}")
        first = one["first_round"] + one["filled"]
        last, ahead = number == len(found.episodes) - 1, number == len(found.episodes) - 2
        steps = [one["claimed"], one["released"], one["seen"]]
        if (
            sorted(steps, reverse=True) != steps
            or (not last and not one["claimed"])
            or (last and one["claimed"])
        ):
            told.append(f"{name} is in a state that no episode passes through")
        if not one["seen"] and not last and not ahead:
            told.append(f"{name} was never shown, and later ones were")
        if not 0 <= one["filled"] <= one["room"] or (one["claimed"] and one["filled"] != one["room"]):
            told.append(f"{name} has {one['filled']} rounds in a room of {one['room']}")
        if not one["seen"] and one["arms"] != version:
            told.append(f"{name} is played by version {one['arms']} of the arms instead of {version}")
        if one["released"]:
            told += _wrong_release(one, name)
            if one["fence"] in fences:
                told.append(f"{name} has the fence of another: a witness can't tell copies apart")
            fences.add(one["fence"])
    return told


def _wrong_release(one: dict[str, Any], name: str) -> list[str]:
    if any(one[column] is None for column in ("facts", "indices", "numbers", "known", "fence", "next_room")):
        return [f"{name} was released, and its estimate is not there: it can't be computed again. Restore it"]
    try:
        facts, known = json.loads(one["facts"]), json.loads(one["known"])
    except ValueError:
        return [f"{name} has an estimate that can't be read. Restore it"]
    told = []
    if (facts.get("first_round"), facts.get("rounds")) != (one["first_round"], one["room"]):
        told.append(f"{name} has the facts of another")
    if known.get("episodes") != one["episode"] + 1 or len(one["indices"]) != len(one["numbers"]):
        told.append(f"{name} has an estimate that is not whole. Restore it")
    return told


def _wrong_rows(half: dict[str, Any]) -> list[str]:
    one, rows, rewards = half["episode"], half["rows"], half["rewards"]
    if one is None:
        left = rows["rounds"] or rewards["rewards"]
        return (
            ["there are rows of an episode that was released: they are never used, empty their table"]
            if left
            else []
        )
    told, name = [], f"episode {one['episode']}"
    if rows["rounds"] != one["filled"] or rows["last"] != one["filled"] - 1:
        told.append(
            f"{name} has {rows['rounds']} rows of {one['filled']} rounds: restore what was removed, or its "
            f"{one['filled']} rounds are lost to learning (never used twice)"
        )
    if rows["other_ids"]:
        told.append(
            f"{rows['other_ids']} rows of {name} have ids of other rounds: their rewards would be lost"
        )
    if rows["cut"] or rows["cut_sparse"]:
        told.append(
            f"{rows['cut'] + rows['cut_sparse']} rows of {name} are not whole: it can't be fitted. Restore "
            f"them, or forget() to go on without its rounds"
        )
    if rows["not_emptied"] or rewards["not_emptied"]:
        told.append(f"rows of {name} that are not to be learned from have contents: forget() empties them")
    if rows["other_owners"]:
        told.append(f"{rows['other_owners']} rows of {name} do not say whose they are, or should not")
    if rewards["of_nothing"]:
        told.append(
            f"{name} has {rewards['of_nothing']} rewards of rounds that were not played: they are not used"
        )
    if rewards["no_number"]:
        told.append(f"{name} has {rewards['no_number']} rewards that are no numbers: its fit would go wrong")
    return told
