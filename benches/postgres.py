"""Rounds a second of workers on one PostgreSQL server, and what `select` takes while another worker fits.

python benches/postgres.py [--workers 4] [--callers 4] [--seconds 10] [--rows 100000 --dim 400]

Everything runs on this machine, the server too, which is started for it and syncs every commit.
A round is a `select` and an `update`; its time is that of both. Processor time a round, of the workers and of
the server, is printed too: other work on the machine moves it less than rates.
"""

import argparse
import multiprocessing
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))
sys.path.insert(0, str(Path(__file__).parent))

from fliphat import FLIPHAT, Iht
from postgres_server import Server


def make(url, dim, first):
    return FLIPHAT(
        dim=dim, sparsity=10, epsilon=1.0, delta=0.01, fit=Iht(growth=1), first_episode=first, store=url
    )


def play(url, dim, first, callers, ready, start, until, out, update=True, between=0.0):
    """One worker: `callers` threads play until a time, and report when each round began and what it took."""
    policy = make(url, dim, first)
    contexts = np.random.default_rng().standard_normal((5, dim)).astype(np.float32)
    policy.select(contexts)
    rows = [[] for _ in range(callers)]

    def call(mine):
        ready.release()
        start.wait()
        while True:
            begun = time.monotonic()
            if begun > until.value:
                return
            decision = policy.select(contexts)
            selected = time.monotonic()
            if update:
                policy.update(decision, 0.5)
            mine.append((begun, selected - begun, time.monotonic() - begun))
            if between:
                time.sleep(between)

    threads = [threading.Thread(target=call, args=(mine,)) for mine in rows]
    for thread in threads:
        thread.start()
    start.wait()
    spent = time.process_time()
    for thread in threads:
        thread.join()
    out.put(([row for mine in rows for row in mine], time.process_time() - spent))


def server_cpu(server):
    """Processor time of a server and of all its processes so far, those that ended included."""
    total, ticks = 0, os.sysconf("SC_CLK_TCK")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(process.name) == server.process.pid:
            total += sum(map(int, fields[11:15]))
        elif int(fields[1]) == server.process.pid:
            total += sum(map(int, fields[11:13]))
    return total / ticks


def run(url, dim, first, workers, callers, seconds, **given):
    context = multiprocessing.get_context("spawn")
    ready, start = context.Semaphore(0), context.Event()
    until, out = context.Value("d", float("inf")), context.Queue()
    processes = [
        context.Process(target=play, args=(url, dim, first, callers, ready, start, until, out), kwargs=given)
        for _ in range(workers)
    ]
    for process in processes:
        process.start()
    for _ in range(workers * callers):
        ready.acquire()
    until.value = time.monotonic() + seconds
    start.set()
    told = [out.get() for _ in processes]
    for process in processes:
        process.join()
    return np.array([row for rows, _ in told for row in rows]), sum(spent for _, spent in told)


def told(milliseconds):
    median, high, most = np.percentile(milliseconds, [50, 99, 100])
    return f"median {median:.1f}, p99 {high:.1f}, longest {most:.1f} ms"


def throughput(server, workers, callers, seconds, dim=100):
    # One episode holds all of it: what a release takes is measured below.
    url, before = server.new(), server_cpu(server)
    rows, spent = run(url, dim, 1_000_000, workers, callers, seconds)
    served = server_cpu(server) - before
    print(
        f"{workers} workers of {callers} callers, d = {dim}: {len(rows) / seconds:.0f} rounds a second; "
        f"a round {told(1000 * rows[:, 2])}; select {told(1000 * rows[:, 1])}; "
        f"CPU a round {1e6 * spent / len(rows):.0f} us in workers, "
        f"{1e6 * served / len(rows):.0f} us in the server"
    )


