"""Lines for operators, one JSON object each. No contexts, rewards, users, keys, ids, addresses."""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
import threading
import time
from typing import Any, Final

__all__ = ["LOGGER", "event", "failure", "to_stderr"]

LOGGER: Final = logging.getLogger("fliphat.serve")


def event(what: str, **facts: Any) -> None:
    """Write one line: what happened, and numbers or names that the program chose, never a client."""
    if LOGGER.isEnabledFor(logging.INFO):
        line = {"time": round(time.time(), 3), "worker": os.getpid(), "event": what}
        LOGGER.info(json.dumps(line | facts))


def failure(what: str, error: BaseException) -> None:
    """Write one line about an error: its kind, and what the system or the database calls it.

    The words of an error may hold contents; names of codes do not.
    """
    facts = {"kind": type(error).__name__}
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno is not None:
            facts |= {"code": errno.errorcode.get(cause.errno, "?"), "reason": os.strerror(cause.errno)}
        for name in ("sqlstate", "sqlite_errorname"):
            if isinstance(getattr(cause, name, None), str):
                facts["code"] = getattr(cause, name)
        if "code" in facts:
            facts["cause"] = type(cause).__name__
            break
        cause = cause.__cause__ or cause.__context__
    if "not the newest copy" in str(error):  # these words are the program's own
        facts["reason"] = "the witness refuses this copy"
    event(what, **facts)


class _Json(logging.Formatter):
    """Lines of other packages: who wrote them and how grave they are. Their words might hold contents."""

    def format(self, record: logging.LogRecord) -> str:
        if record.name == LOGGER.name:
            return record.getMessage()
        line = {
            "time": round(record.created, 3),
            "worker": record.process,
            "event": "log",
            "logger": record.name,
            "level": record.levelname,
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["kind"] = record.exc_info[0].__name__
        return json.dumps(line)


def to_stderr() -> None:
    """Send every line of this process to standard error, as JSON: logs, warnings and what nobody caught."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json())
    root = logging.getLogger()
    root.handlers, LOGGER.handlers = [handler], []
    root.setLevel(logging.WARNING)
    LOGGER.setLevel(logging.INFO)
    logging.captureWarnings(True)
    sys.excepthook = lambda _, error, __: failure("ended", error)
    threading.excepthook = lambda told: failure("a thread ended", told.exc_value or RuntimeError())
    sys.unraisablehook = lambda told: failure("ignored", told.exc_value or RuntimeError())
