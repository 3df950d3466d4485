"""A policy in a database: what only several workers, or a server that fails, can get wrong."""

import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from fliphat import FLIPHAT
from fliphat.fit.iht.fit import IhtFit
from fliphat.policies import CopyError, StoreError
from fliphat.policies.engine import faults, lifecycle
from fliphat.policies.engine.each import Single
from fliphat.policies.engine.keeping import Release
from fliphat.policies.store import sql, tables
from fliphat.policies.store.postgres import connections
from fliphat.policies.store.postgres import worker as shared
from policy_model import DIM, GROWTH, Model, same
from small_store import FIRST, Crash, crash_at, kill, open_store, points_of, twins

ONES = np.ones((2, DIM), np.float32)


@pytest.fixture
def url(server):
    return server.new()


@pytest.fixture
def workers(url):
    """Two workers of one policy; what they play is learned from whoever played it."""
    opened = [open_store(url), open_store(url)]
    yield opened
    for worker in opened:
        worker.close()


class HeldFits:
    """A fit that waits until it is let go, in front of the one that remembers what it saw."""

    def __init__(self, monkeypatch, fits):
        self.begun, self.go_on = threading.Semaphore(0), threading.Event()

        def run(plan, rows, rewards, present, known):
            self.begun.release()
            assert self.go_on.wait(60)
            return fits(plan, rows, rewards, present, known)

        monkeypatch.setattr(IhtFit, "run", staticmethod(run))

    def wait(self):
        """Return when a fit has begun."""
        assert self.begun.acquire(timeout=60)


def table(server, url, query):
    with server.connect(url) as connection:
        return connection.execute(query).fetchall()


# Several workers


