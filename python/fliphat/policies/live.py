"""One live policy: the calls every private policy has, around the one engine that may fit its rows.

A policy can be copied, forked, saved, closed and interrupted. What must hold through all of that is that its
rows are fitted by one object, once: this module decides which object that is, and the engine does the work.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
import warnings
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy.typing as npt

from fliphat import html, process
from fliphat.fit import make_fit, read_settings
from fliphat.fit.known import Known
from fliphat.fit.options import PerEpisode
from fliphat.fit.settings import EngineSettings
from fliphat.policies.engine import snapshot, state
from fliphat.policies.engine.age import Ages
from fliphat.policies.engine.each import Single
from fliphat.policies.engine.engine import Engine
from fliphat.policies.engine.gate import Gate
from fliphat.policies.engine.rows.limits import MemoryLimit
from fliphat.policies.health import Health, HealthWarning, examine, warned_of
from fliphat.policies.scoreboard import Scoreboard, scoreboard
from fliphat.policies.store.opening import opened_engine
from fliphat.policies.store.options import Store
from fliphat.policies.types import (
    CopyError,
    Decision,
    Decisions,
    EpisodeFacts,
    SparseEstimate,
    StoreError,
)
from fliphat.privacy.guarantee import Guarantee, PrivacyWarning

__all__ = ["LivePolicy"]

_COPY = (
    "this policy is a copy: fitting the same rows twice would spend the privacy budget twice, so only the "
    "original can play. Its save and load hand a policy over"
)
_CHILD = (
    "this policy belongs to the process that made it, and this is a forked child: two processes would fit "
    "the same rows twice. Make or load the policy after the fork"
)
_SAVED = "this policy was handed over by save: load the file to go on"
_CUT_OFF = "save was cut off: open the store again; it says whether the policy went to the file"
_CLOSED = "this policy was closed: open its store again to go on"


#: Below this, a delta is taken for what it is said to be.
_LARGE_DELTA = 0.1

_ELSEWHERE = {
    "fit": "update(decision, reward), a round at a time, and update_batch: the estimate is fitted by itself",
    "partial_fit": "update(decision, reward) and update_batch",
    "learn": "update(decision, reward) and update_batch",
    "predict": "select(contexts), which plays a round, and estimate, which is public",
    "pull": "select(contexts), whose Decision.arm is the arm to play",
    "act": "select(contexts), whose Decision.arm is the arm to play",
}


@dataclasses.dataclass(frozen=True)
class _Public:
    """What a copy may know."""

    estimate: SparseEstimate
    history: tuple[EpisodeFacts, ...]
    episode: int
    remaining: int
    rounds: int
    known: Known


class LivePolicy:
    """What every private policy can do; a policy adds its arguments, its fit and its documentation."""

    def _begin(self, engine: Engine) -> None:
        self._engine: Engine | None = engine
        self._public: _Public | None = None
        self._reason = ""  # why there is no engine
        self._settings: Any = engine.settings
        self._fit = engine.fit
        self._process = process.token
        self._lock: threading.RLock | Gate = Gate() if engine.concurrent else threading.RLock()
        self._close_asked = False
        self._guarantee = engine.fit.guarantee()
        self._warned = self._warned_of_contexts = False
        # Weak: a policy that nobody has any more lets go of its store at once, not when a cycle is found.
        this = weakref.ref(self)
        engine.after_release = lambda: None if (policy := this()) is None else policy._warn_once()
        if self._settings.delta > _LARGE_DELTA:
            warnings.warn(
                f"delta = {self._settings.delta:g} is large: with that probability nothing is promised; take "
                f"less than one over the number of people",
                PrivacyWarning,
                stacklevel=3,
            )

    # Playing

    def select(
        self, contexts: Any, user: Any = None, key: Any = None, *, arms: Sequence[Any] | None = None
    ) -> Decision:
        """Play one round.

        The first round of an episode computes and releases the estimate of the one before.

        Parameters
        ----------
        contexts : array_like, SciPy CSR, DataFrame or :class:`fliphat.contexts.Crossed`
            Of shape (K, dim), a row for each of K arms, where K may differ from round to round; of shape
            (dim,) where the policy has named arms. Only what is learned from is kept, as a copy. A value that
            is NaN or infinite does not raise: the round is played uniformly and not learned from. Integers
            become float64; a DataFrame must have the same columns in every round.
        user : str, int or bytes, optional
            In every round or in none. Ids are kept as keyed digests.
        key : str, int or bytes, optional
            Makes retries safe: the same key again returns the same decision, whatever the contexts.
        arms : sequence of str or int, optional
            Ids of the arms, one for each row, in every round or in none: `Decision.arm` is then the id of the
            arm. Retries get the same id, whichever arms they offer. Left out where the policy has named arms:
            `Decision.arm` is then one of their ids.

        Returns
        -------
        Decision

        Raises
        ------
        ValueError, TypeError
            If an argument's structure is wrong; no round happened.
        CopyError
            If this is not the one live policy.
        """
        # `_playing`, spelled out here and in `update`: a context manager of our own would cost 2 us.
        self._refuse_child_and_handler()
        try:
            with self._lock:
                if self._engine is None or self._close_asked:
                    raise CopyError(self._reason or _CLOSED)
                decision = self._engine.select(contexts, user, key, arms)
                if not decision.valid:
                    self._warn_of_contexts()
                return decision
        finally:
            if self._close_asked:
                self.close()

    def select_batch(
        self, contexts: Any, users: Sequence[Any] | None = None, *, arms: int | Sequence[Any] | None = None
    ) -> Decisions:
        """Play several rounds at once, all under one estimate.

        Parameters
        ----------
        contexts : array_like, SciPy CSR, DataFrame, Crossed, or list
            At most `remaining` rounds: of shape (n, K, dim), or (n * K, dim) if sparse or a DataFrame; of
            shape (n, dim) where the policy has named arms. In a list each round has a matrix of its own, as
            in `select`, and rounds may have different numbers of arms.
        users : sequence, optional
            One id for each round.
        arms : int or sequence, optional
            K, for CSR and a DataFrame. Or ids of arms, as in `select`: those of all rounds, or a sequence of
            ids for each round.

        Returns
        -------
        Decisions
            Where the policy has named arms, `arms` are ids: an array of integers if all ids are, of objects
            otherwise.
        """
        with self._playing() as engine:
            decisions = engine.select_batch(contexts, users, arms)
            if not decisions.valid.all():
                self._warn_of_contexts()
            return decisions

    def _select_each(self, asked: Sequence[Single], results: list[Any]) -> None:
        """Play single rounds of several callers, as if each were a call to `select` of its own.

        `results`, as long as `asked`, gets the decision of each round, or the ValueError or TypeError that
        says what is wrong with it. Anything else raises; the rounds played until then have their decisions.
        """
        with self._playing() as engine:
            engine.select_each(asked, results)

    def update(
        self,
        decision: Decision | int | None = None,
        reward: Any = None,
        *,
        key: Any = None,
        user: Any = None,
    ) -> bool:
        """Hand in the reward of a round, in any order.

        Parameters
        ----------
        decision : Decision or int
            A decision or its id.
        reward : float
            Finite; 0 or 1 for the logistic loss.
        key, user : str, int or bytes, optional
            In place of a decision: what its round was played with.

        Returns
        -------
        bool
            False if its episode was over and the estimate computed, or the round is older than
            `reward_timeout`: the reward is dropped and counted.

        Raises
        ------
        ValueError, TypeError
            If the reward is not such a number, the decision is unknown or already has a reward. Nothing
            changed then.
        """
        self._refuse_child_and_handler()
        try:
            with self._lock:
                if self._engine is None or self._close_asked:
                    raise CopyError(self._reason or _CLOSED)
                if decision is None or key is not None or user is not None:
                    decision = self._decided(self._engine, decision, key, user)
                return self._engine.update(decision, reward)
        finally:
            if self._close_asked:
                self.close()

    @staticmethod
    def _decided(engine: Engine, decision: Decision | int | None, key: Any, user: Any) -> int:
        """Return the id of the decision that a key names."""
        if decision is not None or key is None:
            raise ValueError("update must be given a decision, or the key (and user) that it was made with")
        return engine.decided(key, user)

    def update_batch(self, decisions: Any, rewards: npt.ArrayLike) -> int:
        """Hand in several rewards, each whatever the others are.

        A reward that is not a finite number (or not 0 or 1 for the logistic loss), or that is not the first
        of its decision, is left out without an error: one person's reward must not decide whether another's
        counts.

        Parameters
        ----------
        decisions : Decisions, or sequence of Decision or ids
        rewards : array_like, shape (n,)

        Returns
        -------
        int
            How many were taken: in time, usable and the first of their decision.
        """
        with self._playing() as engine:
            return engine.update_batch(decisions, rewards)

    def cancel(self, decision: Decision | int) -> bool:
        """Take a round back: it was never shown, or its context was wrong.

        The round keeps its slot and counts for its user, so that nothing public moves; its row becomes one of
        zeros, context and reward included, and a reward that comes later is refused. Cancelling again
        changes nothing.

        Parameters
        ----------
        decision : Decision or int
            A decision or its id.

        Returns
        -------
        bool
            False if its episode was over and the estimate computed: what was learned can't be taken back.

        Raises
        ------
        ValueError, TypeError
            If the decision is unknown.
        """
        with self._playing() as engine:
            return engine.cancel(decision)

    def forget(self, user: Any = None) -> int:
        """Erase the open episode's rows and rewards, or one user's: rows of zeros take their place.

        The episode goes on, and its length and estimate are what they would be had these rounds brought
        nothing. With a store the files are written again and the old ones overwritten, so this takes as long
        as a copy of them. What was released stays, and so does the keyed count of the user's rounds: without
        it, the user could be learned from beyond `rounds_per_user`. See ``docs/erasure.md``.

        Parameters
        ----------
        user : str, int or bytes, optional
            As in `select`; everybody, if left out.

        Returns
        -------
        int
            Rounds of the open episode that are rows of zeros now. Private.
        """
        with self._playing() as engine:
            return engine.forget(user)

    def expire(self) -> None:
        """Apply `retention` now; every `select` does, so this is for times without rounds."""
        with self._playing() as engine:
            engine.expire()

    # Looking

    @property
    def guarantee(self) -> Guarantee:
        """The privacy claim; user ids count as checked from the first round that gives one."""
        engine = self._engine
        if engine is not None:
            engine.refresh()
        checked = bool(engine.with_users) if engine is not None else self._guarantee.user_ids_checked
        return dataclasses.replace(self._guarantee, user_ids_checked=checked)

    @property
    def estimate(self) -> SparseEstimate:
        """The released estimate that arms are chosen by; all zeros in the first episode. Public."""
        return self._look().estimate

    @property
    def history(self) -> tuple[EpisodeFacts, ...]:
        """Public facts of every episode whose estimate was released."""
        return self._look().history

    @property
    def scoreboard(self) -> Scoreboard:
        """What the policy earns, with intervals, beside uniform play and named arms. Public."""
        public = self._look()
        return scoreboard(self._settings, public.history, public.known, self._table)

    @property
    def _table(self) -> Any:
        """The named arms, if there are any."""
        return getattr(getattr(self, "_fit", None), "table", None)

    @property
    def health(self) -> Health:
        """Whether what was released looks as if the policy learns, in words. From public numbers alone."""
        public = self._look()
        given = (self._settings, public.history, public.known, self._table)
        return examine(*given, remaining=public.remaining)

    @property
    def episode(self) -> int:
        """The open episode, from 0."""
        return self._look().episode

    @property
    def remaining(self) -> int:
        """Rounds until the estimate changes, never 0: with a full episode, the length of the next."""
        return self._look().remaining

    @property
    def rounds(self) -> int:
        """Rounds played so far."""
        return self._look().rounds

    @property
    def pending(self) -> list[int]:
        """Ids of the open episode's rounds that have no reward yet. Private, as is `late`."""
        with self._playing() as engine:
            return engine.pending()

    @property
    def late(self) -> int:
        """Rewards that were dropped because they came after their episode."""
        with self._playing() as engine:
            engine.refresh()
            return engine.late

    # Keeping

    def flush(self) -> None:
        """With a store: return when every call so far is on disk."""
        with self._playing() as engine:
            engine.flush()

    def close(self) -> None:
        """Close the store; the policy can't play any more. Closing twice is harmless.

        From a signal's handler that runs in the middle of another call of the same thread, that call is
        finished first, or undone by the handler's exception, and then the policy is closed.
        """
        if self._process is not process.token:  # before the lock, which may never be given back here
            return
        if self._lock._is_owned():  # type: ignore[union-attr]
            self._close_asked = True
            return
        with self._lock.alone() if isinstance(self._lock, Gate) else self._lock:
            if self._engine is not None:
                self._let_go(_CLOSED)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Hand the policy over to a new file, readable by its owner alone; this object can't go on.

        A release that was cut off is completed first. The file holds private rows. `load` consumes it.
        """
        with self._playing() as engine:
            if engine.concurrent:
                raise StoreError("a policy in a database can't be saved to a file: other workers play it")
            engine.settle("save")
            saving = snapshot.Saving(Path(path))
            try:
                saving.write(*state.to_arrays(engine))
                # The object loses the right to play before anything else can have it.
                self._detach(_SAVED)
                engine.hand_over(saving.path, saving.checksum)
                saving.seal()
                if engine.store is not None:
                    engine.store.discard_rows()
            except BaseException:
                self._undo_save(saving, engine)
                raise
            finally:
                if self._engine is None:
                    engine.close()
                saving.close()

    def _undo_save(self, saving: snapshot.Saving, engine: Engine) -> None:
        """Go back to before a `save` that failed or was interrupted, where that is safe.

        With a store only the store knows whether the policy went to the file; whoever opens it again
        completes that, or goes on without the file.
        """
        if self._engine is None and engine.store is not None:
            self._reason = _CUT_OFF
            if not engine.was_handed_over():
                saving.discard()
        elif saving.discard():
            # The file can't be loaded any more, so this object is the only one again.
            self._engine, self._reason = engine, ""

    @classmethod
    def _engine_for(cls, settings: EngineSettings, store: Store) -> Engine:
        """Return a new engine in memory, for the settings of a policy of this class."""
        return opened_engine(make_fit(settings), store, policy=cls.__name__)

    @classmethod
    def _loaded(
        cls,
        path: str | os.PathLike[str],
        functions: dict[str, PerEpisode | None],
        memory_limit: MemoryLimit,
    ) -> Self:
        """Return the policy that a file holds, and remove the file."""
        policy = cls.__new__(cls)
        kept, file = Store(memory_limit=memory_limit), snapshot.Loading(Path(path))
        try:
            with file:
                record, arrays = file.read()
                engine = cls._engine_for(read_settings(record["settings"], functions), kept)
                engine.ages = Ages.from_record(record["ages"])
                state.fill(engine, record, arrays)
                policy._begin(engine)
                file.consume()
            return policy
        except BaseException:
            # Cut off: nobody else has the policy, and nobody has this object.
            if file.consumed and "_engine" in vars(policy):
                policy.save(path)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        """Say which call is meant by the names that other libraries have for it."""
        hint = _ELSEWHERE.get(name)
        told = "" if hint is None else f"; it has {hint}"
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{told}")

    def _repr_html_(self) -> str:
        parts = (str(self.guarantee), str(self.health))
        board = self.scoreboard._repr_html_()
        return html.card(repr(self), *(html.paragraph(part) for part in parts), board)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is public: a copy has no rows, and so nothing it could fit."""
        return {"settings": self._settings, "guarantee": self.guarantee, "public": self._look()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._engine, self._public, self._reason = None, state["public"], _COPY
        self._settings, self._guarantee = state["settings"], state["guarantee"]
        self._process, self._lock, self._close_asked = process.token, threading.RLock(), False

    @contextlib.contextmanager
    def _playing(self) -> Iterator[Engine]:
        """Hold the lock of the one live policy."""
        self._refuse_child_and_handler()
        try:
            with self._lock:
                if self._engine is None or self._close_asked:
                    raise CopyError(self._reason or _CLOSED)
                yield self._engine
        finally:
            if self._close_asked:
                self.close()

    def _refuse_child_and_handler(self) -> None:
        """Refuse whoever would wait for ever: a forked child, and a handler in the middle of a call."""
        if self._process is not process.token:
            raise CopyError(_CHILD)
        if self._lock._is_owned():  # type: ignore[union-attr]
            raise RuntimeError(
                "this policy is in the middle of a call of the same thread: a signal's handler can close it, "
                "and can't play"
            )

    def _look(self) -> _Public:
        engine = self._engine
        if engine is None:
            assert self._public is not None
            return self._public
        engine.refresh()
        return _Public(engine.estimate, tuple(engine.history), *engine.standing(), engine.known)

    def _warn_of_contexts(self) -> None:
        """Say once, without saying of whom, that rounds are played at random because of their contexts."""
        if not self._warned_of_contexts:
            self._warned_of_contexts = True
            warnings.warn(
                "contexts with a value that is NaN or infinite were given: such rounds are played uniformly "
                "and not learned from (Decision.valid is False); fliphat.contexts.Encoder fills them in",
                HealthWarning,
                stacklevel=3,
            )

    def _warn_once(self) -> None:
        """Warn when a release makes the policy look unhealthy, before another round is played."""
        engine = self._engine
        if self._warned or engine is None:
            return
        given = (self._settings, engine.history, engine.known, self._table)
        if found := warned_of(*given):
            self._warned = True
            warnings.warn(
                f"this policy may not learn (policy.health): {'; '.join(found)}",
                HealthWarning,
                stacklevel=5,
            )

    def _let_go(self, reason: str) -> None:
        """Keep what is public, drop everything else."""
        engine = self._engine
        self._detach(reason)
        assert engine is not None
        engine.close()

    def _detach(self, reason: str) -> None:
        """Keep what is public and lose the engine, so that nothing can be played; its store is still open."""
        assert self._engine is not None
        self._guarantee, self._public, self._reason = self.guarantee, self._look(), reason
        self._engine = None
