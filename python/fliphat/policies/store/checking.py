"""Whether a store's tables add up, and what it would cost if they do not. Reads all, changes nothing."""

from __future__ import annotations

import json
import math
from typing import Any, Final

import numpy as np

from fliphat.policies.engine.keeping import EpisodeRow
from fliphat.policies.engine.lifecycle import MAY, Phase
from fliphat.policies.store.rounds import ROUND, contents_checksum, row_checksum
from fliphat.policies.store.sql import (
    Transaction,
    episodes_in,
    policy_in,
    refuse_odd_users,
    release_in,
    releases_in,
)
from fliphat.policies.store.tables import FORMAT, checksum
from fliphat.policies.types import StoreError

__all__ = ["check"]

_IDS: Final = 2**40  # numbers of rounds are what is left of an id after this
_ORDER: Final = (Phase.CLOSED, Phase.SHOWN, Phase.WITNESSED, Phase.COMMITTED, Phase.CLAIMED)


def check(tx: Transaction, *, embedded: bool) -> tuple[list[str], list[str]]:
    """Return what was checked, and what is wrong; `embedded` is whether it is SQLite's."""
    if embedded and tx.all("PRAGMA integrity_check(1)") != [("ok",)]:
        return [], ["the store's file is damaged: put it back as it was when the store was last used"]
    policy, episodes = policy_in(tx), episodes_in(tx)
    if not episodes:
        return [], ["the store has lost the policy's episodes: restore what was removed"]
    refuse_odd_users(tx)
    damage = [*_wrong_episodes(tx, episodes), *_wrong_tallies(tx, policy, episodes, embedded)]
    rows = 0
    if not damage and policy["handed_over"] is None:
        damage, rows = _wrong_rows(tx, policy, episodes, embedded)
    checked = [
        f"format {FORMAT}: the policy's row, {len(episodes)} episodes, releases and their marks, rounds of "
        f"users, keys",
        f"open episodes: {rows} rows, each with its number, its checksum and its reward",
    ]
    if not embedded:
        ((sums, _),) = tx.all("SELECT current_setting('data_checksums'), 0")
        told = "on" if sums == "on" else "off: a changed bit outside of rows and releases is not noticed"
        checked.append(f"the server's own checksums of pages are {told}")
        damage += _missing_functions(tx)
    return checked, damage


def _missing_functions(tx: Transaction) -> list[str]:
    from fliphat.policies.store.postgres.schema import FUNCTIONS

    found = {
        name
        for (name,) in tx.all(
            "SELECT proname::text FROM pg_proc WHERE pronamespace = current_schema()::regnamespace"
        )
    }
    missing = [name for name in FUNCTIONS if name not in found]
    told = f"functions are missing ({', '.join(missing)}): no round can be played. Restore them"
    return [told] if missing else []


def _wrong_tallies(
    tx: Transaction, policy: dict[str, Any], episodes: list[EpisodeRow], embedded: bool
) -> list[str]:
    told = []
    ((counted, _),) = tx.all("SELECT coalesce(sum(rounds), 0), 0 FROM fliphat_users")
    last = episodes[-1] if episodes[-1].filled or len(episodes) == 1 else episodes[-2]
    played = last.first_round - 1 + last.filled
    expected = played if policy["with_users"] else 0
    if int(counted) != expected:
        told.append(
            f"users have {counted} rounds in all instead of {expected}: somebody could be learned from "
            f"beyond rounds_per_user, and the guarantee would be false. Restore them, or play no more"
        )
    keys = tx.all("SELECT id FROM fliphat_keys")
    wrong = sum(not 1 <= identity % _IDS <= played for (identity,) in keys)
    if wrong:
        told.append(
            f"{wrong} keys have decisions of rounds that were not played: their retries get a wrong answer"
        )
    if embedded:
        for table, columns in (
            ("users", "digest, rounds"),
            ("keys", "digest, id, arm, valid, episode, probability"),
        ):
            bad = sum(
                row[-1] != checksum(*row[:-1])
                for row in tx.all(f"SELECT {columns}, checksum FROM fliphat_{table}")
            )
            if bad:
                told.append(f"{bad} rows of {table} are damaged, their checksums do not match: restore them")
    return told