def test_workers_play_one_policy(workers, fits):
    rng, model = np.random.default_rng(0), Model(FIRST, growth=GROWTH)
    ids = []
    for i in range(30):
        one, other = workers[i % 2], workers[i % 3 % 2]
        X, row = twins(rng, sparse=i % 5 == 0)  # rows of one episode may come in both layouts
        decision = one.select(X, user=f"user {i % 25}", key=i)
        model.select(decision.id, row, True, i % 25)
        ids.append(decision)
        assert workers[0].select(X, user=f"user {i % 25}", key=i) == decision
        late = ids[i // 2]
        for given in {decision.id, late.id}:
            if model.awaits(given) or late.episode < other.episode:
                reward = float(np.float32(rng.standard_normal()))
                assert other.update(given, reward) == model.update(given, reward)
        assert {worker.rounds for worker in workers} == {model.played}
        assert {worker.late for worker in workers} == {model.late}
        assert workers[0].pending == model.pending() == workers[1].pending
    assert len({decision.id for decision in ids}) == 30
    assert len(fits.calls) == len(model.released) == 3
    for (_, seen, _), expected in zip(fits.calls, model.released, strict=True):
        assert same(seen, expected)
    assert [facts.estimate.to_dense().tolist() for facts in workers[0].history] == [
        facts.estimate.to_dense().tolist() for facts in workers[1].history
    ]
    last = workers[0].select(X, user="last")
    assert workers[0].update(last, 1.0)
    with pytest.raises(ValueError, match="a second one is refused"):
        workers[1].update(last, 1.0)


def test_a_users_rounds_are_counted_whoever_plays_them(url, fits):
    with (
        open_store(url, rounds_per_user=2, first_episode=4) as one,
        open_store(url, rounds_per_user=2, first_episode=4) as other,
    ):
        for worker in (one, other, one, other):
            worker.update(worker.select(ONES, user="a"), 1.0)
        other.select_batch(np.ones((3, 2, DIM), np.float32), users=["b", "a", "b"])
    assert fits.calls[0][1][2].tolist() == [True, True, False, False]


def test_what_the_first_worker_says_of_users_binds_all(url):
    with open_store(url) as one, open_store(url) as other:
        one.select(ONES, user="a")
        with pytest.raises(ValueError, match="user must be given in every round, as in the first"):
            other.select(ONES)
        with pytest.raises(ValueError, match="one kind"):
            other.select(ONES, user=1)
        assert other.rounds == 1 and other.guarantee.user_ids_checked


def test_threads_of_several_workers_get_rounds_of_their_own(workers):
    def play(i):
        worker = workers[i % 2]
        decision = worker.select(ONES, key=i % 40)
        return decision.id, i % 40 == i and worker.update(decision, 1.0)

    with ThreadPoolExecutor(8) as pool:
        played = list(pool.map(play, range(80)))
    assert len({identity for identity, _ in played}) == 40 == workers[0].rounds
    numbers = sorted(identity % 2**40 for identity, _ in played[:40])
    assert numbers == list(range(1, 41))  # no slot twice, none left out


def gathered(worker, calls, held):
    """Make calls that wait for one that is held, so that they are made as one; their results or errors."""
    combined, begun, go_on = held, threading.Event(), threading.Event()
    real = combined._call

    def slow(items):
        if not begun.is_set():
            begun.set()
            assert go_on.wait(60)
        return real(items)

    combined._call = slow
    with ThreadPoolExecutor(len(calls)) as pool:
        futures = [pool.submit(calls[0])]
        assert begun.wait(60)
        futures += [pool.submit(call) for call in calls[1:]]
        until = time.monotonic() + 60
        while len(combined._queue) < len(calls) - 1 and time.monotonic() < until:
            time.sleep(0.001)
        go_on.set()
        combined._call = real
        return [future.exception(60) or future.result(60) for future in futures]


def test_rounds_of_several_threads_that_are_one_call(url, fits, monkeypatch):
    with open_store(url, first_episode=8) as policy, open_store(url, first_episode=8) as other:
        first, taken = policy.select(ONES), other.select(ONES, key="taken")
        keys = [None, "a", "taken", None, "b", None]
        calls = [lambda key=key: policy.select(ONES, key=key) for key in keys]
        # One of them has a key that was played: the others are played nevertheless, and it gets its decision.
        database = policy._engine.database
        asked, real = iter([True] * 3), database.keys.get  # none of the keys was there when it was looked for
        monkeypatch.setattr(database.keys, "get", lambda key: None if next(asked, False) else real(key))
        found = gathered(policy, calls, policy._engine._combined_rounds)
        assert found[2] == taken and len({one.id for one in found}) == 6 and policy.rounds == 7
        assert policy.select(ONES, key="a") == found[1]
        # More than there is room for: each belongs to the episode it was counted in.
        found = gathered(policy, [lambda: policy.select(ONES)] * 4, policy._engine._combined_rounds)
        assert sorted(one.episode for one in found) == [0, 1, 1, 1]
        assert len({one.id for one in found}) == 4 and len(fits.calls) == 1 and first.episode == 0


def test_rounds_that_a_service_hands_over_are_one_call_and_wrong_ones_say_so(url, fits, monkeypatch):
    with open_store(url, first_episode=8) as policy:
        database, calls = policy._engine.database, []
        real = database.play
        monkeypatch.setattr(
            database,
            "play",
            lambda row, rounds, **given: calls.append(len(rounds)) or real(row, rounds, **given),
        )

        def play(*asked):
            results = [None] * len(asked)
            calls.clear()
            policy._select_each(list(asked), results)
            return results

        found = play(*[Single(ONES)] * 4, Single(ONES, key="a"))
        assert calls == [4, 1] and [one.id for one in found] == sorted({one.id for one in found})
        # One that is wrong is refused alone; the others are played, each by a call of its own.
        found = play(Single(ONES), Single(np.ones((2, DIM + 1), np.float32)), Single(ONES, user="a"))
        assert [isinstance(one, ValueError) for one in found] == [False, True, True] and calls == [1]
        # More than there is room for: each belongs to the episode it was counted in.
        assert policy.rounds == 6 and [one.episode for one in play(*[Single(ONES)] * 4)] == [0, 0, 1, 1]
        assert len(fits.calls) == 1


def test_rewards_of_several_threads_that_are_one_call(url):
    with open_store(url, first_episode=8) as policy:
        made = [policy.select(ONES) for _ in range(5)]
        ids = [made[0].id, made[1].id, made[1].id, 10**6, made[2].id, 2**70]
        calls = [lambda one=one: policy.update(one, 1.0) for one in ids]
        found = gathered(policy, calls, policy._engine._combined_rewards)
        assert [found[0], found[4]] == [True, True]
        assert sorted(map(str, found[1:3])) == [
            "True", "decision already has a reward, or was cancelled: a second one is refused"
        ]  # fmt: skip
        assert all("must be one that this policy made" in str(found[i]) for i in (3, 5))
        assert policy.pending == [made[3].id, made[4].id]


def test_an_episode_is_claimed_before_it_is_fitted_and_late_rewards_stay_out(workers, monkeypatch, fits):
    held = HeldFits(monkeypatch, fits)
    decisions = [workers[0].select(ONES) for _ in range(FIRST)]
    workers[0].update(decisions[0], 1.0)
    with ThreadPoolExecutor(1) as pool:
        opener = pool.submit(workers[0].select, ONES)
        held.wait()
        assert workers[1].update(decisions[1], 2.0) is False  # the fit has its rewards
        held.go_on.set()
        opener.result()
    assert fits.calls[0][1][2].tolist() == [True, False, False]
    assert workers[1].late == 1


def test_others_play_ahead_by_the_public_estimate_while_one_fits(workers, monkeypatch, fits):
    held = HeldFits(monkeypatch, fits)
    monkeypatch.setattr(shared, "_LOOK_AGAIN", 0.0)
    for _ in range(FIRST):
        workers[0].update(workers[0].select(ONES), 1.0)
    with ThreadPoolExecutor(2) as pool:
        opener = pool.submit(workers[0].select, ONES)
        held.wait()
        room = workers[1].remaining
        assert room == workers[1]._engine.fit.least_rows(1)
        ahead = [workers[1].select(ONES) for _ in range(room)]
        assert {one.episode for one in ahead} == {1} and not workers[1].history
        assert all(one.probability == 0.5 for one in ahead)  # nothing is public yet: a tie
        assert workers[1].update(ahead[0], 3.0)  # of the next episode: not late
        waiting = pool.submit(workers[1].select, ONES)  # beyond what is sure to belong to it: waits
        assert not waiting.done()
        held.go_on.set()
        last, after = opener.result(), waiting.result()
    assert {last.episode, after.episode} <= {1, 2} and len(
        {last.id, after.id, *(one.id for one in ahead)}
    ) == room + 2
    assert len(fits.of(0)) == 1 and fits.calls[0][1][2].all()
    for _ in range(2 * FIRST):
        workers[1].select(ONES)
    (_, (_, rewards, present), _) = fits.of(1)[0]
    assert rewards[0] == 3.0 and present.tolist() == [True] + [False] * (len(present) - 1)


def test_a_worker_that_ends_in_the_middle_of_a_fit_is_followed_by_another(workers, monkeypatch, fits):
    for _ in range(FIRST):
        workers[0].update(workers[0].select(ONES), 1.0)

    def killed(*_):
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(IhtFit, "run", staticmethod(killed))
        with pytest.raises(Crash):
            workers[0].select(ONES)
    assert not workers[1].history and workers[1].estimate.indices.size == 0
    workers[1].select(ONES)
    assert len(fits.calls) == 1 == len(workers[1].history) == len(workers[0].history)


def test_of_two_fits_of_one_episode_one_is_ever_seen(workers, monkeypatch, fits):
    # A worker that hangs longer than its lease is taken for dead, and comes back.
    monkeypatch.setattr(lifecycle, "LEASE", 0.0)
    monkeypatch.setattr(lifecycle, "HEARTBEAT", 60.0)  # it hangs: nothing is renewed
    held = HeldFits(monkeypatch, fits)
    for _ in range(FIRST):
        workers[0].update(workers[0].select(ONES), 1.0)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(workers[0].select, ONES)
        held.wait()
        second = pool.submit(workers[1].select, ONES)
        held.wait()
        held.go_on.set()
        assert {first.result().episode, second.result().episode} == {1}
    assert len(fits.of(0)) == 2
    seen = [worker.history[0].estimate.to_dense().tolist() for worker in workers]
    assert seen[0] == seen[1] and seen[0] in [call[2].to_dense().tolist() for call in fits.of(0)]
    assert len(workers[0].history) == 1


def test_a_fit_that_lasts_longer_than_its_lease_is_not_overtaken(workers, monkeypatch, fits):
    monkeypatch.setattr(lifecycle, "LEASE", 0.5)
    monkeypatch.setattr(lifecycle, "HEARTBEAT", 0.05)
    monkeypatch.setattr(shared, "_LOOK_AGAIN", 0.0)
    held = HeldFits(monkeypatch, fits)
    for _ in range(FIRST):
        workers[0].select(ONES)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(workers[0].select, ONES)
        held.wait()
        for _ in range(workers[1].remaining):
            workers[1].select(ONES)
        waits = pool.submit(workers[1].select, ONES)  # asks all the time whether the fit is its own now
        time.sleep(3 * lifecycle.LEASE)
        assert not waits.done() and not first.done()
        held.go_on.set()
        first.result(), waits.result()
    assert len(fits.of(0)) == 1


def test_a_worker_that_hangs_in_its_fit_is_overtaken_and_rounds_go_on_for_good(workers, monkeypatch, fits):
    monkeypatch.setattr(lifecycle, "LEASE", 0.3)
    monkeypatch.setattr(lifecycle, "HEARTBEAT", 60.0)  # nothing is renewed
    begun, go_on = threading.Event(), threading.Event()

    def run(*given):
        if not begun.is_set():  # the first fit alone
            begun.set()
            assert go_on.wait(60)
        return fits(*given)

    monkeypatch.setattr(IhtFit, "run", staticmethod(run))
    for _ in range(FIRST):
        workers[0].select(ONES)
    with ThreadPoolExecutor(1) as pool:
        hangs = pool.submit(workers[0].select, ONES)
        assert begun.wait(60)
        longest = 0.0
        for _ in range(10 * FIRST):
            before = time.monotonic()
            workers[1].select(ONES)
            longest = max(longest, time.monotonic() - before)
        seen = [one.estimate.to_dense().tolist() for one in workers[1].history]
        assert len(seen) >= 3 and longest < 5 + lifecycle.LEASE and not hangs.done()
        go_on.set()
        hangs.result()
    kept = [one.estimate.to_dense().tolist() for one in workers[0].history]
    assert kept[: len(seen)] == seen and len(fits.of(0)) == 2  # the late one was shown to nobody


def test_the_longest_wait_ends_with_a_word(workers, monkeypatch, fits):
    held = HeldFits(monkeypatch, fits)
    monkeypatch.setattr(shared, "LONGEST_WAIT", 0.05)
    for _ in range(FIRST):
        workers[0].select(ONES)
    with ThreadPoolExecutor(1) as pool:
        opener = pool.submit(workers[0].select, ONES)
        held.wait()
        for _ in range(workers[1].remaining):
            workers[1].select(ONES)
        with pytest.raises(StoreError, match=r"another worker has been fitting episode 0 for .* call again"):
            workers[1].select(ONES)
        held.go_on.set()
        opener.result()


# Being cut off


@pytest.mark.parametrize("rounds", [0, 1, FIRST, FIRST + 2])
def test_a_select_cut_off_anywhere(server, monkeypatch, fits, rounds):
    monkeypatch.setattr(lifecycle, "LEASE", 0.0)  # whoever ended is overtaken at once

    def prepare(place):
        policy, rng = open_store(place), np.random.default_rng(rounds)
        model = Model(FIRST, growth=GROWTH)
        for i in range(rounds):
            X, row = twins(rng)
            decision = policy.select(X, key=i)
            model.select(decision.id, row, True)
            policy.update(decision, float(row[0])), model.update(decision.id, float(row[0]))
        return policy, model, *twins(rng)

    policy, _, X, _ = prepare(server.new())
    points = points_of(monkeypatch, lambda: policy.select(X, key="new"))
    policy.close()
    steps = [point.split()[0] for point in points if point.endswith("durable")]
    # Where there is no room, the first try to play is in vain.
    assert steps == (["claim", "commit", "accept", "show", "close"] if rounds == FIRST else [])
    assert points[-1] == "played"
    for number, point in enumerate(points):
        fits.calls.clear()
        place = server.new()
        policy, model, X, row = prepare(place)
        crash_at(monkeypatch, number, lambda policy=policy, X=X: policy.select(X, key="new"))
        kill(policy)
        made = table(server, place, "SELECT count(*) FROM fliphat_episodes WHERE facts IS NOT NULL")[0][0]
        with open_store(place) as policy:
            committed = made > len(model.released)  # perhaps not shown yet
            before = len(fits.calls)
            decision = policy.select(X, key="new")  # the caller retries
            model.select(decision.id, row, True)
            assert policy.rounds == rounds + 1 == model.played, point
            assert len(policy.history) == len(model.released)
            assert (len(fits.calls) > before) == (rounds == FIRST and not committed), point
            if rounds >= FIRST:
                assert same(fits.of(0)[-1][1], model.released[0])
                visible = policy.history[0].estimate.to_dense().tolist()
                assert visible == fits.of(0)[-1][2].to_dense().tolist()
            assert policy.pending == model.pending()


def test_a_connection_cut_while_the_server_still_counts_its_round_counts_it_once(server, url, monkeypatch):
    import psycopg

    real, used = psycopg.Connection.execute, []

    def execute(connection, query, *given, **more):
        if "fliphat_count" in str(query):
            used.append(connection)
        return real(connection, query, *given, **more)

    def wait_for(count):
        query = (
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CALL%' AND wait_event_type = 'Lock'"
            " AND datname = current_database()"
        )
        until = time.monotonic() + 60
        while table(server, url, query)[0][0] < count:
            assert time.monotonic() < until
            time.sleep(0.01)

    policy = open_store(url)
    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    with ThreadPoolExecutor(1) as pool, server.connect(url) as holder:
        with holder.transaction():
            holder.execute("SELECT 1 FROM fliphat_episodes FOR UPDATE")
            played = pool.submit(policy.select, ONES)
            wait_for(1)
            with socket.socket(fileno=os.dup(used[0].pgconn.socket)) as line:
                line.shutdown(socket.SHUT_RDWR)
            wait_for(2)
        decision = played.result(60)
    assert table(server, url, "SELECT id, filled FROM fliphat_rounds, fliphat_episodes") == [(decision.id, 1)]
    policy.close()


@pytest.mark.parametrize("point", ["played", "rewarded", "claim durable", "commit durable"])
def test_a_connection_cut_after_the_commit_is_asked_about_not_repeated(url, monkeypatch, fits, point):
    import psycopg

    policy, cut = open_store(url), []

    def reached(name):
        if name == point and not cut:
            cut.append(name)
            raise psycopg.OperationalError("the connection is lost")

    def lose_answers(call):
        # As `run` meets it: the transaction is committed, and its answer never comes.
        with monkeypatch.context() as patch:
            patch.setattr(faults, "reached", reached)
            return call()

    decisions = [policy.select(ONES) for _ in range(FIRST - 1)]
    decisions.append(lose_answers(lambda: policy.select(ONES)))
    assert lose_answers(lambda: policy.update(decisions[0], 2.0)) is True
    last = lose_answers(lambda: policy.select(ONES))
    assert cut == [point] and policy.rounds == FIRST + 1
    assert len(fits.calls) == 1 == len(policy.history) and last.episode == 1
    assert fits.calls[0][1][1].tolist() == [2.0, 0.0, 0.0]
    policy.close()


def test_a_server_that_restarts_is_waited_for(monkeypatch, fits):
    from postgres_server import Server

    server = Server()
    try:
        policy = open_store(server.new())
        decision = policy.select(ONES)
        server.restart()
        assert policy.update(decision, 1.0)
        second = policy.select(ONES)
        server.stop()
        monkeypatch.setattr(connections, "PATIENCE", 0.2)
        with pytest.raises(StoreError, match=r"did not answer for 0\.2 seconds: nothing is lost, call again"):
            policy.select(ONES)
        server.start()
        assert policy.rounds == 2 and policy.pending == [second.id]
        policy.close()
    finally:
        server.close()


@pytest.mark.parametrize("statement", [b"to_regclass", b"fliphat_policy AS p", b"format"])
def test_a_server_that_restarts_while_a_store_is_looked_at(url, monkeypatch, statement):
    """What comes before the one moment that is read is asked again; nothing but a StoreError is raised."""
    import psycopg

    from fliphat.policies.store.inspect import inspect_path

    open_store(url).close()
    real, cut = psycopg.Connection.execute, []

    def cut_once(connection, query, *given, **more):
        if statement in query and not cut:
            cut.append(query)
            connection.close()
            raise psycopg.OperationalError("the connection is lost")
        return real(connection, query, *given, **more)

    monkeypatch.setattr(psycopg.Connection, "execute", cut_once)
    if statement == b"to_regclass":
        assert inspect_path(url)["rounds"] == 0
    else:
        with pytest.raises(StoreError, match="is not there any more"):
            inspect_path(url)
    assert cut and inspect_path(url)["rounds"] == 0


# Refusing


def test_a_database_that_is_read_only_or_full_loses_nothing(server, url):
    policy = open_store(url)
    first = policy.select(ONES)

    def refused(match):
        for call in (lambda: policy.select(ONES), lambda: policy.update(first, 123.25)):
            with pytest.raises(StoreError, match=match) as raised:
                call()
            assert "123" not in str(raised.value) and raised.value.__cause__ is None

    with server.connect(url) as admin:
        name = admin.info.dbname

        def read_only(on):
            admin.execute("SET default_transaction_read_only = off")
            admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {on}")
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

        read_only("on")
        refused("the database is read-only: this call did not happen, and nothing before it is lost")
        read_only("off")
        assert policy.rounds == 1 and policy.pending == [first.id]
        # As the server says it when a disk is full.
        admin.execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$"
        )
        for what in ("rounds", "rewards"):
            admin.execute(
                f"CREATE TRIGGER full_{what} BEFORE INSERT ON fliphat_{what} EXECUTE FUNCTION full_disk()"
            )
        refused("the database has no room left: this call did not happen, and nothing before it is lost")
        for what in ("rounds", "rewards"):
            admin.execute(f"DROP TRIGGER full_{what} ON fliphat_{what}")
    assert policy.rounds == 1 and policy.update(first, 1.0) and policy.select(ONES).episode == 0
    policy.close()


