"""Computing with whichever Dask scheduler is in effect, and saying so when its workers are gone.

A worker that is lost while others remain needs nothing here: Dask runs its tasks again elsewhere.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import itertools
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["compute", "persist", "task"]

#: Seconds between two looks at whether there are any workers; a result is returned the moment it is there.
_LOOK_EVERY = 0.5

#: Key of Dask's configuration, and how long a fit waits for a worker while there is none.
_PATIENCE_KEY, _PATIENCE = "fliphat.no-workers-timeout", "2 minutes"


def task(function: Callable[..., Any], prefix: str, **public: Any) -> Callable[..., Any]:
    """Return `function` for delayed arguments; its tasks have keys of their own.

    Arguments that all its tasks share are bound to it, so that Dask does not search them for delayed values.
    """
    from dask import delayed

    name, numbers = f"{prefix}-{uuid.uuid4().hex}", itertools.count()
    bound = delayed(functools.partial(function, **public) if public else function, pure=False)
    return lambda *arguments: bound(*arguments, dask_key_name=f"{name}-{next(numbers)}")


def persist(values: Sequence[Any]) -> list[Any]:
    """Return the same values, computed once and kept where they were computed."""
    import dask

    return list(dask.persist(*values))


def compute(value: Any) -> Any:
    """Return what one delayed value stands for."""
    client = _client()
    if client is None:
        return value.compute()
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    future = client.compute(value)
    try:
        _wait(client, future)
        return future.result()
    except (KilledWorker, CommClosedError, asyncio.CancelledError, concurrent.futures.CancelledError) as lost:
        raise RuntimeError(
            "the Dask workers, or blocks of X or y that can't be computed again, were lost during fit"
        ) from lost
    finally:
        with contextlib.suppress(
            Exception
        ):  # the scheduler may be gone, and the first error is the one to see
            if not future.done():
                client.cancel([future])


def _client() -> Any:
    """Return the distributed client that is in effect, or None for a scheduler of this process."""
    from dask.base import get_scheduler

    owner = getattr(get_scheduler(), "__self__", None)
    distributed = sys.modules.get("distributed")
    return owner if distributed is not None and isinstance(owner, distributed.Client) else None


def _wait(client: Any, future: Any) -> None:
    """Wait for a future, but not forever while there is nobody to work on it."""
    import dask
    import distributed
    from dask.utils import parse_timedelta

    patience = parse_timedelta(dask.config.get(_PATIENCE_KEY, _PATIENCE))
    alone_since: float | None = None
    while True:
        with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
            distributed.wait(future, timeout=_LOOK_EVERY)
        if future.done():
            return
        if client.nthreads():
            alone_since = None
            continue
        now = time.monotonic()
        alone_since = now if alone_since is None else alone_since
        if now - alone_since >= patience:
            raise RuntimeError(
                f"the Dask cluster has had no workers for {patience:g} seconds, so X could not be read "
                f"(dask.config.set({{'{_PATIENCE_KEY}': ...}}) sets how long fit waits)"
            )
