"""Rounds a second behind HTTP beside an application that does nothing, in one run on loopback.

64 clients, each with one connection and one request under way; the store is a directory, and every answer is
on disk before it is sent. What counts is the ratio to a Starlette application that reads the same requests
and answers with a constant, and how many rounds share a sync. The ratio to one that does not even read the
body is printed beside it. Rounds are those inside an episode; the line "with releases" is a policy from its
first round on, whose short episodes end every few hundred rounds. Everything is bounded in number and time.

    python benches/serve.py [--requests 6000] [--clients 64] [--dim 100] [--repeats 3]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

from fliphat.serve.compact import COMPACT, write_rounds

TOKEN = "a token for benches only"
ARMS, BATCH, SECONDS = 3, 32, 30

NOTHING = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
async def nothing(request):
    return PlainTextResponse("nothing")
async def reads(request):
    await request.body()
    return PlainTextResponse("nothing")
routes = [Route("/select", reads, methods=["POST"]), Route("/unread", nothing, methods=["POST"])]
app = Starlette(routes=[*routes, Route("/readyz", nothing)])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical", access_log=False)
"""


class Loader(asyncio.Protocol):
    """One client: sends a request, waits for the whole answer, sends the next."""

    def __init__(self, work) -> None:
        self.work, self.data, self.done = work, b"", asyncio.get_running_loop().create_future()

    def connection_made(self, transport) -> None:
        self.transport = transport
        self.send()

    def send(self) -> None:
        request = self.work.next()
        if request is None:
            self.transport.close()
            self.done.set_result(None)
            return
        self.sent = time.perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.data += data
        end = self.data.find(b"\r\n\r\n")
        if end < 0:
            return
        length = int(re.search(rb"content-length: (\d+)", self.data, re.I)[1])
        if len(self.data) < end + 4 + length:
            return
        if not self.data.startswith(b"HTTP/1.1 200"):
            self.work.failed += 1
        self.work.times.append(time.perf_counter() - self.sent)
        self.data = b""
        self.send()

    def connection_lost(self, error) -> None:
        if not self.done.done():
            self.work.failed += 1
            self.done.set_result(None)


class Work:
    def __init__(self, requests: list[bytes], count: int) -> None:
        self.requests, self.left, self.failed, self.times = requests, count, 0, []
        self.until = time.monotonic() + SECONDS

    def next(self) -> bytes | None:
        if self.left <= 0 or time.monotonic() > self.until:
            return None
        self.left -= 1
        return self.requests[self.left % len(self.requests)]


async def load(port: int, requests: list[bytes], count: int, clients: int) -> tuple[float, Work]:
    work = Work(requests, count)
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    made = await asyncio.gather(
        *(loop.create_connection(lambda: Loader(work), "127.0.0.1", port) for _ in range(clients))
    )
    await asyncio.gather(*(protocol.done for _, protocol in made))
    return len(work.times) / (time.perf_counter() - began), work


def request(body: bytes, kind: str) -> bytes:
    head = f"POST /select HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: {kind}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def requests_of(dim: int) -> dict[str, tuple[list[bytes], int]]:
    """Return the bodies of each kind, and the rounds of one."""
    rng = np.random.default_rng(0)
    contexts = rng.standard_normal((50, ARMS, dim)).astype(np.float32)
    texts = [json.dumps({"contexts": np.round(one.astype(float), 4).tolist()}).encode() for one in contexts]
    batches = [rng.standard_normal((BATCH, ARMS, dim)).astype(np.float32) for _ in range(5)]
    return {
        "json": ([request(text, "application/json") for text in texts], 1),
        "compact": ([request(write_rounds(one), COMPACT) for one in contexts], 1),
        f"compact, batches of {BATCH}": ([request(write_rounds(one), COMPACT) for one in batches], BATCH),
    }