def test_ids_are_data_whatever_they_look_like(server, url):
    evil = "'; DROP TABLE fliphat_users; --"
    with open_store(url) as policy:
        decision = policy.select(ONES, user=evil, key=evil)
        assert policy.select(ONES, user=evil, key=evil) == decision
        assert policy.select(ONES, user="%s", key="\x00").id != decision.id
    assert table(server, url, "SELECT sum(rounds) FROM fliphat_users") == [(2,)]
    kept = table(server, url, "SELECT digest FROM fliphat_users UNION ALL SELECT digest FROM fliphat_keys")
    assert all(len(digest) == 16 for (digest,) in kept)  # no id is kept, only what stands for it


@pytest.mark.parametrize("identity", [-1, 0, 7, 2**40 + 1, 5 * 2**40 + 1, 2**62, 2**63, 2**100])
def test_unknown_ids_are_refused(url, identity):
    with open_store(url) as policy:
        policy.select(ONES)
        with pytest.raises(ValueError, match="decision must be one that this policy made"):
            policy.update(identity, 1.0)
        with pytest.raises(ValueError, match="decision must be one that this policy made"):
            policy.update_batch([1, identity], [1.0, 1.0])
        assert policy.pending == [1] and policy.late == 0


def test_a_wrong_address_is_said_at_once_and_without_the_password(server):
    with pytest.raises(StoreError, match="the database can't be reached") as raised:
        open_store(f"postgresql://fliphat:secret-word@127.0.0.1:{server.port}/nothing-here")
    assert "secret-word" not in str(raised.value)


