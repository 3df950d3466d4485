"""Twins of scoring and of the greedy choice. Equal to the kernels bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def score(contexts: Any, theta: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Sum over theta's support in ascending column order in float64, multiply then add."""
    scores = np.zeros(contexts.shape[:-1])
    columns = contexts if isinstance(contexts, np.ndarray) else contexts.tocsc()
    for j in np.flatnonzero(theta):
        if isinstance(columns, np.ndarray):
            scores += columns[..., j].astype(np.float64) * theta[j]
        else:
            stored = slice(columns.indptr[j], columns.indptr[j + 1])
            scores[columns.indices[stored]] += columns.data[stored].astype(np.float64) * theta[j]
    return scores


def select_arms(
    contexts: Any, theta: npt.NDArray[np.float64], rng: np.random.Generator, *, arms: int | None = None
) -> Any:
    """Choose the arm with the highest score; among equal ones, uniformly, with one word of `rng` a round."""
    scores = score(contexts, theta)
    rounds = scores.reshape(-1, arms or scores.shape[-1])
    words = rng.integers(0, 2**64, len(rounds), np.uint64)
    tied = rounds == rounds.max(axis=1, keepdims=True)
    # Which of the tied arms: floor(word * ties / 2**64), in Python's integers.
    which = [int(word) * int(ties) >> 64 for word, ties in zip(words, tied.sum(axis=1), strict=True)]
    chosen = (np.cumsum(tied, axis=1) == np.add(which, 1)[:, None]).argmax(axis=1)
    single = contexts.ndim == 2 and arms is None
    return int(chosen[0]) if single else chosen
