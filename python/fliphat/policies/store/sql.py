"""What both dialects do with the same statements: everything but rounds and rewards, whose paths differ.

Each method is one transaction. Where an episode is, and whether it can take a step, is asked of
:mod:`fliphat.policies.engine.lifecycle` inside the transaction that writes the answer down.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, TypeVar

import numpy as np

from fliphat.fit.settings import EngineSettings
from fliphat.policies.engine import faults, lifecycle
from fliphat.policies.engine.age import Ages
from fliphat.policies.engine.episode import Episode
from fliphat.policies.engine.keeping import EpisodeRow, Release, Seen
from fliphat.policies.engine.lifecycle import MAY, Asked, Life, Phase
from fliphat.policies.engine.rows import RowStore
from fliphat.policies.store import rounds, tables
from fliphat.policies.types import StoreError

__all__ = [
    "KEYS_LAST",
    "SqlStore",
    "Transaction",
    "episodes_in",
    "policy_in",
    "refuse_other_settings",
    "release_in",
    "releases_in",
    "seen_in",
    "write_life",
]

#: Seconds that a retry's key is good for after its episode was closed. Until then it is good in any case.
KEYS_LAST: float = 3600.0

_Result = TypeVar("_Result")
#: Bytes of rows that are read at once, and rows at least: sparse ones are shorter than they are wide.
_CHUNK: Final = 1 << 22
_FEWEST: Final = 16
_ROUNDS: Final = (
    f"SELECT {', '.join('a.' + name for name in rounds.ROUND.split(', '))}, b.reward, a.checksum, b.checksum"
    " FROM fliphat_rounds AS a LEFT JOIN fliphat_rewards AS b ON b.round = a.round"
    " WHERE a.round >= ? AND a.round < ? ORDER BY a.round"
)
_RELEASE: Final = ("facts", "indices", "numbers", "known", "mark", "next_room", "checksum")
_COMMIT: Final = (
    f"UPDATE fliphat_episodes SET {', '.join(f'{name} = ?' for name in (*_RELEASE, 'totals'))}"
    " WHERE episode = ?"
)
_EPISODE: Final = ", ".join(tables.EPISODE)
_NEW_EPISODE: Final = (
    f"INSERT INTO fliphat_episodes ({_EPISODE}) VALUES ({', '.join('?' for _ in tables.EPISODE)})"
)
_WHOLE_POLICY: Final = f"SELECT {', '.join(tables.POLICY)} FROM fliphat_policy"


class Transaction(Protocol):
    """Statements with ``?`` for values, in one transaction."""

    def do(self, sql: str, *given: Any) -> int:
        """Run a statement, and return how many rows it changed."""

    def all(self, sql: str, *given: Any) -> list[Any]:
        """Return all rows."""


Work = Callable[[Transaction, bool], _Result]


class SqlStore(ABC):
    """A policy in the tables of :mod:`fliphat.policies.store.tables`."""

    #: Behind a query, keeps what it read as it is until the transaction ends.
    locking: ClassVar[str] = ""
    #: Seconds since 1970, by the clock that leases and ages are measured with.
    clock: ClassVar[str]
    settings: EngineSettings
    #: The key of digests, and how often the store was opened before.
    secret: bytes
    opening: int

    #: What can be done about a damaged row, besides restoring it.
    or_forget: ClassVar[str] = ""

    @staticmethod
    @abstractmethod
    def is_whole(one: Any) -> bool:
        """Whether the checksums of a round, its columns, its reward and both checksums, are right."""

    @abstractmethod
    def run(self, name: str, work: Work[_Result]) -> _Result:
        """Run work as one transaction, durable when this returns.

        It is told whether an earlier run, whose answer was lost, may have come through.
        """

    def wait_for_rewards(self, tx: Transaction) -> None:  # noqa: B027 - one owner waits for nobody
        """Let rewards that are under way end, and no other begin, before the transaction ends."""

    # Making and opening

    def make(
        self, tx: Transaction, policy: str, options: dict[str, Any], secret: bytes, room: int, arms: Any
    ) -> None:
        """Fill new tables."""
        tx.do(
            "INSERT INTO fliphat_policy (single, format, policy, settings, secret, checksum, options,"
            " openings, with_users, late, witnessed, arms, arms_version, emptied, rewritten)"
            " VALUES (1, ?, ?, ?, ?, 0, ?, -1, ?, 0, ?, ?, 0, 0, 0)",
            *(tables.FORMAT, policy, json.dumps(self.settings.to_dict()), secret, json.dumps(options)),
            *(True if options.get("users") == "required" else None, False, json.dumps(arms)),
        )
        _seal(tx)
        _insert_episode(tx, 0, 1, room, 0, 0, 0, Phase.OPEN)

    def join(self, tx: Transaction, policy: str, options: dict[str, Any]) -> dict[str, Any]:
        """Check what there is, count this opening, and return the policy's row."""
        self._lock_policy(tx)
        kept = policy_in(tx)
        if kept["policy"] != policy:
            raise StoreError(
                f"the store holds a {kept['policy']}, not a {policy}: each has a store of its own"
            )
        refuse_other_settings(json.loads(kept["settings"]), self.settings)
        together = _joined_options(json.loads(kept["options"]), options)
        refuse_odd_users(tx)
        tx.do("UPDATE fliphat_policy SET openings = openings + 1, options = ?", json.dumps(together))
        _seal(tx)
        self.opening, self.secret = kept["openings"] + 1, kept["secret"]
        return kept | {"options": together}

    # Looking

    def look(self, known: int = 0) -> Seen:
        """Return what nobody may see yet, and what became visible after the first `known` releases."""
        return self.run("look", lambda tx, again: seen_in(tx, known))

    def release_of(self, episode: int) -> Release:
        """Return what an episode committed, whoever may see it."""
        *row, totals = self._columns_of(episode, *_RELEASE, "totals")
        return release_in(row)._replace(totals=_unsealed(totals))

    def mark_of(self, episode: int) -> str:
        """Return the mark of an episode's release; that of none is empty."""
        return "" if episode < 0 else str(self._columns_of(episode, "mark")[0])

    def totals_of(self, episode: int) -> bytes | None:
        """Return the secret totals that an episode's release left, None if there are none."""
        return None if episode < 0 else _unsealed(self._columns_of(episode, "totals")[0])

    def _columns_of(self, episode: int, *names: str) -> Any:
        query = f"SELECT {', '.join(names)} FROM fliphat_episodes WHERE episode = ?"
        return self.run("look", lambda tx, again: tx.all(query, episode))[0]

    def fill(
        self,
        episode: Episode,
        row: EpisodeRow,
        new_rows: Callable[[str], RowStore],
        ages: Ages | None = None,
    ) -> None:
        """Fill an episode with its rounds, all as they are at one moment."""
        step = max(_FEWEST, _CHUNK // (self.settings.row_width * np.dtype(self.settings.dtype).itemsize))
        end = row.first_round + row.filled

        def read(tx: Transaction, again: bool) -> None:
            episode.rows, episode.filled, episode.life, episode.spans = None, 0, Life(), []
            for first in range(row.first_round, end, step):
                part = tx.all(_ROUNDS, first, min(first + step, end))
                if not all(map(self.is_whole, part)):
                    raise StoreError(
                        f"a row of episode {row.episode} is damaged, its checksum does not match: restore "
                        f"it{self.or_forget}"
                    )
                faults.reached("rows read")
                if part:
                    rounds.append(episode, part, self.settings, new_rows, ages)

        self.run("rows", read)
        if episode.filled != row.filled:
            raise StoreError(
                f"episode {row.episode} has {episode.filled} rounds in the store instead of the {row.filled} "
                f"that were played: restore what was removed"
            )

    # Steps

    def step(
        self,
        episode: int,
        event: str,
        *,
        release: Release | None = None,
        next_room: int = 0,
        **asked: Any,
    ) -> Life:
        """Take one step of an episode's life, together with what belongs to it.

        Parameters
        ----------
        episode : int
        event : str
            One of the steps of :data:`fliphat.policies.engine.lifecycle.TABLE`.
        release : Release, optional
            What is committed.
        next_room : int
            With a claim: rounds of the next episode that may be played meanwhile.
        **asked
            See :class:`fliphat.policies.engine.lifecycle.Asked`.

        Raises
        ------
        StepRefused
            Nothing changed.
        """

        def take(tx: Transaction, again: bool) -> Life:
            if event == "claim":
                self.wait_for_rewards(tx)
            row, now = self._row(tx, episode)
            before, given = row.life, Asked(now=now, **asked)
            if lifecycle.made(before, event, given):
                return before
            life = lifecycle.step(before, event, given)
            write_life(tx, episode, life)
            if event == "claim" and before.phase is Phase.FULL:
                following = (episode + 1, row.first_round + row.room, next_room, 0, row.releases, row.arms)
                _insert_episode(tx, *following, Phase.AHEAD)
            elif event == "commit":
                assert release is not None
                tx.do(_COMMIT, *_values(release), episode)
            elif event == "show":
                self._open_next(tx, episode)
            elif event == "close":
                self._erase_totals(tx, episode - 1)  # of the release before, needed no more
                self.drop_rounds(tx, row.first_round, row.first_round + row.room)
                self._drop_keys(tx, episode, now)
            elif event == "refuse":
                self._erase_totals(tx, episode)
                if before.phase is Phase.COMMITTED:  # nobody may play ahead of it either
                    ahead, _ = self._row(tx, episode + 1)
                    write_life(tx, episode + 1, lifecycle.step(ahead.life, "refuse"))
            return life

        return self.run(event, take)

    @staticmethod
    def _erase_totals(tx: Transaction, last: int) -> None:
        tx.do("UPDATE fliphat_episodes SET totals = NULL WHERE episode <= ?", last)

    def _open_next(self, tx: Transaction, episode: int) -> None:
        row, _ = self._row(tx, episode + 1)
        ((room,),) = tx.all("SELECT next_room FROM fliphat_episodes WHERE episode = ?", episode)
        life = lifecycle.step(row.life, "open")
        if row.filled == room:
            life = lifecycle.step(life, "fill")
        write_life(tx, episode + 1, life)
        tx.do(
            "UPDATE fliphat_episodes SET releases = ?, room = ? WHERE episode = ?",
            *(episode + 1, room, episode + 1),
        )

    def _row(self, tx: Transaction, episode: int) -> tuple[EpisodeRow, float]:
        for *row, now in tx.all(
            f"SELECT {_EPISODE}, {self.clock} FROM fliphat_episodes WHERE episode = ?{self.locking}", episode
        ):
            return _episode(row), float(now)
        raise StoreError(f"the store has lost episode {episode}: restore what was removed")

    def drop_rounds(self, tx: Transaction, begin: int, end: int) -> None:
        """Delete rows and rewards of some rounds; what an open look at them sees stays there for it."""
        for table in ("rounds", "rewards"):
            tx.do(f"DELETE FROM fliphat_{table} WHERE round >= ? AND round < ?", begin, end)

    def _drop_keys(self, tx: Transaction, episode: int, now: float) -> None:
        """Let keys go whose episodes have been closed for long enough; looked for when one is closed."""
        tx.do("UPDATE fliphat_episodes SET closed = ? WHERE episode = ?", now, episode)
        over = tx.all("SELECT max(episode) FROM fliphat_episodes WHERE closed < ?", now - KEYS_LAST)[0][0]
        if over is not None:
            tx.do("DELETE FROM fliphat_keys WHERE episode <= ?", over)
            tx.do("UPDATE fliphat_episodes SET closed = NULL WHERE episode <= ?", over)

    # Numbers of the policy's own

    def keep(self, name: str, value: Any) -> None:
        """Keep one of the policy's own numbers; whether it is witnessed is no JSON."""
        given = value if isinstance(value, bool) else json.dumps(value)
        self.run("keep", lambda tx, again: self.set_policy(tx, **{name: given}))

    def set_policy(self, tx: Transaction, **values: Any) -> None:
        """Change columns of the policy's row, which was whole before."""
        self._lock_policy(tx)
        policy_in(tx)
        names = ", ".join(f"{name} = ?" for name in values)
        tx.do(f"UPDATE fliphat_policy SET {names}", *values.values())
        _seal(tx)

    def _lock_policy(self, tx: Transaction) -> None:
        """Let nobody else change the policy's row until the transaction ends."""
        tx.all(f"SELECT single FROM fliphat_policy{self.locking}")

    def hand_over(self, episode: int, path: Path, checksum: str) -> None:
        """Keep that the policy goes on in a file, which is on disk and not yet sealed."""

        def leave(tx: Transaction, again: bool) -> None:
            row, _ = self._row(tx, episode)
            write_life(tx, episode, lifecycle.step(row.life, "hand_over"))
            self.set_policy(tx, handed_over=str(path.absolute()), handed_over_checksum=checksum)

        self.run("hand over", leave)


def write_life(tx: Transaction, episode: int, life: Life) -> None:
    """Write down where an episode is."""
    tx.do(
        "UPDATE fliphat_episodes SET phase = ?, owner = ?, fence = ?, until = ? WHERE episode = ?",
        *(str(life.phase), life.owner, life.fence, life.until, episode),
    )


def policy_in(tx: Transaction) -> dict[str, Any]:
    """Return the policy's row, checked."""
    rows = tx.all("SELECT format FROM fliphat_policy")
    refuse_other_format(rows[0][0] if rows else None)
    return _policy(tx.all(_WHOLE_POLICY)[0])


def _policy(values: Sequence[Any]) -> dict[str, Any]:
    row = _typed(values)
    if _checksum_of(row) != row["checksum"]:
        raise StoreError("the policy's row is damaged, its checksum does not match: restore the store")
    return row


def _typed(values: Sequence[Any]) -> dict[str, Any]:
    row = dict(zip(tables.POLICY, values, strict=True))
    for name, kind in (("secret", bytes), ("with_users", bool), ("witnessed", bool)):
        row[name] = None if row[name] is None else kind(row[name])
    return row


def _checksum_of(row: dict[str, Any]) -> int:
    """Return the checksum of all that is not counted in the middle of a round."""
    return tables.checksum(*(row[name] for name in tables.POLICY if name not in tables.COUNTED))


def _seal(tx: Transaction) -> None:
    tx.do("UPDATE fliphat_policy SET checksum = ?", _checksum_of(_typed(tx.all(_WHOLE_POLICY)[0])))


def refuse_odd_users(tx: Transaction) -> None:
    """Raise where the policy's row says of users what can't be: rounds decide about them, not a checksum."""
    ((options, with_users, kind, played),) = tx.all(
        "SELECT options, with_users, user_kind, (SELECT max(filled) FROM fliphat_episodes)"
        " FROM fliphat_policy"
    )
    if played:
        fine = with_users is not None and (kind in ("str", "int", "bytes") if with_users else kind is None)
    else:
        fine = with_users == (True if json.loads(options)["users"] else None) and kind is None
    if not fine:
        raise StoreError("the policy's row is damaged, it does not say of users what was played: restore it")


def refuse_other_settings(recorded: dict[str, Any], settings: EngineSettings) -> None:
    """Raise if a store was made with other arguments, and name them."""
    now = settings.to_dict()
    changed = sorted(name for name in now if recorded.get(name) != now[name])
    if "fit" in changed:
        changed = [name for name in changed if name != "constants"]  # which follow from it
    if changed:
        told = ", ".join(f"{name} was {recorded.get(name)!r}, got {now[name]!r}" for name in changed)
        raise StoreError(f"the store was made with other arguments: {told}")


def refuse_other_format(version: int | None) -> None:
    """Raise unless a store is of the format that this version reads."""
    if version is None:
        raise StoreError("the store has lost the policy's row: restore what was removed")
    if version != tables.FORMAT:
        which = "a newer" if version > tables.FORMAT else "an earlier"
        raise StoreError(
            f"the store was written by {which} version (format {version}, this one reads {tables.FORMAT})"
        )


def episodes_in(tx: Transaction) -> list[EpisodeRow]:
    """Return all episodes in order."""
    return [_episode(row) for row in tx.all(f"SELECT {_EPISODE} FROM fliphat_episodes ORDER BY episode")]


def release_in(row: Sequence[Any]) -> Release:
    """Return a release as its row has it, without the totals that only its fit may read."""
    facts, indices, numbers, known, mark, next_room, kept = row
    if None in (facts, indices, numbers, known, mark, next_room):
        raise StoreError("an estimate that was released is not there: it can't be computed again. Restore it")
    if kept != tables.checksum(facts, bytes(indices), bytes(numbers), known, mark, next_room):
        raise StoreError("an estimate that was released is damaged, its checksum does not match: restore it")
    estimate = np.frombuffer(bytes(indices), "<i8"), np.frombuffer(bytes(numbers), "<f8")
    return Release(json.loads(facts), *estimate, json.loads(known), mark, next_room)


def _values(release: Release) -> tuple[Any, ...]:
    values = (
        json.dumps(release.facts),
        release.indices.astype("<i8").tobytes(),
        release.numbers.astype("<f8").tobytes(),
        json.dumps(release.known),
        release.mark,
        release.next_room,
    )
    totals = release.totals
    sealed = None if totals is None else tables.checksum(totals).to_bytes(4, "little") + totals
    return (*values, tables.checksum(*values), sealed)


def _unsealed(kept: bytes | None) -> bytes | None:
    """Return totals; damaged ones are none, from which a fit begins anew."""
    if kept is None or int.from_bytes(kept[:4], "little") != tables.checksum(bytes(kept[4:])):
        return None
    return bytes(kept[4:])


def releases_in(tx: Transaction) -> dict[int, Any]:
    """Return the row of each release, whoever may see it, by episode."""
    return {
        row[0]: row[1:]
        for row in tx.all(
            f"SELECT episode, {', '.join(_RELEASE)} FROM fliphat_episodes WHERE facts IS NOT NULL"
        )
    }


def seen_in(tx: Transaction, known: int = 0) -> Seen:
    """Return what nobody may see yet, and what became visible after the first `known` releases."""
    # One statement, which sees one moment.
    columns = [f"e.{name}" for name in (*tables.EPISODE, *_RELEASE)] + [f"p.{name}" for name in tables.POLICY]
    rows = tx.all(
        f"SELECT {', '.join(columns)} FROM fliphat_episodes AS e CROSS JOIN fliphat_policy AS p"
        f" WHERE episode >= ? OR phase <> '{Phase.CLOSED}' ORDER BY episode",
        known,
    )
    width, end = len(tables.EPISODE), len(tables.EPISODE) + len(_RELEASE)
    episodes = [_episode(row[:width]) for row in rows]
    unseen = tuple(one for one in episodes if one.phase not in MAY["see"])
    if not unseen:
        raise StoreError("the store has lost the policy's row or its open episode: restore what was removed")
    visible = [(one, row[width:end]) for one, row in zip(episodes, rows, strict=True) if one not in unseen]
    return Seen(
        unseen,
        [release_in(row) for one, row in visible if one.episode >= known],
        _policy(rows[0][end:]),
        tuple(one.episode for one, _ in visible if one.phase is Phase.SHOWN),
    )


def _episode(row: Sequence[Any]) -> EpisodeRow:
    return EpisodeRow._make((*row[:7], Phase(row[7]), *row[8:]))


def _insert_episode(tx: Transaction, *told: Any) -> None:
    """Insert an episode, of which its first numbers and its phase are told."""
    *numbers, phase = told
    tx.do(_NEW_EPISODE, *numbers, 0, str(phase), "", 0, 0.0)


def _joined_options(kept: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return what a store goes on with: limits of age may be made stricter, never weaker."""
    together = dict(kept)
    if given["users"] is not None and given["users"] != kept["users"]:
        raise StoreError(
            f"users is decided when a store is made: it was {kept['users']!r}, got {given['users']!r}"
        )
    for name in ("retention", "reward_timeout"):
        asked, before = given[name], kept[name]
        if asked is None:
            continue
        if name == "retention" and before is not None and not _stricter(asked, before):
            raise StoreError(
                f"retention is kept with the store and can only be made shorter: it was {before!r}, "
                f"got {asked!r}"
            )
        together[name] = asked
    return together


def _stricter(asked: dict[str, Any], before: dict[str, Any]) -> bool:
    (kind, limit), (kind_before, limit_before) = *asked.items(), *before.items()
    return kind == kind_before and limit <= limit_before