def test_a_batch_too_long_for_what_others_left_is_refused(workers):
    workers[0].select(ONES)
    with pytest.raises(ValueError, match=r"at most policy\.remaining = 2 rounds, got 3"):
        workers[1].select_batch(np.ones((3, 2, DIM), np.float32))
    assert workers[1].rounds == 1


def test_a_policy_in_a_database_is_not_saved_to_a_file(url, tmp_path):
    with open_store(url) as policy:
        with pytest.raises(StoreError, match="other workers play it"):
            policy.save(tmp_path / "file")
        assert not list(tmp_path.iterdir()) and policy.select(ONES).id == 1


def test_a_closed_worker_plays_no_more_and_others_do(workers):
    workers[0].close()
    with pytest.raises(CopyError, match="was closed"):
        workers[0].select(ONES)
    assert workers[1].select(ONES).episode == 0 and workers[0].rounds == 0


def test_a_store_opens_with_the_arguments_it_was_made_with(url):
    open_store(url, epsilon=2.5).close()
    with FLIPHAT.open(url) as policy:
        assert policy.guarantee.epsilon == 2.5
    with pytest.raises(StoreError, match=r"epsilon was 2\.5, got 1\.0"):
        open_store(url)


def test_a_worker_of_another_version_is_refused_while_others_play(server, url, monkeypatch):
    """There is no upgrade in place: the database is of one format, and only its workers get in."""
    with open_store(url) as policy:
        policy.select(ONES)
        for version, words in (
            (tables.FORMAT + 1, "an earlier version"),
            (tables.FORMAT - 1, "a newer version"),
        ):
            with monkeypatch.context() as patched:
                patched.setattr(tables, "FORMAT", version)
                with pytest.raises(StoreError, match=words):
                    open_store(url)
            policy.select(ONES)
        assert policy.rounds == 3 and table(server, url, "SELECT format FROM fliphat_policy") == [
            (tables.FORMAT,)
        ]
        with open_store(url) as other:  # one of the same version goes on
            assert other.rounds == 3


