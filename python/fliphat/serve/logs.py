"""Lines for operators, one JSON object each. No contexts, rewards, users, keys, ids, addresses."""

from __future__ import annotations

import json
import logging
import time
from typing import Any, Final

__all__ = ["LOGGER", "event"]

LOGGER: Final = logging.getLogger("fliphat.serve")


def event(what: str, **facts: Any) -> None:
    """Write one line: what happened, and numbers or names that the program chose, never a client."""
    if LOGGER.isEnabledFor(logging.INFO):
        LOGGER.info(json.dumps({"time": round(time.time(), 3), "event": what, **facts}))
