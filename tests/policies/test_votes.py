"""Draws that vote on rounds, beside a plain transcription in NumPy."""

import numpy as np
import pytest

from fliphat import _native

DRAWS = 32


def twin(draws, slots, inverse, shift, ball, norm, disjoint, contexts, words):
    """Return the slots that are played, the share of draws that chose them, and the rows that are kept."""
    n, arms = len(words), len(slots)
    length = np.linalg.norm(contexts, axis=1, keepdims=True)
    kept = (contexts * np.minimum(1, norm / np.maximum(length, 1e-300))).astype(np.float32)
    moved = kept * inverse - shift
    moved = moved * np.minimum(1, ball / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-30))
    if disjoint:
        scores = np.einsum("nd,kad->nak", moved, draws[:, :, :-1]) + draws[:, :, -1].T
    else:
        scores = np.einsum("nd,kd->nk", moved, draws[:, 0, :-1]).reshape(n, arms, DRAWS)
    voted = scores.argmax(axis=1)
    place = voted[np.arange(n), words % DRAWS]
    share = (voted == place[:, None]).mean(axis=1)
    rows = kept if disjoint else kept.reshape(n, arms, -1)[np.arange(n), place]
    return slots[place], share, np.c_[rows, slots[place]]


def case(disjoint, n=300, dim=13, arms=5, seed=0):
    rng = np.random.default_rng(seed)
    draws = rng.normal(size=(DRAWS, arms if disjoint else 1, dim + 1))
    maps = rng.uniform(0.5, 2, dim).astype(np.float32), rng.normal(size=dim).astype(np.float32)
    given = (draws, np.arange(arms) * 3, *maps, 1.5, 2.0, disjoint)
    contexts = rng.normal(size=(n if disjoint else n * arms, dim))
    return given, contexts, rng.integers(0, 2**64, n, dtype=np.uint64)


def played(given, contexts, words, arms=5):
    out = np.empty((len(words), contexts.shape[1] + 1), np.float32)
    slots, tied = _native.Votes(*given).choose_dense(contexts, arms, words, None, out, 0)
    return slots, (tied.astype(np.int64) - 2**23) / 2**16, out


@pytest.mark.parametrize("disjoint", [True, False])
def test_rounds_are_played_as_the_twin_plays_them(disjoint):
    given, contexts, words = case(disjoint)
    slots, share, rows = played(given, contexts, words)
    expected = twin(*given, contexts, words)
    assert np.array_equal(slots, expected[0]) and len(set(slots)) == 5
    assert np.array_equal(share, expected[1]) and share.min() < share.max()
    assert np.allclose(rows, expected[2], rtol=1e-6, atol=1e-7)


def test_the_twin_rejects_rounds_that_are_not_cut_or_moved():
    given, contexts, words = case(True)
    expected = twin(*given, contexts, words)
    not_moved = (*given[:3], np.zeros_like(given[3]), *given[4:])
    not_cut = (*given[:5], 1e9, *given[6:])
    assert not np.array_equal(played(not_moved, contexts, words)[1], expected[1])
    assert not np.allclose(played(not_cut, contexts, words)[2], expected[2], rtol=1e-6)


def test_shapes_that_do_not_fit_are_refused():
    given, contexts, words = case(True)
    with pytest.raises(ValueError, match="arms must be the number of arms"):
        played(given, contexts, words, arms=4)
    with pytest.raises(ValueError, match="contexts must hold the rows of every round"):
        played(given, contexts[:, :-1].copy(), words)
    with pytest.raises(ValueError, match="draws must have a value for each"):
        _native.Votes(given[0][:-1].copy(), *given[1:])
