"""Random sequences of calls, cuts, kills, copies, hand-overs and workers: real policies do what the searched model says.

The model of `life_model` is the oracle. A call is a sequence of its acts, and a cut is one that stops between two of
them. After every rule phases, rows, releases, the witness and what anybody can see are compared; each fit of the model
must be one real fit, and no real fit may be anything else.
"""

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import Phase as Generating
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fliphat import FLIPHAT, Iht, Store
from fliphat.fit.iht.fit import IhtFit
from fliphat.policies import CopyError, StoreError
from fliphat.policies.engine import faults, lifecycle, turn
from fliphat.policies.engine.engine import Engine
from fliphat.policies.engine.lifecycle import Phase
from fliphat.policies.store import sqlite
from fliphat.policies.store.inspect import inspect_path
from fliphat.policies.store.postgres import store as postgres
from fliphat.policies.store.sql import seen_in
from life_model import IN_MEMORY, LEFT, Rules, World, acts, broken
from policy_model import DIM, Fits

#: The acts of a release, each with the points whose passing says that it was made.
TURN = {
    "claim": {"claim durable", "claim"},
    "fit": {"commit written", "commit"},
    "commit": {"commit durable", "commit"},
    "tell the witness": {"accept written", "accept"},
    "hear the witness": {"accept durable", "refuse durable", "accept"},
    "show": {"show durable", "show"},
    "close": {"close durable", "close"},
}
ROUND = {"select": {"calls durable", "played"}}
WHICH = st.integers(0, 3)


class Crash(BaseException):
    """The process is gone, or the call was interrupted."""