def test_schemas_of_one_database_hold_policies_of_their_own(server, url):
    with server.connect(url) as admin:
        admin.execute("CREATE SCHEMA shop")
    with open_store(url) as one, open_store(url + "?options=-csearch_path%3Dshop", epsilon=2.0) as other:
        one.select(ONES)
        assert (one.rounds, other.rounds) == (1, 0)


# Keeping and forgetting


@pytest.mark.parametrize("durability", ["full", "batch"])
def test_a_round_is_on_disk_when_it_is_told(server, url, durability):
    behind = []
    with open_store(url, durability=durability) as policy, server.connect(url) as look:
        for _ in range(20):
            policy.select(ONES)
            query = "SELECT pg_current_wal_insert_lsn() - pg_current_wal_flush_lsn()"
            behind.append(int(look.execute(query).fetchone()[0]))
        flushed = []
        for _ in range(3):
            policy.flush()
            flushed.append(int(look.execute(query).fetchone()[0]))
    # Now and then the server itself writes a line that nobody waits for.
    assert min(flushed) == 0
    ahead = np.count_nonzero(behind)  # the control: "batch" runs ahead
    assert ahead <= 2 if durability == "full" else ahead >= 10


def files_with(server, secret):
    with server.connect() as admin:
        admin.execute("CHECKPOINT")
    files = (file for file in (server.directory / "data" / "base").rglob("*") if file.is_file())
    return [file.name for file in files if secret in file.read_bytes()]


