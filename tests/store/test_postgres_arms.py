"""Arms of a policy in a database: what several workers can get wrong when arms come and go."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fliphat import PrivateLinear
from fliphat.fit.dense import Dense
from fliphat.policies.store.postgres import worker as shared
from small_linear import DIM, FIRST, open_linear

ONES = np.ones(DIM) / 4


@pytest.fixture
def workers(server):
    url = server.new()
    made = [open_linear(url, ["a", "b"]), open_linear(url, ["a", "b"])]
    yield made
    for one in made:
        one.close()


def test_an_arm_that_one_worker_removed_is_played_by_none(workers):
    one, other = workers
    one.remove_arm("a")
    # The other worker has not looked since; its first try is not counted.
    assert {other.select(ONES).arm for _ in range(FIRST)} == {"b"}
    assert other.rounds == FIRST and other.arms == ("b",)
    one.add_arm("c"), other.add_arm("d")  # what the second adds does not undo the first
    assert one.arms == other.arms == ("b", "c", "d")
    found = {worker.select(ONES).arm for worker in workers * 30}
    assert found <= {"b", "c", "d"}


def test_a_retry_with_another_worker_gets_an_arm_that_it_never_heard_of(workers):
    one, other = workers
    one.add_arm("new"), one.remove_arm("a"), one.remove_arm("b")
    decision = one.select(ONES, key="k")
    assert decision.arm == "new" and other.select(ONES, key="k") == decision


def test_arms_that_change_at_once_all_change(workers):
    def add(number):
        workers[number % 2].add_arm(f"arm {number}")
        workers[number % 2].select(ONES)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(12)))
    assert set(workers[0].arms) == {"a", "b", *(f"arm {i}" for i in range(12))} == set(workers[1].arms)
    assert workers[0].rounds == 12


def test_a_fit_is_given_all_arms_of_its_rows_and_none_that_come_meanwhile(workers, monkeypatch):
    begun, go_on, slots, real = threading.Event(), threading.Event(), [], Dense.run_totals

    def run(self, plan, rows, *given):
        slots.append(self.table.slots)
        begun.set()
        assert go_on.wait(60)
        slots.append(self.table.slots)
        assert rows[:, -1].max() < slots[0]
        return real(self, plan, rows, *given)

    monkeypatch.setattr(Dense, "run_totals", run)
    monkeypatch.setattr(shared, "_LOOK_AGAIN", 0.0)
    one, other = workers
    other.add_arm("c")  # which the worker that fits hears of when it looks
    for _ in range(FIRST):
        other.update(other.select(ONES), 1.0)
    with ThreadPoolExecutor(1) as pool:
        opener = pool.submit(one.select, ONES)
        assert begun.wait(60)
        one.add_arm("d")  # another thread of the same worker
        ahead = [other.select(ONES) for _ in range(3)]
        assert {decision.episode for decision in ahead} == {1}
        go_on.set()
        assert opener.result().episode == 1
    assert slots == [3, 3] and len(one.history) == 1
    assert set(other.coefficients) == {"a", "b", "c", "d"}


@pytest.mark.parametrize("point", ["first", "second"])
def test_a_change_whose_answer_is_lost_is_not_made_twice(server, monkeypatch, point):
    import psycopg
    from psycopg import Connection

    url, lost, real = server.new(), [], Connection.execute
    with open_linear(url, ["a", "b"]) as policy:

        def execute(self, query, *given, **named):
            change = b"SET arms_version" in query and not lost
            if change and point == "first":
                lost.append(self.close())
                raise psycopg.OperationalError("the connection is lost")
            answer = real(self, query, *given, **named)
            if change:
                lost.append(self.close())
                raise psycopg.OperationalError("the connection is lost")
            return answer

        with monkeypatch.context() as patch:
            patch.setattr(Connection, "execute", execute)
            policy.add_arm("c")
        assert lost and policy.arms == ("a", "b", "c")
    with PrivateLinear.open(url) as again:
        assert again.arms == ("a", "b", "c")
