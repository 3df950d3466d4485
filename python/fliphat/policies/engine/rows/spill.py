"""Dense rows in a private file without a name, for episodes that memory has no room for.

The system gives the file back when it is closed or the process ends, however it ends. Rows are written with
plain writes, never through a mapping: a full disk is then an error of the call that met it, where a mapping
would stop the process. They are read through a mapping, so that the rows of a fit are the page cache's and
not the process's own memory.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
import weakref
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from fliphat.policies.engine import files
from fliphat.policies.engine.rows.base import ChosenRows, DenseStore
from fliphat.policies.types import SpillError

__all__ = ["SpillFile", "SpilledRows"]

_LIVE: weakref.WeakSet[SpillFile] = weakref.WeakSet()


class SpillFile:
    """Numbers of one dtype in a nameless file of mode 0600, in the directory for temporary files."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.dtype = np.dtype(dtype)
        directory = tempfile.gettempdir()
        try:
            # Without a name from the start where the system can do that, else unlinked at once.
            self._file: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        except OSError as error:
            raise _failed(f"a temporary file could not be made in {directory!r}", error) from None
        self._directory = directory
        _LIVE.add(self)

    def write(self, at: int, numbers: npt.NDArray[Any]) -> None:
        """Write numbers from position `at` on, over whatever a failed call left there."""
        self._check_size(at)
        if not numbers.size:
            return
        part = np.ascontiguousarray(numbers, self.dtype)
        try:
            self._file.seek(at * self.dtype.itemsize)
            files.write_all(self._file.fileno(), part.reshape(-1).data.cast("B"))
        except OSError as error:
            raise _failed(
                f"rows beyond memory_limit could not be written to a temporary file in {self._directory!r}",
                error,
            ) from None

    def mapped(self, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return the first numbers as an array that reads the file."""
        count = int(np.prod(shape, dtype=np.int64))
        self._check_size(count)
        if count == 0:
            return np.zeros(shape, self.dtype)  # an empty file can't be mapped
        return np.memmap(self._file, self.dtype, "r", shape=shape)

    def clear(self, count: int) -> None:
        """Give all contents back to the system; the first `count` numbers read as zeros and take no room."""
        self._file.truncate(0)
        self._file.truncate(count * self.dtype.itemsize)

    def close(self) -> None:
        """Let the file vanish."""
        self._file.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _check_size(self, count: int) -> None:
        # A mapping past the end of a file stops the process, so a short file is found out before.
        if os.fstat(self._file.fileno()).st_size < count * self.dtype.itemsize:
            raise SpillError(
                errno.EIO,
                "the temporary file of the open episode's rows was cut off: they are lost. forget() goes on "
                "without them",
            )


class SpilledRows(DenseStore):
    """Dense rows in a nameless file; only what one call stages is in memory."""

    def __init__(self, length: int, dim: int, dtype: npt.DTypeLike) -> None:
        super().__init__(length, dim, dtype)
        self._one_row: npt.NDArray[Any] = np.zeros((1, dim), dtype)
        self._last = self._one_row
        self.file = SpillFile(dtype)

    def place(self, at: int, count: int) -> npt.NDArray[Any]:
        """See :class:`DenseStore`."""
        return self._one_row if count == 1 else np.empty((count, self.dim), self.dtype)

    def put(self, at: int, rows: ChosenRows) -> None:
        """See :class:`RowStore`."""
        assert isinstance(rows, np.ndarray)
        self.file.write(at * self.dim, rows)
        self._last = rows

    def staged(self, at: int, count: int) -> npt.NDArray[Any]:
        """See :class:`RowStore`."""
        return self._last

    def advance(self, at: int, count: int) -> None:
        """See :class:`RowStore`."""
        self._one_row[:] = 0
        self._last = self._one_row

    def emptied(self, filled: int) -> SpilledRows:
        """See :class:`RowStore`."""
        fresh = SpilledRows(self.length, self.dim, self.dtype)
        fresh.file.clear(filled * self.dim)
        return fresh

    def empty(self, rows: npt.NDArray[np.int64]) -> None:
        """See :class:`RowStore`."""
        zeros = np.zeros(self.dim, self.dtype)
        for row in rows.tolist():
            self.file.write(row * self.dim, zeros)

    def wipe(self) -> None:
        """See :class:`RowStore`."""
        self.file.clear(0)

    def matrix(self) -> Any:
        """See :class:`RowStore`."""
        return self.file.mapped((self.length, self.dim))

    def first(self, filled: int) -> npt.NDArray[Any]:
        """See :class:`RowStore`."""
        return self.file.mapped((filled, self.dim))


def _failed(what: str, error: OSError) -> SpillError:
    return SpillError(
        error.errno,
        f"{what}: {error.strerror}. The call did not happen and can be repeated; memory_limit and the "
        f"environment variable TMPDIR say when rows are written and where",
    )


def _close_in_child() -> None:
    # A child can't play, but an open file would keep its space after the parent is gone.
    for file in list(_LIVE):
        with contextlib.suppress(OSError):
            file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
