"""Executors for sweeps: none, all cores of this machine, or a Dask cluster."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

_Result = TypeVar("_Result")

_DASK_SECONDS = 10
_BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@contextlib.contextmanager
def open_executor(workers: int | None = None, dask: str | None = None) -> Iterator[Executor | None]:
    """Give an executor for :func:`fliphat.lab.experiments.sweep`, and take it down afterwards.

    Parameters
    ----------
    workers : int, optional
        Processes; by default one a core. 1 without Dask gives None: runs happen in this process.
    dask : str, optional
        The address of a Dask scheduler, or ``"local"`` for a cluster of `workers` processes here.

    Raises
    ------
    ValueError
        If Dask is not installed.
    OSError
        If there is no scheduler at the address.

    Notes
    -----
    Processes are spawned: a script that calls this needs ``if __name__ == "__main__":``.

    Examples
    --------
    >>> with open_executor(workers=1) as executor:
    ...     print(executor)
    None
    """
    count = cores() if workers is None else workers
    if dask is not None:
        with _dask(dask, count) as client:
            yield client.get_executor(pure=False)
    elif count == 1:
        with _one_thread_here():
            yield None
    else:
        with _one_thread_each():
            pool = _WorkersWithoutInterrupts(
                count, mp_context=multiprocessing.get_context("spawn"), initializer=_leave_interrupts
            )
            try:
                yield pool
            except KeyboardInterrupt:
                # Whoever stops does not wait for kernels: what a worker has begun is not kept anyway.
                for worker in list(pool._processes.values()):
                    worker.kill()
                raise
            finally:
                pool.shutdown(wait=True, cancel_futures=True)


def finished(
    call: Callable[..., _Result], tasks: Iterable[tuple[Any, ...]], executor: Executor | None
) -> Iterator[_Result]:
    """Call with each task's arguments, and give results when they are done; without an executor in order."""
    if executor is None:
        for task in tasks:
            yield call(*task)
        return
    futures = [executor.submit(call, *task) for task in tasks]
    try:
        for future in as_completed(futures):
            yield future.result()
    finally:
        # After an error or Ctrl-C nothing new begins; what runs already is short.
        for future in futures:
            future.cancel()


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _WorkersWithoutInterrupts(ProcessPoolExecutor):
    """A pool whose workers never see Ctrl-C, from their first instruction on.

    A worker that is interrupted while it still imports may end holding a lock of the pool's queues, and the
    parent then waits for it for ever. So workers are started with the signal blocked, which they inherit.
    """

    def submit(self, *given: Any, **named: Any) -> Any:
        """Submit a call; this is where workers are started."""
        with _interrupts_held():
            return super().submit(*given, **named)


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back; it arrives at the end."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _leave_interrupts() -> None:
    """Let Ctrl-C reach the parent alone, which then takes the workers down in order."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes started meanwhile use one thread for linear algebra: there is a process for each core."""
    before = {name: os.environ.get(name) for name in _BLAS_THREADS}
    os.environ.update(dict.fromkeys(_BLAS_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _one_thread_here() -> Iterator[None]:
    """Let this process use one thread for linear algebra, if threadpoolctl (of scikit-learn) is there.

    Fits of small matrices are many times slower on two threads, which wait for each other.
    """
    if importlib.util.find_spec("threadpoolctl") is None:
        yield
        return
    with importlib.import_module("threadpoolctl").threadpool_limits(1):
        yield


@contextlib.contextmanager
def _dask(address: str, workers: int) -> Iterator[Any]:
    try:
        distributed = importlib.import_module("distributed")  # an extra: nothing else may need it
    except ImportError:
        raise ValueError("Dask is not installed: pip install 'fliphat[dask]'") from None
    if address == "local":
        with (
            _one_thread_each(),
            distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = distributed.Client(address, timeout=_DASK_SECONDS)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise OSError(f"no Dask scheduler answers at {address!r}: {reason}") from None
    with client:
        yield client