@pytest.mark.parametrize("sparse", [False, True])
def test_forgotten_rows_are_gone_from_the_tables_files_and_released_ones_from_the_tables(
    server, url, fits, sparse
):
    def row(number):
        X = np.full((2, DIM), np.float32(number))
        return (sp.csr_array(X) if sparse else X), X[0].tobytes()

    with open_store(url) as policy:
        X, secret = row(321.123)
        decision = policy.select(X)
        policy.update(decision, 1.0)
        assert files_with(server, secret)  # the search can find it
        policy.forget()
        assert not files_with(server, secret)
        with pytest.raises(ValueError, match="already has a reward"):
            policy.update(decision, 1.0)
        X, secret = row(77.125)
        for _ in range(FIRST - 1):
            policy.update(policy.select(X), 1.0)
        assert files_with(server, secret)
        policy.select(ONES)
        assert fits.calls[0][1][2].tolist() == [False, True, True]
    assert table(server, url, "SELECT count(*) FROM fliphat_rounds WHERE round <= 3") == [(0,)]


def test_psycopg_is_imported_by_such_a_store_alone():
    code = (
        "import sys, fliphat, fliphat.policies.live, tempfile\n"
        "fliphat.FLIPHAT(dim=4, sparsity=1, epsilon=1.0, delta=0.01, store=tempfile.mkdtemp()).close()\n"
        "assert 'psycopg' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_fit_that_read_a_row_before_it_was_forgotten_is_never_committed(workers, monkeypatch, fits):
    held = HeldFits(monkeypatch, fits)
    for _ in range(FIRST):
        workers[0].update(workers[0].select(ONES, user=workers[0].rounds), 1.0)
    with ThreadPoolExecutor(1) as pool:
        opener = pool.submit(workers[0].select, ONES, user=99)
        held.wait()
        assert workers[1].forget(user=1) == 1  # between the fit's reading and its commit
        held.go_on.set()
        opener.result()
    seen = [present.tolist() for _, (_, _, present), _ in fits.of(0)]
    assert seen == [[True, True, True], [True, False, True]]
    visible = workers[1].history[0].estimate.to_dense().tolist()
    assert visible == fits.of(0)[1][2].to_dense().tolist()


def test_rows_and_rewards_are_read_as_they_are_at_one_moment(workers, monkeypatch, fits):
    for _ in range(FIRST):
        workers[0].update(workers[0].select(ONES, user=workers[0].rounds), 1.0)
    for name in ("_CHUNK", "_FEWEST"):
        monkeypatch.setattr(sql, name, 1)  # one row at a time
    monkeypatch.setattr(workers[1]._engine.database, "_rewrite", lambda: None)  # which waits for readers
    forgotten = []

    def reached(point):
        if point == "rows read" and not forgotten:
            forgotten.append(workers[1].forget(user=2))

    monkeypatch.setattr(faults, "reached", reached)
    workers[0].select(ONES, user=99)
    (_, (X, _, present), _), (_, (_, _, again), _) = fits.of(0)
    assert X.all() and present.all()  # what was forgotten between two reads is there, whole
    assert again.tolist() == [True, True, False]  # and that fit was never committed
    assert len(workers[1].history) == 1


def test_a_reward_after_forget_and_one_that_races_a_claim(workers, monkeypatch, fits):
    first, second, third = (workers[0].select(ONES, user=i) for i in range(FIRST))
    assert workers[1].forget(user=0) == 1
    assert workers[1].update(first, 5.0)  # taken, and not learned from
    assert workers[1].update(second, 2.0)
    claimed = []

    def reached(point):
        if point == "claim written":  # claimed, and not yet committed: the reward must wait, and is late
            claimed.append(pool.submit(workers[1].update, third, 3.0))
            time.sleep(0.2)
            assert not claimed[0].done()

    with ThreadPoolExecutor(1) as pool, monkeypatch.context() as patch:
        patch.setattr(faults, "reached", reached)
        workers[0].select(ONES, user=99)
        assert claimed[0].result() is False
    assert fits.calls[0][1][2].tolist() == [False, True, False] and workers[0].late == 1


def test_a_second_commit_is_refused_after_the_first_was_seen(workers, fits):
    for _ in range(FIRST):
        workers[0].select(ONES)
    database = workers[0]._engine.database
    life = database.step(0, "claim", next_room=1, owner="a", lease=0.0)
    again = database.step(0, "claim", owner="b", lease=60.0)  # overtaken
    assert again.fence == life.fence + 1
    release = Release({"first_round": 1, "rounds": 3}, np.zeros(0, np.int64), np.zeros(0), {}, "m", 6)
    with pytest.raises(lifecycle.StepRefused):
        database.step(0, "commit", release=release, fence=life.fence)  # too late
    database.step(0, "let_go", fence=again.fence)
    workers[1].select(ONES)
    seen = workers[1].history[0].estimate.to_dense().tolist()
    with pytest.raises(lifecycle.StepRefused):
        database.step(0, "commit", release=release, fence=again.fence)
    assert workers[0].history[0].estimate.to_dense().tolist() == seen


def test_a_reader_of_the_tables_holds_up_no_release(server, url, fits):
    with open_store(url) as policy, server.connect(url) as reader:
        for _ in range(FIRST):
            policy.select(ONES)
        reader.execute("BEGIN")
        reader.execute("LOCK TABLE fliphat_rounds, fliphat_rewards, fliphat_episodes IN ACCESS SHARE MODE")
        policy.select(ONES)  # releases, and drops the rows, while somebody reads
        assert len(policy.history) == 1
        reader.execute("ROLLBACK")


def test_first_rounds_with_and_without_ids_do_not_mix(server, fits):
    """Some threads give an id and some do not, or ids of two kinds: one of them decides for all."""
    for number in range(6):
        url = server.new()
        with open_store(url, first_episode=40) as one, open_store(url, first_episode=40) as other:
            users = [None, "1"] if number % 2 else [1, "1"]

            def play(i, one=one, other=other, users=users):
                try:
                    (one, other)[i // 2 % 2].select(ONES, user=users[i % 2])
                except ValueError:
                    return None
                return users[i % 2]

            with ThreadPoolExecutor(8) as pool:
                played = set(pool.map(play, range(8)))
        owners = table(
            server, url, "SELECT count(DISTINCT owner IS NULL), count(DISTINCT owner) FROM fliphat_rounds"
        )
        assert owners[0][0] == 1 and owners[0][1] <= 1, played
