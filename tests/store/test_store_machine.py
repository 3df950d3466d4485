"""Random interleavings of calls, hand-overs and crashes, against the pure-Python model."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fliphat import FLIPHAT, Iht, Store
from fliphat.fit.iht.fit import IhtFit
from fliphat.policies.engine import faults
from policy_model import DIM, GROWTH, Fits, Model, same

FIRST = 2
SEEDS = st.integers(0, 10**6)


class Crash(BaseException):
    pass


class PolicyMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.fits, self.real_fit, self.real_reached = Fits(), IhtFit.run, faults.reached
        IhtFit.run = self.fits
        self.directory = Path(tempfile.mkdtemp())
        self.policy = None
        self.seen = []  # every estimate that was ever visible, by episode

    def teardown(self):
        IhtFit.run, faults.reached = self.real_fit, self.real_reached
        if self.policy is not None:
            self.policy.close()
        shutil.rmtree(self.directory)

    @initialize(stored=st.booleans(), users=st.booleans(), limit=st.integers(1, 2), full=st.booleans())
    def begin(self, stored, users, limit, full):
        self.stored, self.users, self.full = stored, users, full
        self.model = Model(FIRST, rounds_per_user=limit, growth=GROWTH)
        self.ids, self.keys, self.saves = [], {}, 0
        self.policy = self.open()

    def open(self):
        return FLIPHAT(
            dim=DIM, sparsity=1, epsilon=1.0, delta=0.01, first_episode=FIRST, fit=Iht(growth=GROWTH),
            rounds_per_user=self.model.rounds_per_user,
            store=Store(
                self.directory / "store" if self.stored else None, durability="full" if self.full else "batch"
            ),
        )  # fmt: skip

    def reopen(self):
        self.policy._engine.store.close()  # as the end of a process: nothing more is written
        self.policy = self.open()

    def round(self, seed, sparse=False):
        rng = np.random.default_rng(seed)
        row = rng.standard_normal(DIM).astype(np.float32)
        if seed % 5 == 0:
            row[seed % DIM] = np.nan
        X = np.stack([row] * (1 + seed % 3))
        user = f"user {seed % 7}" if self.users else None
        return (sp.csr_array(X) if sparse else X), row, user

    def note(self, decision, row, user):
        self.model.select(decision.id, row, not np.isnan(row).any(), user)
        assert decision.valid == (not np.isnan(row).any())
        self.ids.append(decision.id)

    @rule(seed=SEEDS, sparse=st.booleans(), key=st.none() | st.integers(0, 3))
    def select(self, seed, sparse, key):
        X, row, user = self.round(seed, sparse)
        decision = self.policy.select(X, user=user, key=key)
        if (user, key) in self.keys:
            assert decision == self.keys[user, key]
            return
        if key is not None:
            self.keys[user, key] = decision
        self.note(decision, row, user)

    @rule(seed=SEEDS, size=st.integers(1, 4))
    def select_batch(self, seed, size):
        size = min(size, self.policy.remaining)
        X = np.random.default_rng(seed).standard_normal((size, 2, DIM)).astype(np.float32)
        users = [f"user {(seed + i) % 7}" for i in range(size)] if self.users else None
        for i, decision in enumerate(self.policy.select_batch(X, users)):
            self.note(decision, X[i, decision.arm], users[i] if users else None)

    @precondition(lambda self: self.ids)
    @rule(which=st.integers(0, 10**6), reward=st.floats(-100, 100, width=32), batch=st.booleans())
    def update(self, which, reward, batch):
        identity = self.ids[-1 - which % min(len(self.ids), 8)]
        update = (lambda: self.policy.update_batch([identity], [reward])) if batch else (
            lambda: self.policy.update(identity, reward)
        )  # fmt: skip
        try:
            expected = self.model.update(identity, reward)
        except ValueError:
            if batch:
                assert update() == 0
            else:
                with pytest.raises(ValueError, match="a second one is refused"):
                    update()
        else:
            assert update() == expected

    @rule()
    def forget(self):
        self.policy.forget()
        self.model.forget()

    @precondition(lambda self: self.users and self.model.played)
    @rule(number=st.integers(0, 6))
    def forget_user(self, number):
        self.policy.forget(user=f"user {number}")
        self.model.forget(f"user {number}")

    @precondition(lambda self: self.ids)
    @rule(which=st.integers(0, 10**6))
    def cancel(self, which):
        identity = self.ids[-1 - which % min(len(self.ids), 8)]
        assert self.policy.cancel(identity) == self.model.cancel(identity)

    @precondition(lambda self: self.stored)
    @rule()
    def crash(self):
        self.reopen()

    @precondition(lambda self: self.stored)
    @rule(seed=SEEDS, number=st.integers(0, 12))
    def crash_in_select(self, seed, number):
        X, row, user = self.round(seed)
        before = self.policy.rounds
        if self.cut_off(number, lambda: self.policy.select(X, user=user, key=f"k{before}")):
            self.reopen()
            assert self.policy.rounds in (before, before + 1)
        decision = self.policy.select(X, user=user, key=f"k{before}")  # the caller retries
        assert self.policy.rounds == before + 1
        self.note(decision, row, user)

    @precondition(lambda self: self.stored and self.model.pending())
    @rule(number=st.integers(0, 1))
    def crash_in_update(self, number):
        identity = self.model.pending()[0]
        if self.cut_off(number, lambda: self.policy.update(identity, 1.5)):
            self.reopen()
        if identity in self.policy.pending:
            self.policy.update(identity, 1.5)
        self.model.update(identity, 1.5)

    @rule()
    def save_and_load(self):
        self.saves += 1
        path = self.directory / f"save {self.saves}"
        self.policy.save(path)
        self.policy, self.stored = FLIPHAT.load(path), False

    def cut_off(self, number, action):
        """Whether the action was stopped at its `number`-th point."""
        count = iter(range(10**6))

        def reached(_):
            if next(count) == number:
                raise Crash

        faults.reached = reached
        try:
            action()
        except Crash:
            return True
        finally:
            faults.reached = self.real_reached
        return False

    @invariant()
    def the_policy_is_the_model(self):
        if self.policy is None:
            return
        assert self.policy.rounds == self.model.played
        assert self.policy.remaining == self.model.remaining
        assert self.policy.pending == self.model.pending()
        assert self.policy.late == self.model.late

    @invariant()
    def each_episode_is_released_once_from_the_right_rows(self):
        if self.policy is None:
            return
        history = self.policy.history
        assert len(history) == len(self.model.released)
        for episode, (facts, expected) in enumerate(zip(history, self.model.released, strict=True)):
            # The estimate of the last fit of these rows is the one that is visible, now and for ever.
            _, rows, estimate = self.fits.of(episode)[-1]
            assert same(rows, expected)
            assert facts.estimate.to_dense().tolist() == estimate.to_dense().tolist()
            if episode == len(self.seen):
                self.seen.append(estimate)
            assert self.seen[episode] is estimate


TestPolicyMachine = PolicyMachine.TestCase
TestPolicyMachine.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.slow
class TestLongPolicyMachine(PolicyMachine.TestCase):
    settings = settings(
        max_examples=600, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
    )