class LifeMachine(RuleBasedStateMachine):
    """One policy in a directory, with a witness; its copies, the files it is saved to, and what is loaded from them."""

    world_rules = Rules(most_rows=10**6, most_copies=3, most_processes=3, most_files=1)
    begin = World()

    def __init__(self):
        super().__init__()
        self.fits, self.real = Fits(), (IhtFit.run, faults.reached, Engine.move, sqlite._SYNCHRONOUS)
        IhtFit.run, sqlite._SYNCHRONOUS = self.fits, "OFF"
        self.directory = Path(tempfile.mkdtemp())
        self.world, self.seen = self.begin, set()
        self.stores, self.policies, self.files = self.first_stores(), [], []
        self.number = 0
        self.start()

    def first_stores(self):
        return [self.directory / "store 0"]

    def start(self):
        # Until a store was opened for the first time there is none to copy.
        self.open_store(0)

    def teardown(self):
        IhtFit.run, faults.reached, Engine.move, sqlite._SYNCHRONOUS = self.real
        for policy in self.policies:
            policy.close()
        shutil.rmtree(self.directory)

    # The model

    def offered(self, name):
        return next((after for act, after in acts(self.world, self.world_rules) if act == name), None)

    def do(self, name, *, must=True):
        """Let the model do an act, if it can."""
        after = self.offered(name)
        assert after is not None or not must, f"the model can't {name}"
        if after is not None:
            self.world = after
            assert broken(after) is None
        return after is not None

    def turn(self, number, passed=None):
        """Let the model release what a process finds, as far as the points say; False if it is refused."""
        owner = self.world.processes[number].owner
        self.do("a lease is over", must=False)
        for name, points in TURN.items():
            if passed is None or points & passed:
                self.do(f"{name} by {owner}", must=False)
        return not self.copy_of(number).refused

    def copy_of(self, number):
        return self.world.copies[self.world.processes[number].copy]

    def gone(self, number):
        """A process is gone, in the model and here."""
        owner = self.world.processes[number].owner
        self.do(f"kill {owner}")
        self.kill(self.policies.pop(number))

    def kill(self, policy):
        if policy._engine is not None:
            policy._engine.close()  # as the end of a process: nothing more is written

    # Calls

    def chosen(self, which):
        return which % len(self.policies)

    def contexts(self):
        """Both arms have the row whose number the model gives."""
        return np.full((2, DIM), 1.0 + len(self.world.acknowledged), np.float32)

    def options(self, place):
        return Store(place, witness=self.directory / "witness")

    def make(self, place):
        return FLIPHAT(
            dim=DIM, sparsity=1, epsilon=1.0, delta=0.01, first_episode=1, fit=Iht(growth=1),
            store=self.options(place),
        )  # fmt: skip

    def open_store(self, number):
        copy = self.world.copies[number]
        now, due = (copy.index, copy.mark), None
        if copy.life.phase in (Phase.COMMITTED, Phase.WITNESSED):
            due = copy.index + 1, copy.life.bits[0]
        elif copy.life.phase is Phase.SHOWN:  # its release counts, and only its rows wait for the end
            now = copy.index + 1, copy.life.bits[0]
        known = not self.world_rules.witness or self.world.witness in (now, due)
        if copy.refused or copy.life.phase in (Phase.HANDED_OVER, Phase.REFUSED) or not known:
            with pytest.raises(StoreError, match=r"not the newest|handed over"):
                self.make(self.stores[number])
            return
        self.do(f"open store {number}")
        ended = due is not None or copy.life.phase is Phase.SHOWN
        if ended and not self.world_rules.workers:  # of workers, whoever plays next completes it
            assert self.turn(len(self.world.processes) - 1)
        self.policies.append(self.make(self.stores[number]))

    @precondition(lambda self: len(self.policies) < self.world_rules.most_processes)
    @rule(which=WHICH)
    def open(self, which):
        number = which % len(self.world.copies)
        alone = self.offered(f"open store {number}") is not None or not self.busy(number)
        if alone and not self.world.copies[number].memory:
            self.open_store(number)

    def busy(self, number):
        return any(process.copy == number for process in self.world.processes)

    @precondition(lambda self: self.policies)
    @rule(which=WHICH)
    def select(self, which):
        number = self.chosen(which)
        X, owner = self.contexts(), self.world.processes[number].owner
        if self.copy_of(number).refused or not self.turn(number):
            with pytest.raises(StoreError, match="not the newest"):
                self.policies[number].select(X)
            return
        self.policies[number].select(X)
        self.do(f"select by {owner}")

    @precondition(lambda self: self.policies)
    @rule(which=WHICH, stop=st.integers(0, 12))
    def cut_select(self, which, stop):
        """Cut a round off at one of its points; a store must be opened again then."""
        number = self.chosen(which)
        if self.copy_of(number).refused:
            return
        passed = []

        def reached(point):
            passed.append(point)
            if len(passed) == stop + 1:
                raise Crash

        def moves(engine, event, **given):
            self.real[2](engine, event, **given)
            if engine.store is None:
                reached(event)

        faults.reached, Engine.move = reached, moves
        X, owner = self.contexts(), self.world.processes[number].owner
        memory = self.copy_of(number).memory
        try:
            self.policies[number].select(X)
        except Crash:
            done = set(passed)
        except StoreError:
            done = None  # the witness refused it, before it was cut off
        else:
            done = None
        finally:
            faults.reached, Engine.move = self.real[1:3]
        alive = self.turn(number, done)
        if alive and (done is None or ROUND["select"] & done):
            self.do(f"select by {owner}")
        if done is not None and not memory:
            self.gone(number)

    @precondition(lambda self: self.policies)
    @rule(which=WHICH)
    def forget(self, which):
        number = self.chosen(which)
        owner, copy = self.world.processes[number].owner, self.copy_of(number)
        if copy.refused:
            with pytest.raises(StoreError, match="not the newest"):
                self.policies[number].forget()
            return
        if self.world_rules.workers or lifecycle.may("empty", copy.life) or self.turn(number):
            self.policies[number].forget()
            self.do(f"forget by {owner}", must=False)
        else:
            with pytest.raises(StoreError, match="not the newest"):
                self.policies[number].forget()

    @precondition(lambda self: self.policies and not self.world_rules.workers and not self.files)
    @rule(which=WHICH)
    def save(self, which):
        number = self.chosen(which)
        policy, owner = self.policies[number], self.world.processes[number].owner
        self.number += 1
        path = self.directory / f"file {self.number}"
        saves = not self.copy_of(number).refused
        if saves and not lifecycle.may("save", self.copy_of(number).life):
            saves = self.turn(number)
        if saves:
            self.do(f"save by {owner}")
        if saves and not self.copy_of(number).refused:
            policy.save(path)
            self.files.append(path)
            with pytest.raises(CopyError):
                policy.select(self.contexts())
        else:
            with pytest.raises(StoreError, match="not the newest"):
                policy.save(path)
            assert not path.exists()
        self.look(policy)  # it may have released something first
        self.gone(number)

    @precondition(lambda self: self.files and len(self.policies) < self.world_rules.most_processes)
    @rule()
    def load(self):
        if self.do("load", must=False):
            path = self.files.pop()
            self.policies.append(FLIPHAT.load(path))
            self.stores.append(None)
            assert not path.exists()

    @precondition(lambda self: self.policies)
    @rule(which=WHICH)
    def end(self, which):
        self.gone(self.chosen(which))

    @rule(which=WHICH)
    def copy(self, which):
        number = which % len(self.world.copies)
        if self.do(f"copy store {number}", must=False):
            self.stores.append(self.directory / f"store {len(self.stores)}")
            shutil.copytree(self.stores[number], self.stores[-1])

    @precondition(lambda self: self.policies)
    @rule(which=WHICH)
    def child(self, which):
        """A forked child has the object, and can't act with it."""
        policy = self.policies[self.chosen(which)]
        own, policy._process = policy._process, object()
        with pytest.raises(CopyError, match="forked child"):
            policy.select(self.contexts())
        policy._process = own

    # Comparing

    def reading(self, place):
        return sqlite.reading(place)

    def in_store(self, place):
        """Where a store's first unseen episode is: its index, phase and rows."""
        with self.reading(place) as tx:
            seen = seen_in(tx)
            row = seen.unseen[0]
            index, phase, first = row.episode, row.phase, row.first_round
            if seen.to_close:
                index, phase, first = seen.to_close[0], Phase.SHOWN, row.first_round - 1
            found = tx.all("SELECT numbers FROM fliphat_rounds WHERE round = ?", first)
            return index, phase, [self.row_in(one[0]) for one in found]

    @staticmethod
    def row_in(numbers):
        return None if numbers is None else int(np.frombuffer(bytes(numbers), np.float32)[0]) - 1

    def in_memory(self, policy):
        episode = policy._engine.episode
        if episode.life.phase is Phase.CLOSED:  # the next one is opened by the next call
            return episode.index + 1, Phase.OPEN, []
        rows = [] if episode.rows is None else np.array(episode.rows.first(episode.filled))[:, 0].tolist()
        return episode.index, episode.life.phase, [int(row) - 1 if row else None for row in rows]

    @invariant()
    def the_policies_are_the_model(self):
        for number, copy in enumerate(self.world.copies):
            if not copy.memory:
                found = self.in_store(self.stores[number])
            else:
                live = [i for i, one in enumerate(self.world.processes) if one.copy == number]
                if not live:
                    continue
                found = self.in_memory(self.policies[live[0]])
            phase = copy.life.phase
            assert found[:2] == (copy.index, phase), (number, found, copy)
            if phase is not Phase.REFUSED:
                assert found[2] == [row if row >= 0 else None for row in copy.rows]
        assert len(self.fits.calls) == self.world.marks, "a fit that the model does not know"

    @invariant()
    def what_can_be_seen_is_what_the_model_shows(self):
        for policy in self.policies:
            self.look(policy)
        for place in self.stores:
            if place is not None:
                self.see(inspect_path(place)["estimate"]["values"])
        assert self.seen == self.world.visible

    def look(self, policy):
        for facts in policy.history:
            self.see(facts.estimate.values.tolist())

    def see(self, estimate):
        for mark in map(int, estimate):
            rows = self.fits.calls[mark - 1][1][0][:, 0]
            self.seen |= {(int(row) - 1, mark) for row in rows if row}

    @invariant()
    def the_witness_is_where_the_model_has_it(self):
        if not self.world_rules.witness:
            return
        (record,) = json.loads((self.directory / "witness").read_bytes()).values()
        if self.world.witness == LEFT:
            assert record["mark"].startswith("handed over")
        else:
            assert record["releases"] == self.world.witness[0]