def _wrong_episodes(tx: Transaction, episodes: list[EpisodeRow]) -> list[str]:
    told: list[str] = []
    first, marks = 1, set[str]()
    releases = releases_in(tx)
    for number, one in enumerate(episodes):
        name = f"episode {one.episode}"
        if one.episode != number:
            lost = f"episode {number} is missing: what was released in it, and what it cost, is not known"
            return [*told, lost]
        if one.first_round != first:
            told.append(f"{name} begins at round {one.first_round} instead of {first}")
        last, left = number == len(episodes) - 1, len(episodes) - 1 - number
        # An episode that was not passed by is followed by one whose first rounds are played ahead of it.
        first = one.first_round + (one.filled if last or left > 1 else one.room)
        if one.phase is not Phase.REFUSED and (one.phase in _ORDER) == last:
            told.append(f"{name} is {one.phase}, and {'the last' if last else 'another follows'}")
        if one.phase not in MAY["see"] and left > 1:
            told.append(f"{name} was never shown, and later ones were")
        if not 0 <= one.filled <= one.room or (one.phase in _ORDER and one.filled != one.room):
            told.append(f"{name} has {one.filled} rounds in a room of {one.room}")
        if one.phase in _ORDER[:-1]:
            told += _wrong_release(one, releases.get(one.episode), name, marks)
    return told


def _wrong_release(one: EpisodeRow, row: Any, name: str, marks: set[str]) -> list[str]:
    try:
        release = release_in(row)
    except (StoreError, TypeError, ValueError, json.JSONDecodeError) as error:
        lost = "it was released, and its estimate is not there: it can't be computed again. Restore it"
        return [f"{name}: {error if isinstance(error, StoreError) else lost}"]
    told = []
    if (release.facts.get("first_round"), release.facts.get("rounds")) != (one.first_round, one.room):
        told.append(f"{name} has the facts of another")
    if release.known.get("episodes") != one.episode + 1 or len(release.indices) != len(release.numbers):
        told.append(f"{name} has an estimate that is not whole. Restore it")
    if release.mark in marks:
        told.append(f"{name} has the mark of another: a witness can't tell copies apart")
    marks.add(release.mark)
    return told


def _wrong_rows(
    tx: Transaction, policy: dict[str, Any], episodes: list[EpisodeRow], embedded: bool
) -> tuple[list[str], int]:
    """Return what is wrong with rows of episodes that are not closed, and how many rows there are."""
    told, total = [], 0
    settings = json.loads(policy["settings"])
    item = np.dtype(settings["dtype"]).itemsize
    width = item * (int(settings["dim"]) + (1 if settings["fit"] == "dense" else 0))
    for one in episodes:
        if one.phase in (*_ORDER[:4], Phase.REFUSED, Phase.HANDED_OVER):
            continue
        name, end = f"episode {one.episode}", one.first_round + one.room
        rows = tx.all(
            f"SELECT {ROUND}, checksum FROM fliphat_rounds WHERE round >= ? AND round < ? ORDER BY round",
            *(one.first_round, end),
        )
        total += len(rows)
        if [row[0] for row in rows] != list(range(one.first_round, one.first_round + one.filled)):
            told.append(
                f"{name} has {len(rows)} rows of {one.filled} rounds: restore what was removed, or its "
                f"{one.filled} rounds are lost to learning (never used twice)"
            )
        if any(row[1] % _IDS != row[0] for row in rows):
            told.append(f"rows of {name} have ids of other rounds: their rewards would be lost")
        cut = sum(_is_cut(row, width, item, embedded) for row in rows)
        if cut:
            told.append(
                f"{cut} rows of {name} are damaged or not whole: it can't be fitted. Restore them, or "
                f"forget() to go on without its rounds"
            )
        if any((row[6] is not None) != bool(policy["with_users"]) for row in rows):
            told.append(f"rows of {name} do not say whose they are, or should not")
        told += _wrong_rewards(tx, one, {row[0]: bool(row[2]) for row in rows}, name, embedded)
    return told, total


def _is_cut(row: Any, width: int, item: int, embedded: bool) -> bool:
    columns, numbers, kept = row[7:]
    if embedded and kept != row_checksum(*row[:9]):
        return True
    if not row[2]:
        return numbers is not None or columns is not None  # forgotten, and still there
    if numbers is None or (not embedded and kept != contents_checksum(columns, numbers)):
        return True
    return len(columns) // 4 * item != len(numbers) if row[3] else len(numbers) != width


def _wrong_rewards(
    tx: Transaction, one: EpisodeRow, learned: dict[int, bool], name: str, embedded: bool
) -> list[str]:
    rewards = tx.all(
        "SELECT round, reward, checksum FROM fliphat_rewards WHERE round >= ? AND round < ?",
        *(one.first_round, one.first_round + one.room),
    )
    told = []
    if any(number not in learned for number, _, _ in rewards):
        told.append(f"{name} has rewards of rounds that were not played: they are not used")
    if any(math.isnan(reward) or reward == -math.inf for _, reward, _ in rewards):
        told.append(f"{name} has rewards that are no numbers: its fit would go wrong")
    if any(reward != math.inf and not learned.get(number, True) for number, reward, _ in rewards):
        told.append(f"rows of {name} that are not to be learned from have rewards: forget() empties them")
    if embedded and any(kept != checksum(number, reward) for number, reward, kept in rewards):
        told.append(f"rewards of {name} are damaged, their checksums do not match: restore them")
    return told
