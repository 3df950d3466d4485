"""Ctrl-C ends a command also while it is inside a call that never looks for signals."""

import subprocess
import sys

#: Minutes of hashing, during which Python never sees a signal, as in a kernel.
STUCK = """
import hashlib
from fliphat import cli
from fliphat.cli import inspect
def stuck(chosen):
    print("inside", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
inspect.run = stuck
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
