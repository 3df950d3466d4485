"""Arrays in Fortran's order are contiguous, too: no native function may read their rows as columns."""

import numpy as np
import pytest

from fliphat import _native
from fliphat.kernels import _fits as fit_kernels

RNG = np.random.default_rng(1)
SQUARE = RNG.normal(size=(4, 4))
ROWS = np.c_[RNG.normal(size=(6, 2)), np.zeros(6)]


def dense_release(rows):
    asked = [(0, "arms", 4096, (0, 0), np.full(6, 2**20, np.uint64), 0, False)]
    return _native.release_dense(
        rows,
        np.ones(6),
        np.zeros(6, np.int64),
        np.ones(6, np.uint8),
        (1, (0.0, 1.0), 100, 1),
        (np.arange(2), np.zeros(2), np.ones(2)),
        asked,
        None,
        _native.RecordingNoise(),
    )


def votes(draws):
    maps = np.ones(2, np.float32), np.zeros(2, np.float32)
    return _native.Votes(draws, np.arange(3), *maps, 1.0, 1.0, True)


def settled(support=ROWS, whiten=SQUARE):
    given = np.zeros(1, np.int64), support, np.ones(6), whiten
    return _native.settled_sums(ROWS, *given, 1.0, 100, 1.0, 1.0)


@pytest.mark.parametrize(
    ("call", "array"),
    [
        (dense_release, ROWS),
        (votes, RNG.normal(size=(32, 3, 3))),
        (settled, ROWS),
        (lambda whiten: settled(whiten=whiten), SQUARE),
        (lambda rows: _native.scores(rows, np.ones(3)), ROWS.astype(np.float32)),
        (lambda rows: _native.scores(rows, np.ones(3)), ROWS),
        (lambda out: _native.gather_columns(ROWS, np.arange(2), None, out, 0), np.zeros((6, 3))),
        (lambda gram: _native.lasso_fit(gram, np.ones(4), 1.0, np.zeros(4), 1e-6, 10), SQUARE @ SQUARE.T),
    ],
)
def test_another_order_is_refused(call, array):
    call(array)
    with pytest.raises(TypeError, match="arrays of several dimensions must be in C order"):
        call(np.asfortranarray(array))


def test_numbers_of_a_step_are_the_same_in_every_order():
    rule = fit_kernels.KalmanRule(
        1.0, 25.0, 0.05, 0.001, 1e-12, 0.15, 0.65, 0.01, 0.16, 0.003, 0.002, 0.8, 2.0
    )
    known, fresh = np.eye(2), np.eye(3) + 0.1
    given = np.ones(2), known, known, 100 * known, np.ones(3), fresh, np.ones(1)
    found = [
        fit_kernels.kalman_step(*given, whiten=order(SQUARE[:3, :3]), typical=np.eye(3), rule=rule, most=2)
        for order in (np.ascontiguousarray, np.asfortranarray)
    ]
    np.testing.assert_array_equal(found[0].theta, found[1].theta)
