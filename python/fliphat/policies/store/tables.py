"""The tables of a policy, the same in SQLite and in PostgreSQL.

| table | what it holds | private |
|---|---|---|
| ``fliphat_policy`` | one row: format, arguments, options, arms, the secret of digests, late rewards | yes |
| ``fliphat_episodes`` | one row an episode: rounds, phase, claim, what it released, its secret totals | yes |
| ``fliphat_users``, ``fliphat_keys`` | keyed digests: rounds of each user, the decision of each key | yes |
| ``fliphat_rounds``, ``fliphat_rewards`` | rows and rewards of episodes that are not closed, by round | yes |

A round is named by its number, from 1 on for the whole life of the policy; an episode's are those from its
``first_round`` on. A row without contents (not learned from, cancelled, forgotten, expired) has no numbers.
``checksum`` is a CRC-32 of what else is in a row that SQLite or the worker wrote whole; a server has its own.
That of the policy's row covers all but what is counted in the middle of a round, :data:`COUNTED`.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

__all__ = ["COUNTED", "EPISODE", "FORMAT", "POLICY", "checksum", "tables"]

#: What this version writes and reads. Formats below 10 kept rows in files.
FORMAT: Final = 11

_TABLES: Final = """
CREATE TABLE fliphat_policy (
    single integer PRIMARY KEY CHECK (single = 1),
    format integer NOT NULL,
    policy text NOT NULL,
    settings text NOT NULL,
    secret bytea NOT NULL,
    checksum bigint NOT NULL,
    options text NOT NULL,
    openings bigint NOT NULL,
    with_users boolean,
    user_kind text,
    late bigint NOT NULL,
    witnessed boolean NOT NULL,
    arms text,
    arms_version integer NOT NULL,
    arm_ids text,
    column_names text,
    handed_over text,
    handed_over_checksum text,
    switched_off text,
    tried text,
    emptied bigint NOT NULL,
    rewritten bigint NOT NULL
);
CREATE TABLE fliphat_episodes (
    episode integer PRIMARY KEY,
    first_round bigint NOT NULL,
    room bigint NOT NULL,
    filled bigint NOT NULL,
    releases integer NOT NULL,
    arms integer NOT NULL,
    expired bigint NOT NULL,
    phase text NOT NULL,
    owner text NOT NULL,
    fence bigint NOT NULL,
    until double precision NOT NULL,
    next_room bigint,
    mark text,
    facts text,
    indices bytea,
    numbers bytea,
    known text,
    totals bytea,
    checksum bigint,
    closed double precision
);
CREATE TABLE fliphat_users (digest bytea PRIMARY KEY, rounds bigint NOT NULL, checksum bigint){small};
CREATE TABLE fliphat_keys (
    digest bytea PRIMARY KEY,
    id bigint NOT NULL,
    arm integer NOT NULL,
    valid boolean NOT NULL,
    episode integer NOT NULL,
    probability double precision NOT NULL,
    name text,
    checksum bigint
){small};
CREATE TABLE fliphat_rounds (
    round {number} PRIMARY KEY,
    id bigint NOT NULL,
    learned boolean NOT NULL,
    sparse boolean NOT NULL,
    attempt bigint NOT NULL,
    played double precision,
    owner bytea,
    columns bytea,
    numbers bytea,
    checksum bigint
);
CREATE TABLE fliphat_rewards (
    round {number} PRIMARY KEY,
    reward double precision NOT NULL,
    attempt bigint NOT NULL,
    checksum bigint
)
"""

#: Columns of the policy's row and of an episode's that are read together.
POLICY: Final = (
    *("format", "policy", "settings", "secret", "checksum", "options", "openings", "with_users", "user_kind"),
    *("late", "witnessed", "arms", "arms_version", "arm_ids", "column_names", "handed_over"),
    *("handed_over_checksum", "switched_off"),
)
COUNTED: Final = ("checksum", "with_users", "user_kind", "late")
EPISODE: Final = (
    *("episode", "first_round", "room", "filled", "releases", "arms", "expired", "phase", "owner", "fence"),
    "until",
)


def tables(number: str, small: str = "") -> list[str]:
    """Return the statements that make the tables.

    `number` is the type of a round's number, `small` what is said of tables whose rows are small.
    """
    return _TABLES.replace("{number}", number).replace("{small}", small).split(";\n")


def checksum(*values: Any) -> int:
    """Return the CRC-32 of a row's values.

    Examples
    --------
    >>> checksum(1, "a", b"b", None, 0.5) == checksum(1, "a", b"b", None, 0.5) != checksum(1, "a", b"b", 0.5)
    True
    """
    crc = 0
    for one in values:
        data = bytes(one) if isinstance(one, (bytes, memoryview)) else repr(one).encode()
        crc = zlib.crc32(data, zlib.crc32(b"%d:" % len(data), crc))
    return crc
