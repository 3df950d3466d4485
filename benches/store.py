"""Rounds a second into a directory's store, beside bare inserts of the same rows into SQLite, in turns.

Three ways of playing, d = 100 and 3 arms: rounds one by one, each on disk when `select` returns; groups of 43
that share a sync, as a server's requests do; and batches of 256. A bare insert writes the number and the row
of a round, with the same write-ahead log and the same syncs, and nothing else: no choice of an arm, no
checksum, no count. What counts is the ratio of both in one turn, and the processor time of each.

    python benches/store.py [--turns 5] [--rounds 1000]
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fliphat import FLIPHAT, Store
from fliphat.policies.engine.each import Single

DIM, ARMS, GROUP, BATCH = 100, 3, 43, 256
KINDS = {"single rounds": 1, f"groups of {GROUP}": GROUP, f"batches of {BATCH}": BATCH}


def ours(path: Path, size: int) -> tuple[Callable[[], object], Callable[[], None]]:
    """A call that plays `size` rounds, durable when it returns, and what ends it."""
    place = Store(path, durability="group" if size == GROUP else "full")
    policy = FLIPHAT(
        dim=DIM, sparsity=5, epsilon=1.0, delta=1e-6, first_episode=10_000_000, seed=0, store=place
    )
    contexts = np.random.default_rng(0).standard_normal((BATCH, ARMS, DIM)).astype(np.float32)

    def play() -> object:
        if size == 1:
            return policy.select(contexts[0])
        if size == BATCH:
            return policy.select_batch(contexts)
        policy._select_each([Single(one) for one in contexts[:size]], [None] * size)
        return policy.flush()

    return play, policy.close


def bare(path: Path, size: int) -> tuple[Callable[[], object], Callable[[], None]]:
    """The same for inserts and nothing else."""
    path.mkdir()
    connection = sqlite3.connect(path / "bare", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE rounds (round INTEGER PRIMARY KEY, numbers BLOB)")
    row, number = os.urandom(4 * DIM), 0

    def insert() -> None:
        nonlocal number
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO rounds VALUES (?, ?)", [(number + i, row) for i in range(size)])
        connection.execute("COMMIT")
        number += size

    return insert, connection.close


def measured(made: Callable[..., tuple[Callable[[], object], Callable[[], None]]], size: int, calls: int):
    """Rounds a second, and microseconds of processor time a round."""
    with tempfile.TemporaryDirectory() as directory:
        call, close = made(Path(directory, "store"), size)
        call()
        began, used = time.perf_counter(), time.process_time()
        for _ in range(calls):
            call()
        seconds, used = time.perf_counter() - began, time.process_time() - used
        close()
    return calls * size / seconds, 1e6 * used / (calls * size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=1000, help="calls of one round; a tenth of larger ones")
    given = parser.parse_args()
    for name, size in KINDS.items():
        calls = given.rounds if size == 1 else max(1, given.rounds // 10)
        turns = [(measured(ours, size, calls), measured(bare, size, calls)) for _ in range(given.turns)]
        rate, used = (statistics.median(one[0][i] for one in turns) for i in range(2))
        bare_rate, bare_used = (statistics.median(one[1][i] for one in turns) for i in range(2))
        ratio = statistics.median(one[0][0] / one[1][0] for one in turns)
        print(
            f"{name}: {rate:,.0f} rounds/s (best {max(one[0][0] for one in turns):,.0f}), {used:.1f} us CPU; "
            f"bare inserts {bare_rate:,.0f}/s, {bare_used:.1f} us; {ratio:.0%} of them"
        )


if __name__ == "__main__":
    main()
