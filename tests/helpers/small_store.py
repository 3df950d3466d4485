"""A small policy in a store, opened again and again, and cut off at its durable points."""

import sqlite3
from contextlib import closing, contextmanager

import numpy as np
import pytest
import scipy.sparse as sp

from flat_options import nested
from fliphat import FLIPHAT, Store
from fliphat.policies.engine import faults
from policy_model import DIM, GROWTH

FIRST = 3
OPTIONS = ("witness", "durability", "memory_limit", "retention", "reward_timeout", "users")


class Crash(BaseException):
    """The process is gone."""


def open_store(store, **changes):
    """A policy in a store; options of the store may be among the changes."""
    options = {name: changes[name] for name in OPTIONS if name in changes}
    rest = {name: value for name, value in changes.items() if name not in OPTIONS}
    arguments = {
        "dim": DIM,
        "sparsity": 1,
        "epsilon": 1.0,
        "delta": 0.01,
        "first_episode": FIRST,
        "growth": GROWTH,
    }
    return FLIPHAT(**nested(arguments | rest), store=Store(store, **options))


def kill(policy):
    """Let go of files and locks as the end of a process does: nothing is flushed, nothing is written."""
    policy._engine.close()


def twins(rng, sparse=False):
    """Contexts whose arms are all the same, so that the row is known even if the decision was lost."""
    row = rng.standard_normal(DIM).astype(np.float32)
    X = np.stack([row, row])
    return (sp.csr_array(X) if sparse else X), row


def points_of(monkeypatch, action):
    """The points an action passes, in order."""
    passed = []
    with monkeypatch.context() as patch:
        patch.setattr(faults, "reached", passed.append)
        action()
    return passed


def crash_at(monkeypatch, number, action):
    """Run an action and stop it at its `number`-th point."""
    count = iter(range(10**6))

    def reached(point):
        if next(count) == number:
            raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(faults, "reached", reached)
        with pytest.raises(Crash):
            action()


@contextmanager
def reader(path):
    """Somebody who reads the store's file all the time, as a backup or `fliphat verify` does."""
    with closing(
        sqlite3.connect(f"file:{path}/policy.sqlite3?mode=ro", uri=True, isolation_level=None)
    ) as one:
        one.execute("BEGIN")
        one.execute("SELECT count(*) FROM fliphat_rounds").fetchall()
        yield