def start(command: list[str], environment: dict[str, str], port: int) -> subprocess.Popen:
    process = subprocess.Popen(command, env=os.environ | environment, stderr=subprocess.DEVNULL)
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).read()
            return process
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not start")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def syncs(port: int) -> tuple[float, float]:
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    text = urllib.request.urlopen(asked, timeout=5).read().decode()
    found = dict(re.findall(r"^fliphat_(syncs_total|synced_requests_total) (\S+)", text, re.M))
    return float(found["syncs_total"]), float(found["synced_requests_total"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=6000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--directory", type=Path, help="where the store is made (a temporary directory)")
    chosen = parser.parse_args()
    bodies = requests_of(chosen.dim)
    with tempfile.TemporaryDirectory(dir=chosen.directory) as directory, contextlib.ExitStack() as stack:
        nothing, ours = Server(), [Server(), Server()]
        stack.enter_context(nothing.started(["-c", NOTHING, str(nothing.port)]))
        # No episode ends while it is measured; and the default, whose first ones are short.
        for server, first_episode in zip(ours, ("first_episode = 1000000\n", ""), strict=True):
            policy = Path(directory, f"{server.port}.toml")
            policy.write_text(
                f"dim = {chosen.dim}\nsparsity = 5\nepsilon = 1.0\ndelta = 1e-6\n{first_episode}"
            )
            command = [SERVE, "serve", f"{directory}/{server.port}", "--port", str(server.port)]
            stack.enter_context(server.started(["-c", *command, "--policy", str(policy)]))
        for name, (requests, rounds) in bodies.items():
            measure(name, requests, rounds, nothing, ours[0], chosen)
        measure("json, with releases", *bodies["json"], nothing, ours[1], chosen)


SERVE = "import sys; from fliphat.cli import main; sys.exit(main())"


class Server:
    """A server process on a port of its own."""

    def __init__(self) -> None:
        self.port = free_port()

    @contextlib.contextmanager
    def started(self, arguments: list[str]):
        tokens = {"FLIPHAT_WRITE_TOKEN": TOKEN, "FLIPHAT_OPERATOR_TOKEN": TOKEN}
        self.process = start([sys.executable, *arguments], tokens, self.port)
        try:
            yield
        finally:
            self.process.terminate()
            self.process.wait(60)


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process so far; NaN where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(name: str, bodies: list[bytes], rounds: int, nothing: Server, ours: Server, chosen) -> None:
    """Print the median of the ratios of runs that take turns, so that all see the same machine.

    The ratio of processor time a request is printed too: a busy machine moves it less.
    """
    unread = [one.replace(b"POST /select", b"POST /unread", 1) for one in bodies]
    turns = [(nothing, bodies), (ours, bodies), (nothing, unread)]
    rates: list[list[float]] = [[], [], []]
    cpu, answered, times = [0.0] * 3, [0] * 3, []
    shared = np.zeros(2)
    count = max(chosen.clients, chosen.requests // (4 if rounds > 1 else 1))
    for _ in range(chosen.repeats):
        for which, (server, requests) in enumerate(turns):
            before, spent = np.array(syncs(ours.port)), cpu_seconds(server.process.pid)
            rate, work = asyncio.run(load(server.port, requests, count, chosen.clients))
            if work.failed:
                raise SystemExit(f"{work.failed} requests failed")
            rates[which].append(rate)
            cpu[which] += cpu_seconds(server.process.pid) - spent
            answered[which] += len(work.times)
            if server is ours:
                shared += np.array(syncs(ours.port)) - before
                times += work.times
    reads, rate, unread_rate = (np.array(one) for one in rates)
    costs = [1e6 * spent / served for spent, served in zip(cpu, answered, strict=True)]
    typical = float(np.median(rate))
    print(
        f"{name}: {typical:,.0f} requests/s ({typical * rounds:,.0f} rounds/s), "
        f"nothing {np.median(reads):,.0f}: "
        f"{np.median(rate / reads):.0%} (best turn {(rate / reads).max():.0%}), of one that does not read "
        f"{np.median(rate / unread_rate):.0%}; {shared[1] * rounds / shared[0]:.1f} rounds a sync; "
        f"p50 {np.percentile(times, 50) * 1e3:.1f} ms, p99 {np.percentile(times, 99) * 1e3:.1f} ms; "
        f"CPU a request {costs[1]:.0f} us, nothing {costs[0]:.0f} us: {costs[0] / costs[1]:.0%}, "
        f"does not read {costs[2]:.0f} us",
        flush=True,
    )


if __name__ == "__main__":
    main()
