"""Four workers on a real server: killed a hundred times, their server ten times, their connections at random.

No acknowledged round or reward is lost, no episode is released twice or with two values, no round is in two
episodes. A trigger of the test keeps what each release was fitted to, because a release drops it.
"""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from fliphat.policies.engine import faults
from postgres_child import make
from postgres_server import Server

CHILD = Path(__file__).parents[1] / "helpers" / "postgres_child.py"
KILLS, RESTARTS, WORKERS = 100, 10, 4

KEEP = """
CREATE TABLE kept (episode integer, slot bigint, id bigint, reward double precision);
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO kept SELECT episode, OLD.round, OLD.id, (SELECT reward FROM fliphat_rewards WHERE round = OLD.round)
        FROM fliphat_episodes WHERE first_round <= OLD.round ORDER BY episode DESC LIMIT 1;
    RETURN OLD;
END $$;
CREATE TRIGGER keep BEFORE DELETE ON fliphat_rounds FOR EACH ROW EXECUTE FUNCTION keep();
"""


class Worker:
    """A process that plays; what it said is in `lines`."""

    def __init__(self, url, seed, lines):
        self.process = subprocess.Popen(
            [sys.executable, str(CHILD), url, str(seed)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.lines, self.said = lines, queue.Queue()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            if line.endswith(b"\n"):  # a line that was cut off was not heard
                self.lines.append(line.decode().split())
                self.said.put(1)

    def kill(self):
        assert self.process.poll() is None, self.process.stderr.read().decode()
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.reader.join()
        self.process.stdout.close(), self.process.stderr.close()


def check(said, kept, live, released):
    """Compare what workers acknowledged with what the database has; returns counts."""
    rows = kept + live
    assert len({identity for _, _, identity, _ in rows}) == len(rows), "a round is in two episodes"
    assert len({(episode, slot) for episode, slot, _, _ in rows}) == len(rows), "two rounds share a slot"
    have = {identity: (episode, reward) for episode, _, identity, reward in rows}
    shown, counts = dict(released), Counter()
    for word, *rest in said:
        counts[word] += 1
        if word == "shown":
            assert shown.get(int(rest[0])) == rest[1], "an episode was released with two values"
        elif word == "played":
            assert have.get(int(rest[0]), (None,))[0] == int(rest[1]), "an acknowledged round was lost"
        elif word == "rewarded":
            assert have[int(rest[0])][1] == float(rest[1]), "an acknowledged reward was lost"
    assert all(count == 20 for count in Counter(episode for episode, *_ in kept).values())
    assert sorted({episode for episode, *_ in kept}) == list(range(len(released)))
    return counts


def of_database(server, url):
    with server.connect(url) as connection:
        kept = connection.execute("SELECT * FROM kept").fetchall()
        live = connection.execute(
            "SELECT e.episode, a.round, a.id, b.reward FROM fliphat_rounds AS a JOIN fliphat_episodes AS e"
            " ON a.round >= e.first_round AND a.round < e.first_round + e.filled"
            " LEFT JOIN fliphat_rewards AS b ON b.round = a.round"
        ).fetchall()
        released = [
            (episode, bytes(indices).hex() + bytes(numbers).hex())
            for episode, indices, numbers in connection.execute(
                "SELECT episode, indices, numbers FROM fliphat_episodes WHERE facts IS NOT NULL"
            ).fetchall()
        ]
    return kept, live, released


def test_a_server_that_crashes_between_the_steps_of_a_release(monkeypatch):
    """Only the commit of a release is waited for; a step that a crash undoes is taken again, and what somebody may
    have seen is what stays: the bits that were committed, whatever else is fitted."""
    server = Server(wal_writer_delay="10s")  # or it would write steps that nobody waited for
    try:
        undone = {}
        for step in ("claim", "commit", "accept", "show", "close"):
            url, crashed = server.new(), []
            policy = make(url)

            def episode(url=url):
                with server.connect(url) as connection:
                    return connection.execute(
                        "SELECT phase, numbers FROM fliphat_episodes WHERE episode = 0"
                    ).fetchone()

            def reached(point, step=step, crashed=crashed, episode=episode):
                if point == f"{step} durable" and not crashed:
                    crashed.append(episode())
                    server.restart(signal.SIGQUIT)
                    crashed.append(episode())

            while not policy.history:
                if policy.remaining == 1:  # the last round of the episode is on disk
                    policy.select(np.ones((2, policy._settings.dim)))
                    monkeypatch.setattr(faults, "reached", reached)
                policy.select(np.ones((2, policy._settings.dim)))
            (before, seen), (after, kept) = crashed
            undone[step] = before != after
            assert policy.rounds == 21 and len(policy.history) == 1
            phase, stayed = episode()
            assert (
                phase in ("shown", "closed") and bytes(stayed) == policy.history[0].estimate.values.tobytes()
            )
            if before != "claimed":
                assert seen == kept == stayed, step
            monkeypatch.setattr(faults, "reached", lambda point: None)
            policy.close()
        # The control: steps are lost, and the one that matters is not.
        assert undone == {"claim": True, "commit": False, "accept": True, "show": True, "close": True}
    finally:
        server.close()


@pytest.mark.slow
def test_kills_restarts_and_cuts():
    server, rng, said = Server(), np.random.default_rng(0), []
    workers, cuts = [], 0
    try:
        url = server.new()
        make(url).close()
        with server.connect(url) as connection:
            connection.execute(KEEP)
        workers = [Worker(url, seed, said) for seed in range(WORKERS)]
        for kill in range(KILLS):
            which = int(rng.integers(WORKERS))
            # After a number of lines, not a time: on a busy machine a time would meet a worker that starts.
            for _ in range(int(rng.integers(1, 40))):
                workers[which].said.get(timeout=120)
            if kill % (KILLS // RESTARTS) == 5:
                server.restart(signal.SIGINT if kill % 20 == 5 else signal.SIGQUIT)  # orderly, or a crash
            if kill % 3 == 0:
                with server.connect(url) as connection:
                    cuts += connection.execute(
                        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                    ).fetchone()[0]
            workers[which].kill()
            workers[which] = Worker(url, WORKERS + kill, said)
        for worker in workers:
            worker.said.get(timeout=120)
        time.sleep(0.5)
        for worker in workers:
            worker.kill()
        workers = []
        time.sleep(0.5)  # sessions of killed workers end
        counts = check(said, *of_database(server, url))
        releases = len(of_database(server, url)[2])
        print(f"{KILLS} kills, {RESTARTS} restarts, {cuts} sessions cut: {dict(counts)}, {releases} releases")
        assert counts["played"] > 500 and releases > 20 and cuts > 20
    finally:
        for worker in workers:
            worker.kill()
        server.close()


@pytest.mark.parametrize(
    ("said", "kept", "complaint"),
    [
        ([["played", "99", "0"]], [], "round was lost"),
        ([["played", "1", "1"]], [], "round was lost"),
        ([["rewarded", "1", "2.0"]], [], "reward was lost"),
        ([["shown", "0", "bb"]], [], "two values"),
        ([], [(0, 3, 1, None)], "in two episodes"),
        ([], [(0, 0, 70, None)], "share a slot"),
    ],
)
def test_the_check_catches(said, kept, complaint):
    rounds = [(0, slot, slot + 1, 1.0) for slot in range(20)]
    check([["played", "1", "0"], ["rewarded", "1", "1.0"], ["shown", "0", "aa"]], rounds, [], [(0, "aa")])
    with pytest.raises(AssertionError, match=complaint):
        check(said, rounds + kept, [], [(0, "aa")])
