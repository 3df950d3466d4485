import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fliphat import kernels, reference
from matrices import csr, problem


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 20),
    arms=st.integers(1, 7),
    d=st.integers(1, 40),
    dtype=st.sampled_from([np.float32, np.float64]),
    coarse=st.booleans(),
)
def test_bit_for_bit_equal_to_the_twins(seed, n, arms, d, dtype, coarse):
    rows, _, theta = problem(seed, n * arms, d, dtype, 0.5)
    if coarse:  # many ties
        rows, theta = np.sign(rows), np.sign(theta)
    contexts = rows.reshape(n, arms, d)
    scores = kernels.score(contexts, theta)
    np.testing.assert_array_equal(scores, reference.score(contexts, theta))
    np.testing.assert_array_equal(kernels.score(csr(rows), theta), scores.ravel())
    np.testing.assert_array_equal(reference.score(csr(rows), theta), scores.ravel())
    chosen = kernels.select_arms(contexts, theta, np.random.default_rng(seed))
    for module in (kernels, reference):
        again = module.select_arms(contexts, theta, np.random.default_rng(seed))
        np.testing.assert_array_equal(again, chosen)
        sparse = module.select_arms(csr(rows), theta, np.random.default_rng(seed), arms=arms)
        np.testing.assert_array_equal(sparse, chosen)
    best = scores.max(axis=1)
    np.testing.assert_array_equal(np.take_along_axis(scores, chosen[:, None], 1)[:, 0], best)


def test_many_rounds_on_several_threads_equal_one_at_a_time():
    rows, _, theta = problem(5, 9000, 50, support=20)
    contexts = rows.reshape(3000, 3, 50)
    scores = kernels.score(contexts, theta)
    single = np.array([kernels.score(round_, theta) for round_ in contexts])
    np.testing.assert_array_equal(scores, single)


def test_one_round_gives_an_int():
    contexts = np.array([[0.0, 1.0], [1.0, 0.0]])
    rng = np.random.default_rng(0)
    assert kernels.select_arms(contexts, [1.0, 0.0], rng) == 1
    assert isinstance(kernels.select_arms(csr(contexts), [0.0, 1.0], rng), int)


def test_only_the_support_is_read():
    contexts = np.full((5, 2, 3), np.nan, np.float32)
    contexts[..., 1] = [[0, 1]] * 5
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(kernels.select_arms(contexts, [0, 2.0, 0], rng), np.ones(5))
    with pytest.raises(ValueError, match="contexts must be finite, and so must their scores"):
        kernels.select_arms(contexts, [0, 2.0, 1e-9], rng)
    with pytest.raises(ValueError, match="contexts must be finite"):
        kernels.score(contexts, [0, 2.0, 1e-9])


def uniform_p_value(choices, tied):
    counts = np.array([np.sum(choices == arm) for arm in tied])
    assert counts.sum() == len(choices)
    return stats.chisquare(counts).pvalue


@pytest.mark.parametrize("theta", [[0.0, 0.0], [1.0, 0.0]])
def test_ties_are_broken_uniformly(theta):
    contexts = np.zeros((30_000, 5, 2), np.float32)
    contexts[:, 2, 0] = -1
    tied = [0, 1, 3, 4] if any(theta) else [0, 1, 2, 3, 4]
    chosen = kernels.select_arms(contexts, theta, np.random.default_rng(7))
    assert uniform_p_value(chosen, tied) > 1e-6
    # The control: the first of the tied arms, as argmax takes it, is found out.
    assert uniform_p_value(kernels.score(contexts, theta).argmax(1), tied) < 1e-6


def test_one_rounds_contents_do_not_move_anothers_draw():
    contexts = np.zeros((100, 4, 3))
    before = kernels.select_arms(contexts, [1.0, 0, 0], np.random.default_rng(1))
    contexts[10, 2, 0] = 1
    after = kernels.select_arms(contexts, [1.0, 0, 0], np.random.default_rng(1))
    np.testing.assert_array_equal(np.delete(after, 10), np.delete(before, 10))


def test_other_layouts_work():
    contexts = np.random.default_rng(0).standard_normal((6, 4, 3))
    theta = [1.0, -1.0, 0.5]
    np.testing.assert_array_equal(
        kernels.score(np.asfortranarray(contexts), theta), kernels.score(contexts, theta)
    )
    np.testing.assert_array_equal(kernels.score(contexts[::2], theta), kernels.score(contexts, theta)[::2])


RNG = np.random.default_rng(0)
C = np.zeros((2, 3, 4))


@pytest.mark.parametrize(
    ("contexts", "theta", "rng", "arms", "error", "message"),
    [
        (C, np.zeros(3), RNG, None, ValueError, r"theta must have shape \(4,\), one value for each column"),
        (C, np.full(4, np.inf), RNG, None, ValueError, "theta must be finite"),
        (C, np.zeros(4), 5, None, TypeError, "rng must be a numpy.random.Generator, got int"),
        (C, np.zeros(4), RNG, 3, ValueError, "arms is only for CSR contexts"),
        (
            C[0, 0],
            np.zeros(4),
            RNG,
            None,
            ValueError,
            r"contexts must have 2 or 3 dimensions, got shape \(4,\)",
        ),
        (C.astype(int), np.zeros(4), RNG, None, TypeError, "contexts must be float32 or float64"),
        (C[:, :0], np.zeros(4), RNG, None, ValueError, "at least one row and one column"),
        (csr(C[0]), np.zeros(4), RNG, 2, ValueError, "contexts must have a multiple of arms = 2 rows, got 3"),
        (csr(C[0]), np.zeros(4), RNG, 0, ValueError, "arms must be an integer from 1 to 3, got 0"),
        (
            sp.coo_array(C[0]),
            np.zeros(4),
            RNG,
            None,
            TypeError,
            "contexts must be a CSR matrix, got format 'coo'",
        ),
    ],
)
def test_bad_input(contexts, theta, rng, arms, error, message):
    with pytest.raises(error, match=message):
        kernels.select_arms(contexts, theta, rng, arms=arms)
