"""Numbers that docs/durability.md and docs/serving.md promise, measured where they are made."""

import re
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from fliphat import FLIPHAT, Iht, Store
from fliphat.policies.engine import lifecycle
from fliphat.policies.engine.each import Single
from fliphat.policies.store import sql
from fliphat.policies.store.postgres import connections, worker
from small_store import open_store

DOCS = Path(__file__).parents[2] / "docs"
DURABILITY, SERVING = (
    " ".join((DOCS / name).read_text(encoding="utf-8").split()) for name in ("durability.md", "serving.md")
)


def promised(page, words):
    """The number that a page has at this place."""
    (found,) = re.findall(re.escape(words).replace(r"\#", r"([\d ]*\d)"), page)
    return int(found.replace(" ", ""))


@pytest.mark.parametrize("name", ["lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"])
def test_sessions_wait_no_longer_than_the_page_says(server, name):
    with open_store(server.new()) as policy, policy._engine.database._connections.one() as connection:
        (told,) = connection.execute(f"SELECT current_setting('{name}')").fetchone()
    seconds = int(told[:-1]) if told.endswith("s") else 60 * int(told.removesuffix("min"))
    assert seconds == promised(DURABILITY, f"`{name}` (# s")


def test_waits_are_as_long_as_the_page_says():
    assert connections._ALIVE["tcp_user_timeout"] == 1000 * promised(DURABILITY, "`tcp_user_timeout` (# s)")
    assert promised(DURABILITY, "and a lease (# seconds, renewed every second") == lifecycle.LEASE
    assert lifecycle.HEARTBEAT == 1.0
    assert promised(DURABILITY, "a server that restarts, is waited for, # seconds") == connections.PATIENCE
    assert promised(DURABILITY, "After # seconds of waiting `select` raises") == worker.LONGEST_WAIT
    assert sql.KEYS_LAST == 3600 and "until an hour after its episode's estimate was released" in SERVING


def test_the_room_to_play_ahead_is_the_pages():
    policy = FLIPHAT(dim=4, sparsity=1, epsilon=1.0, delta=1e-6, fit=Iht(growth=1.25), first_episode=100_000)
    room = promised(DURABILITY, "and growth 1.25 that is room for # rounds before anyone waits")
    assert policy._engine.fit.least_rows(1) == room


def bytes_each(path, table, count):
    """Bytes of the file that a row of a table takes."""
    connection = sqlite3.connect(path / "policy.sqlite3")
    try:
        ((rows, size),) = connection.execute(
            f"SELECT (SELECT count(*) FROM {table}), sum(pgsize) FROM dbstat WHERE name = '{table}'"
        ).fetchall()
    finally:
        connection.close()
    assert rows == count
    return size / rows


def test_a_user_and_a_key_take_no_more_than_the_page_says(tmp_path):
    count = 4000
    made = {"dim": 4, "sparsity": 1, "epsilon": 1.0, "delta": 1e-6, "first_episode": 500}
    with FLIPHAT(**made, store=Store(tmp_path / "s", durability="group")) as policy:
        contexts = np.ones((3, 4), np.float32)
        for first in range(0, count, 500):
            asked = [Single(contexts, f"user {one}", f"key {one}") for one in range(first, first + 500)]
            policy._select_each(asked, [None] * len(asked))
            policy.flush()
    try:
        user, key = (bytes_each(tmp_path / "s", f"fliphat_{name}", count) for name in ("users", "keys"))
    except sqlite3.OperationalError:
        pytest.skip("this SQLite was built without dbstat")
    assert user <= promised(SERVING, "a user takes # bytes at most") == 40
    assert key <= promised(SERVING, "a key # while it is kept")
