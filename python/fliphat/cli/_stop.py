"""Ctrl-C ends a command soon, also while a kernel that never looks for signals is running."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from types import FrameType

_SECONDS = 1.5


@contextlib.contextmanager
def stopped_soon(seconds: float = _SECONDS) -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt, and end the process if Python does not come to see it in time.

    Python sees a signal between two of its own instructions. The operating system tells a second thread at
    once; if the first has not seen it after some time, it is inside a kernel that may take minutes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        seen.set()
        raise KeyboardInterrupt

    waiting, told = socket.socketpair()
    told.setblocking(False)

    def watch() -> None:
        with waiting:
            while got := waiting.recv(64):
                if signal.SIGINT in got and not seen.wait(seconds):
                    print("\nstopped", file=sys.stderr, flush=True)
                    os._exit(130)

    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, interrupt)
    descriptor = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    watcher = threading.Thread(target=watch, name="Ctrl-C", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(descriptor)
        signal.signal(signal.SIGINT, before)
        told.close()
        watcher.join()
