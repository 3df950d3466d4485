"""A pure-Python model of the policy: what must be learned from which rounds, whatever happens in between.

The phases of an episode are those of `fliphat.policies.engine.lifecycle`. The
model plays all rounds in one list and derives from it what a fit must be given; `Fits` stands in for the fit and
keeps what it was given.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from fliphat.fit.dense import Dense
from fliphat.fit.iht.fit import IhtFit
from fliphat.fit.known import KnownEstimate, SparseEstimate
from fliphat.policies.engine import files
from fliphat.policies.store import sqlite

DIM = 4
GROWTH = 1.75  # neither the default nor the doubling of the paper: both would hide a mix-up


@dataclass
class Round:
    id: int
    row: np.ndarray  # as stored; zeros if the round can't be learned from
    used: bool
    reward: float | None = None
    user: object = None


@dataclass
class Model:
    """Rounds of the open episode, and what the fits of earlier ones must have seen."""

    first: int
    rounds_per_user: int = 1
    growth: float = 2.0
    released: list = field(
        default_factory=list
    )  # (X, y, present) of each episode whose estimate was released
    open: list = field(default_factory=list)
    users: dict = field(default_factory=dict)
    late: int = 0
    played: int = 0

    @property
    def length(self):
        return self._length(len(self.released))

    def _length(self, episode):
        length = self.first
        for _ in range(episode):
            length = math.ceil(self.growth * length)
        return length

    @property
    def remaining(self):
        return self.length - len(self.open) or self._length(len(self.released) + 1)

    def select(self, identity, row, valid, user=None):
        if len(self.open) == self.length:
            self.released.append(self.seen_by_the_fit())
            self.open = []
        used = valid
        if user is not None:
            self.users[user] = self.users.get(user, 0) + 1
            used = valid and self.users[user] <= self.rounds_per_user
        self.open.append(Round(identity, row if used else np.zeros(DIM, np.float32), used, user=user))
        self.played += 1

    def awaits(self, identity):
        return any(one.id == identity and one.reward is None for one in self.open)

    def update(self, identity, reward):
        """Record a reward; False if it is late, ValueError if it is a second one."""
        for one in self.open:
            if one.id == identity:
                if one.reward is not None:
                    raise ValueError
                one.reward = reward
                return True
        self.late += 1
        return False

    def forget(self, user=None):
        for one in self.open:
            if user is None or one.user == user:
                one.row, one.used = np.zeros(DIM, np.float32), False

    def cancel(self, identity):
        """Take a round back; False if its episode is over."""
        for one in self.open:
            if one.id == identity:
                one.row, one.used, one.reward = np.zeros(DIM, np.float32), False, 0.0
                return True
        return False

    def pending(self):
        return [one.id for one in self.open if one.reward is None]

    def seen_by_the_fit(self):
        present = np.array([one.used and one.reward is not None for one in self.open])
        rewards = np.array(
            [one.reward if here else 0.0 for one, here in zip(self.open, present, strict=True)]
        )
        return np.array([one.row for one in self.open]), rewards.astype(np.float32), present


class Fits:
    """Replaces fits: remembers what each saw, and returns an estimate no other fit returns.

    Of a dense policy's rows, the arm that is kept behind the context is left out.
    """

    def __init__(self, monkeypatch=None):
        self.calls = []  # (episode, (X, y, present), estimate)
        self.fail = False
        if monkeypatch is not None:
            monkeypatch.setattr(IhtFit, "run", self)
            monkeypatch.setattr(Dense, "run_totals", self.dense)

    def dense(self, plan, rows, rewards, present, known, _):
        assert rows.shape == (plan.rows, known.dim + 1)
        if self.fail:
            raise OSError("no entropy")
        coefficients = np.full_like(known.coefficients, 1.0 + len(self.calls))
        after = replace(known, episodes=known.episodes + 1, coefficients=coefficients)
        self.calls.append(
            (plan.episode, (np.array(rows[:, :-1]), rewards.copy(), present.copy()), after.estimate)
        )
        return after, None

    def __call__(self, plan, rows, rewards, present, known):
        assert rows.shape == (plan.rows, known.estimate.dim)
        if self.fail:
            raise OSError("no entropy")
        X = rows.toarray() if hasattr(rows, "toarray") else np.array(rows)
        estimate = SparseEstimate(np.array([0]), np.array([1.0 + len(self.calls)]), known.estimate.dim)
        self.calls.append((plan.episode, (X, rewards.copy(), present.copy()), estimate))
        return KnownEstimate(estimate, known.episodes + 1)

    def of(self, episode):
        return [call for call in self.calls if call[0] == episode]


def without_syncs(monkeypatch):
    """Leave out waiting for the disk, which only a machine that stops would notice."""
    monkeypatch.setattr(files, "sync", lambda _: None)
    monkeypatch.setattr(files, "sync_directory", lambda _: None)
    monkeypatch.setattr(sqlite, "_SYNCHRONOUS", "OFF")


def same(seen, expected):
    """Whether a fit saw what the model says; rows whose reward does not count may hold anything."""
    (X, y, present), (expected_X, expected_y, expected_present) = seen, expected
    return (
        np.array_equal(present, expected_present)
        and np.array_equal(y, expected_y)
        and np.array_equal(X[present], expected_X[expected_present])
    )
