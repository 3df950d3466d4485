"""Products and solutions in blocks are those of NumPy, whatever their shapes."""

import numpy as np
import pytest

from fliphat.fit.dense import blocks


@pytest.mark.parametrize("dim", [1, 2, 47, 48, 49, 96, 150])
def test_blocks_are_the_same_as_a_whole(dim):
    rng = np.random.default_rng(dim)
    root, sides = rng.normal(size=(dim, dim)), rng.normal(size=(dim, 33))
    matrix = root @ root.T + np.eye(dim)
    np.testing.assert_allclose(blocks.product(root, sides), root @ sides, atol=1e-12 * dim)
    found = blocks.square(matrix)
    lower = np.tril_indices(dim)
    np.testing.assert_allclose(found[lower], (matrix @ matrix)[lower], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(blocks.solve(matrix, sides), np.linalg.solve(matrix, sides), atol=1e-9)
    # The upper half is not read.
    np.testing.assert_array_equal(blocks.solve(np.tril(matrix), sides), blocks.solve(matrix, sides))


def test_a_matrix_that_is_not_positive_definite_is_refused():
    with pytest.raises(np.linalg.LinAlgError):
        blocks.solve(-np.eye(50), np.ones((50, 1)))
