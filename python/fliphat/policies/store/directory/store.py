"""A policy's directory: one live owner, and a state that survives the process at any point.

States of an episode: open -> claimed -> committed -> released (``docs/durability.md`` has the table). The
claim fixes which rewards count; a fit cut off after it is run again on the same rows, because nobody saw
its result. The commit makes the estimate durable, together with the counts of users that it learned from;
from then on these rows are never fitted again. Only then is the estimate shown, and the rows are unlinked.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import weakref
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat.fit.settings import EngineSettings
from fliphat.policies.engine import snapshot
from fliphat.policies.engine.episode import Episode, Released
from fliphat.policies.engine.rows import ChosenRows
from fliphat.policies.store import faults, files
from fliphat.policies.store.base import KeptChoices, PlayedRounds, kept_from, refuse_other_settings
from fliphat.policies.store.directory import ledger
from fliphat.policies.store.directory.journal import Frame, Journal
from fliphat.policies.store.directory.ledger import CLAIMED, COMMITTED, OPEN, RELEASED, Ledger
from fliphat.policies.store.directory.records import emptied, keys_of, packed, users_of
from fliphat.policies.store.directory.rows import FileRows, emptied_rows, file_rows, part_of
from fliphat.policies.types import StoreError

__all__ = ["DURABILITIES", "DirectoryStore", "kept_choices", "recorded_settings"]

DURABILITIES: Final = ("full", "batch", "group")

_LIVE: weakref.WeakSet[DirectoryStore] = weakref.WeakSet()


class DirectoryStore:
    """The open directory of one live policy."""

    def __init__(
        self, path: str | os.PathLike[str], settings: EngineSettings, durability: str, secret: bytes
    ) -> None:
        self.path = Path(path)
        self.settings = settings
        self.durability = durability
        self.failed = False
        self._journal: Journal | None = None
        self._rows: FileRows | None = None
        # The open episode, its generation, its length: set at once, which an interrupt can't cut in two.
        self._open = (0, 0, 0)
        # A file object, which closes itself if an interrupt keeps `close` from doing it.
        self._lock: io.FileIO | None = None
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._ledger = Ledger(self.path / "ledger.sqlite3")
        if _is_new(self.path):
            self.created = self._ledger.create(
                {
                    "version": str(ledger.PLAIN),
                    "settings": json.dumps(settings.to_dict()),
                    "secret": secret.hex(),
                    "incarnation": "0",
                    "with_users": "null",
                    "late": "0",
                }
            )
        else:
            self.created = False
        # After the ledger: a lock without a ledger is a store that lost it.
        self._lock = io.FileIO(files.create_private(self.path / "lock"), "r+")
        try:
            files.lock(self._lock.fileno(), f"store {str(path)!r}")
            ledger.refuse_missing(self.path / "ledger.sqlite3")
            files.sync_directory(self.path)
            known = self._ledger.check()
            _finish_handing_over(self.path, known)
            refuse_other_settings(json.loads(known["settings"]), settings)
        except BaseException:
            self.close()
            raise
        _LIVE.add(self)

    # What a call appends

    def rows(self, layout: str) -> FileRows:
        """Begin the open episode's files."""
        with self:
            if self._journal is not None:
                # Begun by a call that was interrupted before it could use them, perhaps in another layout.
                self._journal.unlink()
            self._journal = Journal(
                self.path,
                self._stem(),
                layout=layout,
                dtype=self.settings.dtype,
                dim=self.settings.row_width,
                durability=self.durability,
            )
            self._rows = file_rows(self._journal, self._open[2])
        return self._rows

    def append_rounds(self, played: PlayedRounds) -> None:
        """Append played rounds with the rows that were staged for them."""
        rows = self._rows
        assert rows is not None
        assert self._journal is not None
        with self:
            self._journal.add_rounds(len(played.arms), packed(played, rows.staged_lengths), rows.staged)

    def append_rewards(self, rows: Any, codes: Any, late: int = 0) -> None:
        """Append rewards, by row of the open episode."""
        with self:
            if self._journal is not None:
                self._journal.add_rewards(rows, codes, late)
                return
            # Late ones alone, right after a crash: the episode has no file before its first round.
            with self._ledger.transaction() as connection:
                connection.execute(
                    "UPDATE meta SET value = CAST(value AS INTEGER) + ? WHERE name = 'late'", (late,)
                )

    def keep(self, name: str, value: Any) -> None:
        """Write one of the engine's own numbers to the ledger."""
        with self, self._ledger.transaction() as connection:
            ledger.put(connection, name, json.dumps(value))
        if name == "arm_ids":
            self._ledger.raise_version(ledger.WITH_ARM_IDS)

    def append_time(self, row: int, seconds: float) -> None:
        """Append when a row of the open episode was about to be played."""
        with self:
            assert self._journal is not None
            self._ledger.raise_version(ledger.WITH_TIMES)
            self._journal.add_time(row, seconds)

    # What a release does, in this order

    def claim(self, episode: Episode) -> None:
        """Fix which rewards count; later ones are late."""
        if episode.claimed:
            return  # an earlier fit was cut off; its claim stands
        with self:
            assert self._journal is not None
            self._journal.sync()
            faults.reached("before claim")
            with self._ledger.transaction() as connection:
                self._move(connection, episode.index, OPEN, CLAIMED)
            faults.reached("claimed")

    def commit(self, released: Released, scalars: dict[str, Any]) -> None:
        """Make an estimate durable, with the rounds of users it learned from and the keys played."""
        facts, index = released.facts, released.facts.episode
        with self:
            assert self._journal is not None
            # All rounds of the episode, or an error: a user whose round is not counted is learned from again.
            frames = self._journal.frames(self._open[2])
            rounds = np.concatenate([frame.rounds for frame in frames if frame.rounds is not None])
            keys = keys_of(rounds, index, self.settings.exploration_in(index))
            users = Counter(users_of(rounds))
            faults.reached("before commit")
            with self._ledger.transaction() as connection:
                self._move(connection, index, CLAIMED, COMMITTED)
                estimate = facts.estimate.indices.tobytes(), facts.estimate.values.tobytes()
                connection.execute(
                    "UPDATE episodes SET facts = ?, indices = ?, numbers = ? WHERE episode = ?",
                    (json.dumps(facts.to_dict()), *estimate, index),
                )
                connection.execute(
                    "INSERT INTO episodes VALUES (?, ?, 0, NULL, NULL, NULL)", (index + 1, OPEN)
                )
                ledger.add_users(connection, users)
                ledger.add_keys(connection, ((name, *decision) for name, decision in keys))
                ledger.put(connection, "known", json.dumps(released.known.to_record()))
                for name, value in scalars.items():
                    ledger.put(connection, name, json.dumps(value))
                faults.reached("commit written")
            faults.reached("committed")

    def finish(self, episode: int, next_length: int) -> None:
        """Forget a committed episode's rows, and turn to the next; does nothing if that was done."""
        if self._open[0] != episode:
            return
        with self:
            self.discard_rows()
            for path in self.path.glob(f"episode-{episode:05d}.*"):
                path.unlink()
            faults.reached("unlinked")
            files.sync_directory(self.path)
            with self._ledger.transaction() as connection:
                self._move(connection, episode, COMMITTED, RELEASED)
            self.turn_to(episode + 1, 0, next_length)
            faults.reached("released")

    def forget(self, episode: Episode, only: npt.NDArray[np.int64] | None = None) -> FileRows | None:
        """Write the open episode's files again with some or all rows empty, and wipe the old ones.

        Until the ledger names the new generation nothing happened; from then on what is left of the old one
        is wiped, now or when the store is opened again. Returns the new rows, if there are any.
        """
        old, rows = self._journal, self._rows
        if old is None or rows is None:
            return None
        with self:
            frames = old.frames(episode.filled)
            forgotten = np.full(episode.filled, only is None)
            forgotten[[] if only is None else only] = True
            # Rows that are kept must be what was written. Nobody looks at those that all go.
            kept = None if only is None else rows.first(episode.filled)
            index, generation, length = self._open
            self._open = (index, generation + 1, length)
            self._journal = None
            fresh = self.rows(old.layout)
            assert self._journal is not None
            with self._journal.written_at_once():
                self._write_again(self._journal, fresh, frames, kept, forgotten)
            faults.reached("before forget")
            with self._ledger.transaction() as connection:
                connection.execute(
                    "UPDATE episodes SET generation = ? WHERE episode = ?", (generation + 1, index)
                )
            faults.reached("forgotten")
            old.wipe()
            return fresh

    @staticmethod
    def _write_again(
        journal: Journal,
        fresh: FileRows,
        frames: Sequence[Frame],
        kept: ChosenRows | None,
        forgotten: npt.NDArray[np.bool_],
    ) -> None:
        """Append what happened to a new journal, without the contents of rounds that are forgotten."""
        at = stored = 0
        for frame in frames:
            if frame.rounds is not None:
                count, lengths = len(frame.rounds), frame.rounds["length"]
                these = forgotten[at : at + count]
                part = None if kept is None else part_of(kept, at, lengths, stored)
                rounds = emptied(frame.rounds, these)
                journal.add_rounds(count, rounds.tobytes(), emptied_rows(journal, part, these))
                fresh.stage_again(rounds["length"])
                fresh.advance(at, count)
                at, stored = at + count, stored + int(lengths.sum(dtype=np.int64))
            elif frame.rewards is not None:
                row = frame.rewards["row"].astype(np.int64)
                journal.add_rewards(row, np.where(forgotten[row], np.inf, frame.rewards["code"]), frame.late)
            elif frame.times is not None:
                for row, seconds in frame.times.tolist():
                    journal.add_time(row, seconds)

    # Opening and closing

    def turn_to(self, episode: int, generation: int, length: int) -> None:
        """Make an episode the open one."""
        self._open = (episode, generation, length)

    def refuse_until_reopened(self) -> None:
        """Raise, now and in every later call."""
        self.failed = True
        with self:
            pass

    def reopen_rows(self) -> tuple[Journal | None, FileRows | None]:
        """Open the open episode's files, if any call began them."""
        layout = Journal.layout_of(self.path, self._stem(), self.settings.dtype)
        if layout is not None:
            Journal.refuse_missing(self.path, self._stem(), layout)
            self.rows(layout)
        return self._journal, self._rows

    def discard_rows(self) -> None:
        """Unlink the open episode's files."""
        if self._journal is not None:
            self._journal.unlink()
        self._journal = self._rows = None

    def remove_strays(self) -> None:
        """Unlink files of episodes that are over, and those a crash left half made."""
        ledger.remove_strays(self.path)
        for stray in (*self.path.glob("episode-*"), *self.path.glob("new-episode-*")):
            if not stray.name.startswith(f"{self._stem()}."):
                files.wipe(stray)  # perhaps rows that were forgotten

    def ledger(self) -> Ledger:
        """Return the ledger."""
        return self._ledger

    def hand_over(self, path: Path, checksum: str) -> None:
        """Record that the policy goes on in a file, which is on disk and not yet sealed."""
        with self:
            files.sync_directory(path.parent)  # the file's name must last at least as long as the record
            with self._ledger.transaction() as connection:
                ledger.put(connection, "handed_over", path.absolute())
                ledger.put(connection, "handed_over_checksum", checksum)
            faults.reached("handed over")

    def was_handed_over(self) -> bool:
        """Whether the disk says so, after a hand-over that was cut off; if in doubt it does."""
        try:
            return self._ledger.peek("handed_over") is not None
        except Exception:
            return True

    def flush(self) -> None:
        """Return when every call so far is on disk."""
        with self:
            if self._journal is not None:
                self._journal.sync()

    def close(self) -> None:
        """Give the directory up; another policy may open it."""
        journal, self._journal = getattr(self, "_journal", None), None
        if journal is not None:
            with contextlib.suppress(OSError):
                journal.write_held()
            journal.close()
        if self._lock is not None and not self._lock.closed:
            files.unlock(self._lock.fileno())
            self._lock.close()

    def close_in_child(self) -> None:
        """Close the files in a forked child, whose parent goes on with them: the lock is the parent's."""
        if self._lock is not None:
            self._lock.close()
        if self._journal is not None:
            self._journal.drop_held()
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _stem(self) -> str:
        return f"episode-{self._open[0]:05d}.{self._open[1]}"

    @staticmethod
    def _move(connection: Any, episode: int, before: str, after: str) -> None:
        moved = connection.execute(
            "UPDATE episodes SET state = ? WHERE episode = ? AND state = ?", (after, episode, before)
        )
        if moved.rowcount != 1:
            raise StoreError(f"episode {episode} is not {before} in the ledger: the store was changed")

    def __enter__(self) -> None:
        """Begin a durable step. After one failed, what is on disk is known again only after reopening."""
        if self.failed or self._lock is None or self._lock.closed:
            raise StoreError(f"store {str(self.path)!r} failed or was closed: open it again")

    def __exit__(self, kind: object, *_: object) -> None:
        self.failed = self.failed or kind is not None


