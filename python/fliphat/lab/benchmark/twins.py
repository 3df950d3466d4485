"""The best NumPy, SciPy and BLAS can do, where the twin in `fliphat.reference` is written to be read.

Blocks that fit the cache, every operation in place, sums left to BLAS. Twins of noise are floats from a
seeded generator: INSECURE, for races only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_LIMIT = 2**15

#: Values of a block: it stays in the second cache, with room for a copy.
_BLOCK_VALUES = 2**16

#: Sums of this many integers up to 2**15 are exact in float32.
_EXACT_ROWS = 2**9

Floats = npt.NDArray[np.float64]


def sparse_gradient(X: Any, y: Floats, theta: Floats, clip: float) -> Floats:
    """Sum clipped gradients of CSR rows: SciPy's product, blocks in place, one weighted count a block."""
    factor = ((X @ theta - y) * (_LIMIT / clip)).astype(X.dtype)
    total = np.zeros(X.shape[1])
    rows = max(1, _BLOCK_VALUES * 8 // max(1, X.nnz // max(1, X.shape[0])))
    for start in range(0, X.shape[0], rows):
        ends = X.indptr[start : start + rows + 1]
        stored = slice(ends[0], ends[-1])
        q = np.repeat(factor[start : start + rows], np.diff(ends))
        q *= X.data[stored]
        np.clip(q, -_LIMIT, _LIMIT, out=q)
        np.rint(q, out=q)
        total += np.bincount(X.indices[stored], q, X.shape[1])
    return total


def shifted_gradient(X: npt.NDArray[Any], residuals: Floats, clip: float, shifts: Floats | None) -> Floats:
    """Sum clipped gradients of dense rows, each less its shift."""
    n, d = X.shape
    rows = min(_EXACT_ROWS, max(8, _BLOCK_VALUES // d), n)
    work, ones, total = np.empty((rows, d), X.dtype), np.ones(rows, X.dtype), np.zeros(d)
    factor = (residuals * (_LIMIT / clip)).astype(X.dtype)[:, None]
    moved = None if shifts is None else shifts.astype(X.dtype)[:, None]
    for start in range(0, n, rows):
        here = slice(start, start + rows)
        q = work[: len(X[here])]
        if moved is None:
            np.multiply(X[here], factor[here], out=q)
        else:
            np.subtract(X[here], moved[here], out=q)
            q *= factor[here]
        np.clip(q, -_LIMIT, _LIMIT, out=q)
        np.rint(q, out=q)
        total += ones[: len(q)] @ q
    return total


def relative_gradient(
    X: npt.NDArray[Any], y: Floats, columns: npt.NDArray[np.int64], weights: Floats, clip: float, out: Floats
) -> Floats:
    """Sum clipped gradients of what is left of rewards after the public columns, which `out` gets."""
    out[:, 0] = 1.0
    out[:, 1:] = X[:, columns]
    return shifted_gradient(X, y - out @ weights, clip, None)


def settled_sums(
    X: npt.NDArray[Any],
    columns: npt.NDArray[np.int64],
    support: Floats,
    residuals: Floats,
    *,
    whiten: Floats,
    clip: float,
    radius: int,
    scale: float,
    cap: float,
) -> tuple[Floats, Floats, float]:
    """Sum gradients in their own coordinates, second moments in a ball, and sizes; BLAS multiplies."""
    values = np.empty((len(X), support.shape[1] + len(columns)))
    values[:, : support.shape[1]] = support
    values[:, support.shape[1] :] = X[:, columns]
    steps = values @ whiten.T
    steps *= (residuals * (_LIMIT / clip))[:, None]
    np.clip(steps, -_LIMIT, _LIMIT, out=steps)
    np.rint(steps, out=steps)
    gradient = np.ones(len(steps)) @ steps
    moments = ball_moments(values, radius, scale)
    sizes = np.abs(residuals)
    np.minimum(sizes, cap, out=sizes)
    sizes *= _LIMIT / cap
    np.floor(sizes, out=sizes)
    return gradient, moments, float(sizes.sum())


def ball_moments(values: Floats, radius: int, scale: float) -> Floats:
    """Sum second moments of rows cut to a ball and rounded; the product is left to BLAS."""
    q = values * scale
    norms = np.sqrt(np.einsum("ij,ij->i", q, q))
    q *= np.minimum(radius / np.maximum(norms, 1e-300), 1.0)[:, None]
    np.trunc(q, out=q)
    moments: Floats = q.T @ q
    return moments


def laplace_noise(scale: float, size: int, rng: np.random.Generator) -> Floats:
    """Draw Laplace noise as exponential sizes with random signs: `Generator.laplace` takes logarithms."""
    noise = rng.standard_exponential(size)
    noise *= scale
    signs = np.unpackbits(np.frombuffer(rng.bytes(-(-size // 8)), np.uint8), count=size)
    return np.negative(noise, out=noise, where=signs.view(bool))


def gaussian_noise(sigma: float, size: int, rng: np.random.Generator) -> Floats:
    """Draw rounded Gaussian noise."""
    noise = rng.standard_normal(size)
    noise *= sigma
    return np.rint(noise, out=noise)


def noisy_max_peel(
    v: npt.NDArray[np.int64], s: int, pick_scale: float, value_scale: float, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Peel by the largest noisy value."""
    scores = np.abs(v).astype(np.float64)
    support = np.empty(s, np.int64)
    for pick in range(s):
        noisy = laplace_noise(pick_scale, len(v), rng)
        noisy += scores
        support[pick] = noisy.argmax()
        scores[support[pick]] = -np.inf
    return support, v[support] + gaussian_noise(value_scale, s, rng)


def select_arms(contexts: npt.NDArray[Any], theta: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Choose the arms with the highest scores: gather the support, then multiply."""
    support = np.flatnonzero(theta)
    chosen: npt.NDArray[np.int64] = (contexts[..., support] @ theta[support]).argmax(-1)
    return chosen
