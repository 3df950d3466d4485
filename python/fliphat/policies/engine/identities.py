"""Who a round is for and what its arms are called: user ids, keys, ids of arms, names of columns.

User ids and keys are kept as keyed digests. All of them are given always or never, and are of one kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fliphat.fit.settings import EngineSettings
from fliphat.policies.engine import inputs
from fliphat.policies.engine.episode import Episode
from fliphat.policies.engine.keeping import Tallies
from fliphat.policies.types import Decision

if TYPE_CHECKING:
    from fliphat.policies.store.sqlite import SqliteStore

__all__ = ["Identities"]


class Identities:
    """The part of an engine that knows names."""

    settings: EngineSettings
    store: SqliteStore | None
    episode: Episode
    secret: bytes
    users: Tallies
    keys: Tallies
    with_users: bool | None
    user_kind: str | None  # that of all user ids: 1 and "1" may be one person
    column_names: list[str] | None
    _disk_is_ahead: bool

    # Ids of arms

    def _offered(self, ids: Sequence[Any] | None, arms: int) -> list[Any] | None:
        """Return the ids of a round's arms, which are given always or never."""
        if ids is None and self.arm_ids is None:
            return None
        if ids is None or (self.arm_ids is None and self._next_round() > 1):
            rule = "given in every round" if ids is None else "left out in every round"
            raise ValueError(f"arms must be {rule}, as in the first: decisions hold ids or positions")
        return inputs.arm_ids(ids, arms)

    def _offered_in_batch(self, names: Any, count: int, arms: Any) -> list[list[Any]] | None:
        """Return the ids of the arms of each round, or of all rounds, if there are any."""
        if names is None or not inputs.is_nested(names):
            every = self._offered(names, arms)
            return None if every is None else [every]
        if len(names) != count:
            raise ValueError(f"arms must have one list of ids for each of the {count} rounds")
        of_each = np.broadcast_to(arms, count).tolist()
        found = [self._offered(one, number) for one, number in zip(names, of_each, strict=True)]
        return [one for one in found if one is not None]

    @staticmethod
    def _names_of(arms: npt.NDArray[np.int64], offered: list[list[Any]]) -> npt.NDArray[Any]:
        """Return the ids of chosen arms, as integers if all are."""
        rounds = offered if len(offered) == len(arms) else offered * len(arms)
        found = [one[arm] for one, arm in zip(rounds, arms.tolist(), strict=True)]
        if all(isinstance(one, int) for one in found):
            return np.array(found, np.int64)
        names = np.empty(len(found), object)
        names[:] = found
        return names

    def _code(self, name: Any) -> int:
        """Return the number that stands for the id of an arm in decisions that are kept, for ever."""
        found = self._arm_codes.get(name)
        if found is None:
            # Known before a round uses it: cut off in between, it is a name that nothing has.
            names = [*(self.arm_ids or ()), name]
            if self.store is not None:
                self._disk_is_ahead = True
                self.store.keep("arm_ids", names)
            self.arm_ids = names
            self._disk_is_ahead = False
            found = len(names) - 1
        return found

    @property
    def arm_ids(self) -> list[Any] | None:
        """Ids of arms that were played, by the numbers that stand for them; None if arms have no ids."""
        return self._arm_ids

    @arm_ids.setter
    def arm_ids(self, names: list[Any] | None) -> None:
        self._arm_ids = names
        self._arm_codes = {name: code for code, name in enumerate(names or ())}

    def _named(self, decision: Decision) -> Decision:
        """Return a decision with its arm's id in place of the number that stands for it."""
        return decision if self.arm_ids is None else decision._replace(arm=self.arm_ids[decision.arm])

    def _check_columns(self, contexts: Any) -> None:
        """Refuse a DataFrame whose columns are others, or in another order, than in the first one."""
        if isinstance(contexts, (list, tuple)):
            for one in contexts:
                self._check_columns(one)
        if not inputs.is_frame(contexts):
            return
        names = [str(name) for name in contexts.columns]
        if self.column_names is None:
            if self.store is not None:
                self._disk_is_ahead = True
                self.store.keep("column_names", names)
            self.column_names = names
            self._disk_is_ahead = False
        elif names != self.column_names:
            raise ValueError("contexts must have the columns of the first DataFrame, in the same order")

    def _next_round(self) -> int:
        return self.episode.first_round + self.episode.filled

    # Users and keys

    def _key_name(self, key: Any, digests: list[bytes] | None) -> bytes:
        """Return what a key is kept as: its user's own, because another user's decision is another's arm."""
        if key is None:
            return b""
        name = inputs.digest("key", key, self.secret)
        return name if digests is None else inputs.digest("key", name + digests[0], self.secret)

    @staticmethod
    def _kind(users: Sequence[Any] | None) -> str | None:
        return inputs.kind_of(users[0]) if users else None

    def _user_digests(self, name: str, users: Sequence[Any] | None) -> list[bytes] | None:
        """Return digests of user ids, which are given always or never, and are all of one kind."""
        if self.with_users not in (None, users is not None):
            rule = "must be given in every round" if self.with_users else "must be left out in every round"
            raise ValueError(
                f"{name} {rule}, as in the first: the guarantee says whether user ids are checked"
            )
        if users is None:
            return None
        digests = [inputs.digest("user", user, self.secret) for user in users]
        kinds = {inputs.kind_of(user) for user in users} | ({self.user_kind} if self.user_kind else set())
        if len(kinds) > 1:
            raise ValueError(
                f"{name} must all be of one kind, str, int or bytes, as in the first round, got "
                f"{sorted(kinds)}: 1 and '1' would be counted as two users"
            )
        return digests

    def _within_limit(self, digests: list[bytes] | None) -> npt.NDArray[np.uint8] | None:
        """Return which rounds of a batch may be learned from: a user's first `rounds_per_user`."""
        if digests is None:
            return None
        within, counts = np.zeros(len(digests), np.uint8), dict[bytes, int]()
        for i, digest in enumerate(digests):
            before = counts.get(digest, self.users.get(digest, 0))
            within[i] = before < self.settings.rounds_per_user
            counts[digest] = before + 1
        return within