def _is_new(path: Path) -> bool:
    """Whether to begin a store in a directory; refuses a foreign one, and a store without its ledger."""
    names = {entry.name for entry in path.iterdir()}
    ours = {name for name in names if name == "lock" or name.startswith(("episode-", "ledger.sqlite3"))}
    if "ledger.sqlite3" in ours:
        return False
    if ours:
        ledger.refuse_missing(path / "ledger.sqlite3")
    if not all(ledger.is_stray(name) for name in names):
        raise StoreError(f"store {str(path)!r} must be an empty directory or one that a policy made")
    return True


def _finish_handing_over(directory: Path, known: dict[str, str]) -> None:
    """Complete a hand-over that a crash or an interrupt cut off, and say where the policy is."""
    if "handed_over" not in known:
        return
    path = Path(known["handed_over"])
    # Only the very file that the record names: another policy's may lie under the same name.
    if not path.exists() and "handed_over_checksum" in known:
        snapshot.seal(path, known["handed_over_checksum"])
    for left in directory.glob("episode-*"):
        left.unlink()
    raise StoreError(f"the store was handed over to the file {str(path)!r}: load that")


def kept_choices(path: str | os.PathLike[str]) -> KeptChoices | None:
    """Return what a store was made with and goes on with; None if it can't be read.

    Only looks: whoever opens the store checks it, and says what is wrong with it.
    """
    try:
        return kept_from(recorded_settings(path))
    except (StoreError, ValueError, KeyError, TypeError):
        return None


def recorded_settings(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the record of the settings that a store was made with; only looks."""
    with ledger.reading(Path(path) / "ledger.sqlite3") as connection:
        found: dict[str, Any] = json.loads(ledger.meta(connection)["settings"])
        return found


def _close_in_child() -> None:
    # A child that kept the lock's file open would keep the store locked after its parent is gone.
    for store in list(_LIVE):
        store.close_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