def bare(url, size, ready, start, until, out, callers):
    """One process whose threads insert rows of so many bytes, each in a transaction of its own."""
    import psycopg

    counts = [0] * callers

    def call(place):
        row = os.urandom(size)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.prepare_threshold = 0
            ready.release()
            start.wait()
            while time.monotonic() < until.value:
                connection.execute("INSERT INTO bare (numbers) VALUES (%b)", (row,))
                counts[place] += 1

    threads = [threading.Thread(target=call, args=(place,)) for place in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    out.put(sum(counts))


def inserts(server, workers, callers, seconds, size):
    """Return rows a second of as many processes and threads that only insert."""
    url = server.new()
    with server.connect(url) as admin:
        admin.execute("CREATE TABLE bare (id bigserial PRIMARY KEY, numbers bytea NOT NULL)")
    context = multiprocessing.get_context("spawn")
    ready, start = context.Semaphore(0), context.Event()
    until, out = context.Value("d", float("inf")), context.Queue()
    given = (url, size, ready, start, until, out, callers)
    processes = [context.Process(target=bare, args=given) for _ in range(workers)]
    for process in processes:
        process.start()
    for _ in range(workers * callers):
        ready.acquire()
    until.value = time.monotonic() + seconds
    start.set()
    counts = [out.get() for _ in processes]
    for process in processes:
        process.join()
    return sum(counts) / seconds


def behind_http(server, workers, clients, seconds, dim):
    """Print rounds a second of `fliphat serve` with workers, JSON bodies, beside bare inserts in turns."""
    import asyncio
    import contextlib

    import serve as http

    requests, _ = http.requests_of(dim)["json"]
    shares, times, rates = [], [], []
    with contextlib.ExitStack() as stack:
        ours = http.Server()
        new = ["--dim", str(dim), "--sparsity", "5", "--epsilon", "1", "--delta", "1e-6"]
        command = ["-c", http.SERVE, "serve", server.new(), "--port", str(ours.port), *new]
        stack.enter_context(ours.started([*command, "--workers", str(workers)]))
        time.sleep(3)  # all workers are there
        for _ in range(3):
            plain = inserts(server, workers, 4, seconds, 4 * dim)
            http.SECONDS = seconds
            rate, work = asyncio.run(http.load(ours.port, requests, 10**9, clients))
            rates.append(rate)
            shares.append(rate / plain)
            times += work.times
            if work.failed:
                raise SystemExit(f"{work.failed} requests failed")
    print(
        f"behind HTTP, {workers} workers, JSON, d = {dim}, {clients} clients: "
        f"{np.median(rates):,.0f} rounds a second, {np.median(shares):.0%} of bare inserts "
        f"(best turn {max(shares):.0%}); {told(1000 * np.array(times))}"
    )


def during_a_fit(server, count, dim):
    url = server.new()
    policy = make(url, dim, count)
    rng = np.random.default_rng(0)
    while policy.remaining != count or policy.rounds == 0:
        size = min(2000, count - policy.rounds)
        decisions = policy.select_batch(rng.standard_normal((size, 1, dim)).astype(np.float32))
        policy.update_batch(decisions, rng.standard_normal(size))
        if policy.rounds == count:
            break
    spans = []

    def release():
        time.sleep(6)
        begun = time.monotonic()
        policy.select(np.ones((5, dim), np.float32))
        spans.append((begun, time.monotonic()))

    # The two others may not be first at the full episode: they begin once it is claimed.
    thread = threading.Thread(target=release)
    context = multiprocessing.get_context("spawn")
    start, until, out = context.Event(), context.Value("d", 0.0), context.Queue()
    until.value = float("inf")
    thread.start()
    others = [context.Process(target=late_play, args=(url, dim, count, start, until, out)) for _ in range(2)]
    for process in others:
        process.start()
    time.sleep(6.15)
    start.set()
    thread.join()
    until.value = time.monotonic() + 1
    rows = np.array([row for _ in others for row in out.get()])
    for process in others:
        process.join()
    (begun, ended) = spans[0]
    within = rows[(rows[:, 0] + rows[:, 1] > begun) & (rows[:, 0] < ended)]
    print(
        f"a select that fits {count} x {dim}: {ended - begun:.2f} s; "
        f"{len(within)} of two other workers meanwhile: {told(1000 * within[:, 1])}"
    )


def late_play(url, dim, first, start, until, out):
    policy = make(url, dim, first)
    contexts = np.random.default_rng().standard_normal((5, dim)).astype(np.float32)
    rows = []
    start.wait()
    while (begun := time.monotonic()) < until.value:
        policy.select(contexts)
        rows.append((begun, time.monotonic() - begun))
    out.put(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--callers", type=int, nargs="*", default=[1, 4, 8])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=400)
    parser.add_argument("--clients", type=int, default=64)
    given = parser.parse_args()
    server = Server()
    try:
        behind_http(server, given.workers, given.clients, given.seconds, 100)
        for callers in given.callers:
            throughput(server, given.workers, callers, given.seconds)
        if given.rows:
            during_a_fit(server, given.rows, given.dim)
    finally:
        server.close()