class MemoryMachine(LifeMachine):
    """A policy in memory: a cut is an interrupt, after which it goes on where it was."""

    world_rules = LifeMachine.world_rules._replace(witness=False)
    begin = IN_MEMORY

    def first_stores(self):
        return [None]

    def start(self):
        self.policies.append(self.make(None))

    def options(self, place):
        return Store()


class DatabaseMachine(LifeMachine):
    """Workers at one database; leases are over at once, so that whoever comes next overtakes."""

    world_rules = Rules(workers=True, witness=False, most_rows=10**6, most_processes=3)
    server = None

    def first_stores(self):
        return [self.server.new()]

    def start(self):
        self.lease, lifecycle.LEASE = lifecycle.LEASE, 0.0
        super().start()

    def teardown(self):
        lifecycle.LEASE = self.lease
        super().teardown()

    def options(self, place):
        return Store(place)

    def reading(self, place):
        return postgres.reading(place)


@pytest.fixture(autouse=True)
def _server(request):
    if "Database" in request.node.nodeid:
        DatabaseMachine.server = request.getfixturevalue("server")


def followed(machine, examples, steps):
    case = machine.TestCase
    case.settings = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    return case


TestLifeInDirectory = followed(LifeMachine, 40, 25)
TestLifeInMemory = followed(MemoryMachine, 40, 25)
TestLifeInDatabase = followed(DatabaseMachine, 6, 20)


