"""Ctrl-C ends every command soon, also while it is inside a call that never looks for signals."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

#: Minutes of hashing, during which Python never sees a signal, as in a kernel.
STUCK = """
import hashlib
from fliphat import cli
from fliphat.cli import inspect
from fliphat.cli._parser import command, option
def stuck(chosen):
    print("inside", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
inspect.add = command(stuck, "inspect", "", "", [], option("store", ""))
raise SystemExit(cli.main(["inspect", "nothing"]))
"""


def test_a_call_that_never_returns_is_left():
    with subprocess.Popen(
        [sys.executable, "-c", STUCK], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "inside\n"
        process.send_signal(2)
        _, err = process.communicate(timeout=120)  # it would hash for many minutes
    assert process.returncode == 130 and err.strip() == "stopped"


#: Commands with so much to do that they would take minutes.
LONG = {
    "demo": ["--repeats", "1000"],
    "simulate": ["people.csv", "--label", "label", "--orders", "1000", "--workers", "2"],
    "plan": [
        "--dim",
        "5000",
        "--sparsity",
        "40",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--rounds",
        str(10**10),
    ],
    "reproduce": ["regret-vs-time", "--repeats", "1000"],
    "audit": ["--runs", str(10**10)],
    "bench": ["--repeats", "100000"],
    "serve": ["store", "--dim", "5", "--sparsity", "2", "--epsilon", "1", "--delta", "1e-6", "--no-token"],
}
LONG["serve"] += ["--port", "18377"]


def cpu_seconds(process):
    """What a process and those it waited for have used: 0 once it is gone."""
    try:
        with open(f"/proc/{process.pid}/stat") as file:
            fields = file.read().rsplit(") ", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="asks Linux how far a command is")
@pytest.mark.parametrize("command", LONG)
def test_ctrl_c_ends_every_long_command_within_two_seconds(command, tmp_path):
    values = np.random.default_rng(0).normal(size=(5000, 20))
    names = ",".join([*(f"x{i}" for i in range(20)), "label"])
    table = np.column_stack([values, values[:, 0] > 0])
    np.savetxt(tmp_path / "people.csv", table, "%.5g", ",", header=names, comments="")
    line = [
        sys.executable,
        "-c",
        "from fliphat.cli import main; raise SystemExit(main())",
        command,
        *LONG[command],
    ]
    waited = []
    for _ in range(3):  # on a busy machine a second may pass before a process runs at all
        with subprocess.Popen(
            line, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            while process.poll() is None and cpu_seconds(process) < 1.5 and command != "serve":
                time.sleep(0.05)
            if command == "serve":
                time.sleep(3.0)
            assert process.poll() is None, process.stderr.read()
            started = time.monotonic()
            process.send_signal(2)
            _, told = process.communicate(timeout=60)
        waited.append(time.monotonic() - started)
        assert process.returncode == 130, told
        if waited[-1] < 2:
            return
    pytest.fail(f"{command} took {waited} seconds to end")
