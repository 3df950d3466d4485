"""Products and solutions in small blocks: a BLAS starts threads for larger ones, which wait for each other.

Beside other work two threads took thirty times the processor time of one, in matrices of 200 columns.
OpenBLAS takes one thread for products of blocks up to 64 x 64.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["product", "solve", "square"]

_Floats = npt.NDArray[np.float64]

#: Columns of a block: with 64 its factor took two threads again.
_SIZE: Final = 48


def _split(matrix: _Floats) -> _Floats:
    """Return a matrix as blocks, shape (down, across, _SIZE, _SIZE), filled up with zeros."""
    down, across = (-(-size // _SIZE) for size in matrix.shape)
    filled = np.zeros((down * _SIZE, across * _SIZE))
    filled[: matrix.shape[0], : matrix.shape[1]] = matrix
    return np.ascontiguousarray(filled.reshape(down, _SIZE, across, _SIZE).swapaxes(1, 2))


def _joined(blocks: _Floats, rows: int, columns: int) -> _Floats:
    down, across = blocks.shape[:2]
    return blocks.swapaxes(1, 2).reshape(down * _SIZE, across * _SIZE)[:rows, :columns]


def _times(one: _Floats, other: _Floats) -> _Floats:
    found = np.zeros((len(one), other.shape[1], _SIZE, _SIZE))
    for k in range(one.shape[1]):
        found += one[:, k, None] @ other[None, k]
    return found


def product(one: _Floats, other: _Floats) -> _Floats:
    """Return the product of two matrices."""
    return _joined(_times(_split(one), _split(other)), len(one), other.shape[1])


def square(matrix: _Floats) -> _Floats:
    """Return the lower half of a symmetric matrix's square; the upper one is not to be read."""
    blocks = _split(matrix)
    found = np.zeros_like(blocks)
    for j in range(len(blocks)):
        found[j:, j] = _times(blocks[j:], blocks[:, j, None])[:, 0]
    return _joined(found, *matrix.shape)


def solve(matrix: _Floats, sides: _Floats) -> _Floats:
    """Return ``matrix^-1 sides`` by Cholesky's factor of a positive definite matrix, its lower half read."""
    rows, columns = sides.shape
    left, found = _split(matrix), _split(sides)
    count = len(left)
    rest = np.arange(rows - (count - 1) * _SIZE, _SIZE)
    left[-1, -1, rest, rest] = 1.0  # what was filled up
    inverses = np.empty((count, _SIZE, _SIZE))
    for j in range(count):
        if j:
            left[j:, j] -= _times(left[j:, :j], left[j, :j, None].swapaxes(-1, -2))[:, 0]
        inverses[j] = np.linalg.inv(np.linalg.cholesky(left[j, j]))
        left[j + 1 :, j] = left[j + 1 :, j] @ inverses[j].T
    for j in range(count):
        if j:
            found[j] -= _times(left[j : j + 1, :j], found[:j])[0]
        found[j] = inverses[j] @ found[j]
    for j in reversed(range(count)):
        if j + 1 < count:
            found[j] -= _times(left[j + 1 :, j].swapaxes(-1, -2)[None], found[j + 1 :])[0]
        found[j] = inverses[j].T @ found[j]
    return _joined(found, rows, columns)