@pytest.mark.slow
class TestLongLives:
    @pytest.mark.parametrize(
        ("machine", "examples", "steps"),
        [(LifeMachine, 1000, 50), (MemoryMachine, 1000, 50), (DatabaseMachine, 60, 50)],
    )
    def test_long_lives_in_a_database_and_elsewhere(self, server, machine, examples, steps):
        DatabaseMachine.server = server
        run_state_machine_as_test(machine, settings=followed(machine, examples, steps).settings)


BROKEN = {
    "the witness is not asked": (
        LifeMachine,
        lambda patch: patch.setitem(turn._STEPS, Phase.COMMITTED, lambda engine, _: engine.move("accept")),
    ),
    "a claimed episode is saved": (
        MemoryMachine,
        lambda patch: patch.setattr(Engine, "settle", lambda engine, act: None),
    ),
    "rows are fitted once more": (
        LifeMachine,
        lambda patch: patch.setattr(turn, "_fit", lambda *given: (twice(*given), real_fit(*given))),
    ),
}
real_fit = turn._fit


def twice(engine, episode):
    """Fit rows, and forget what came out."""
    rows, rewards = episode.rows.matrix(), episode.rewards()
    engine.fit.run(episode.plan, rows, *rewards, engine.known)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_life_is_found(monkeypatch, name):
    machine, break_it = BROKEN[name]
    break_it(monkeypatch)
    monkeypatch.setitem(turn._STEPS, Phase.CLAIMED, lambda *given: turn._fit(*given))
    quick = settings(
        max_examples=200, stateful_step_count=25, deadline=None, phases=[Generating.generate], database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    with pytest.raises((AssertionError, StoreError, pytest.fail.Exception)):
        run_state_machine_as_test(machine, settings=quick)
