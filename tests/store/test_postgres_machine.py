"""Random interleavings of calls and crashes of a policy in a database, against the same model as a directory's."""

import pytest
import test_store_machine as machine
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from fliphat import FLIPHAT, Iht, Store
from fliphat.policies.engine import lifecycle
from policy_model import DIM, GROWTH, Model


class DatabaseMachine(machine.PolicyMachine):
    server = None
    save_and_load = None  # a policy in a database is not saved to a file

    @initialize(users=st.booleans(), limit=st.integers(1, 2), full=st.booleans())
    def begin(self, users, limit, full):
        self.stored, self.users, self.full, self.url = True, users, full, self.server.new()
        self.model = Model(machine.FIRST, rounds_per_user=limit, growth=GROWTH)
        self.ids, self.keys = [], {}
        self.policy = self.open()

    def open(self):
        return FLIPHAT(
            dim=DIM, sparsity=1, epsilon=1.0, delta=0.01, first_episode=machine.FIRST, fit=Iht(growth=GROWTH),
            rounds_per_user=self.model.rounds_per_user,
            store=Store(self.url, durability="full" if self.full else "batch"),
        )  # fmt: skip

    def reopen(self):
        self.policy._engine.close()  # as the end of a process: nothing more is sent
        self.policy = self.open()


@pytest.fixture(autouse=True)
def _server(server, monkeypatch):
    DatabaseMachine.server = server
    monkeypatch.setattr(lifecycle, "LEASE", 0.0)  # whoever ended is overtaken at once


class TestDatabaseMachine(DatabaseMachine.TestCase):
    settings = settings(
        max_examples=5, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
    )


@pytest.mark.slow
class TestLongDatabaseMachine(DatabaseMachine.TestCase):
    settings = settings(
        max_examples=100, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
    )
