"""No input may panic or abort the interpreter, or be answered with anything but ValueError or TypeError."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fliphat import _native, kernels

DTYPES = st.sampled_from(["f2", "f4", "f8", ">f8", "i4", "i8", "u8", "u1", "?", "c16", "U3", "O", "M8[s]"])
ARRAYS = DTYPES.flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
)
LAYOUTS = st.sampled_from([lambda a: a, lambda a: a.T, lambda a: a[::-1] if a.ndim else a, np.asfortranarray])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.complex_numbers()
)
MATRICES = st.builds(
    lambda a, kind: getattr(sp, kind)(a),
    hnp.arrays(st.sampled_from(["f4", "f8", "i8"]), hnp.array_shapes(min_dims=2, max_dims=2, max_side=5)),
    st.sampled_from(["csr_array", "csr_matrix", "csc_array", "coo_array"]),
)


def smashed(data, matrix):
    """Overwrite a CSR matrix's arrays with anything."""
    for name in ("indptr", "indices", "data"):
        if data.draw(st.booleans()):
            setattr(matrix, name, data.draw(ARRAYS))
    return matrix


ANYTHING = st.one_of(
    SCALARS,
    ARRAYS.flatmap(lambda a: LAYOUTS.map(lambda layout: layout(a))),
    MATRICES,
    st.lists(st.one_of(SCALARS, st.lists(SCALARS, max_size=3)), max_size=3),
)
WELCOME = (ValueError, TypeError)


def attempt(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except WELCOME as error:
        assert str(error)


@given(st.data())
def test_public_kernels(data):
    pick = lambda *good: data.draw(st.one_of(ANYTHING, *map(st.just, good)))  # noqa: E731
    X = pick(np.ones((3, 2), np.float32), sp.csr_array(np.ones((3, 2))))
    if sp.issparse(X) and X.format == "csr":
        X = smashed(data, X)
    attempt(
        kernels.clipped_gradient,
        X,
        pick(np.ones(3)),
        pick(np.ones(2)),
        pick(1.0),
        reward_clip=pick(None),
        loss=pick("squared", "logistic"),
        present=pick(None, np.ones(3, bool)),
        threads=pick(None, 2),
    )
    attempt(kernels.project_l1, pick(np.ones(2)), pick(1.0))
    attempt(kernels.score, X, pick(np.ones(2)))
    attempt(kernels.select_arms, X, pick(np.ones(2)), pick(np.random.default_rng(0)), arms=pick(None, 3))


NATIVE = [
    _native.project_l1,
    _native.read_all,
    _native.clipped_sums,
    _native.scores,
    _native.select_arms,
]


@pytest.mark.parametrize("function", NATIVE, ids=lambda function: function.__name__)
@given(data=st.data())
def test_the_binding_itself(function, data):
    good = [
        np.ones(3),
        np.ones((3, 2)),
        np.ones(3, np.float32),
        np.arange(3, dtype=np.int32),
        np.array([0, 1, 3]),
        np.array([5, -1, 2**62]),
        np.ones(3, np.uint64),
        np.ones(3, np.uint8),
    ]
    sparse = (good[4], good[3], good[2], 3)
    argument = st.one_of(
        st.just(sparse),
        st.just((good[5], good[5], good[0], 3)),
        *map(st.just, good),
        st.integers(0, 4),
        st.just(1.0),
        st.just("squared"),
        ANYTHING,
    )
    arguments = data.draw(st.lists(argument, min_size=1, max_size=11))
    try:
        function(*arguments)
    except (*WELCOME, OverflowError) as error:
        # OverflowError: a count that does not fit a machine word, which `fliphat.kernels` never passes.
        assert str(error)
