"""A plain JSON body is read by native code: the same bits as a general parser's, or left to that parser."""

import contextlib
import json
import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("orjson", reason="needs fliphat[serve]")

from fliphat import _native
from fliphat.serve import bodies

DIM = 3


def general(body, dtype, depth):
    """Return what the general parser makes of a body; None if it is refused."""
    try:
        return bodies._read_rounds(body, DIM, dtype, depth)
    except bodies.Refusal:
        return None


def check(body, dtype, depth):
    """Compare both ways of reading a body; whether the native one read it."""
    plain = _native.read_contexts(body, DIM, dtype == "float64")
    expected, found = general(body, dtype, depth), None
    with contextlib.suppress(bodies.Refusal):
        found = bodies.read_rounds(body, False, DIM, dtype, depth)
    assert (found is None) == (expected is None)
    if expected is not None:
        assert found.contexts.tobytes() == expected.contexts.tobytes()
        assert (
            found.contexts.shape == expected.contexts.shape
            and found.contexts.dtype == expected.contexts.dtype
        )
        for name in ("single", "users", "keys", "count", "arms"):
            assert getattr(found, name) == getattr(expected, name), name
    return plain is not None


_digits = st.text("0123456789", min_size=1, max_size=25)
_written = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**25), 10**25).map(str),
    st.builds(
        lambda sign, whole, part, power: sign + whole + part + power,
        st.sampled_from(["", "-", "+"]),
        st.one_of(st.just("0"), _digits, _digits.map(lambda text: text.lstrip("0") or "0")),
        st.one_of(st.just(""), _digits.map(lambda text: "." + text), st.just(".")),
        st.one_of(
            st.just(""), st.integers(-330, 330).map(lambda e: f"e{e}"), st.sampled_from(["E+5", "e", "e-"])
        ),
    ),
    st.sampled_from(["null", "true", '"1"', "NaN", "-0", "-0.0", "[]", "{}", ""]),
)
_spaces = st.sampled_from(["", "", "", " ", "\n\t", "\r", "\x0b"])


@settings(max_examples=400, deadline=None)
@given(
    numbers=st.lists(st.lists(_written, min_size=1, max_size=4), min_size=1, max_size=3),
    space=_spaces,
    dtype=st.sampled_from(["float32", "float64"]),
    depth=st.sampled_from([1, 2]),
    wrap=st.booleans(),
)
@example(numbers=[["1e39", "-1e39", "1e-46"]], space="", dtype="float32", depth=2, wrap=False)
@example(numbers=[["9007199254740993", "1e23", "0.1"]], space="", dtype="float64", depth=2, wrap=False)
def test_numbers_have_the_same_bits_or_are_left_alone(numbers, space, dtype, depth, wrap):
    comma = f"{space},{space}"
    rows = comma.join(f"[{space}{comma.join(row)}{space}]" for row in numbers)
    text = f"[{rows}]" if not wrap else f"[[{rows}]]"
    check(f'{{{space}"contexts"{space}:{text}{space}}}{space}'.encode(), dtype, depth)


_name = st.one_of(st.text(max_size=5), st.integers(-(2**70), 2**70), st.floats(), st.none(), st.booleans())


@settings(max_examples=200, deadline=None)
@given(
    record=st.dictionaries(
        st.sampled_from(["contexts", "user", "key", "users", "keys", "other"]),
        st.one_of(st.just([[1.0, 2.5, -3.0]] * 2), st.just([1, 2, 3]), _name, st.lists(_name, max_size=2)),
        max_size=5,
    ),
    escaped=st.booleans(),
    depth=st.sampled_from([1, 2]),
)
def test_names_and_members_are_read_alike(record, escaped, depth):
    check(json.dumps(record, ensure_ascii=escaped).encode("utf-8", "surrogatepass"), "float32", depth)


@settings(max_examples=300, deadline=None)
@given(
    at=st.integers(0, 60),
    byte=st.integers(0, 255),
    cut=st.integers(0, 80),
)
def test_a_damaged_body_is_read_alike(at, byte, cut):
    body = bytearray(b'{"contexts": [[1.5, -2, 3e2], [0, 0.25, 1]], "user": "ab", "key": 17}')
    body[at] = byte
    check(bytes(body), "float32", 2)
    check(bytes(body[:cut]), "float32", 2)


def test_ordinary_bodies_are_read_by_native_code():
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = struct.unpack("<6d", rng.integers(0, 2**63, 6, np.uint64).tobytes())
        rows = np.nan_to_num(np.array(values), nan=0.5, posinf=1.0, neginf=-1.0).reshape(2, DIM)
        for given_rows, depth in ((rows, 2), (rows[0], 1), (rows[None], 2), (rows, 1)):
            text = json.dumps(
                {"contexts": given_rows.tolist()} | ({"key": "k"} if given_rows.ndim == depth else {})
            )
            for dtype in ("float32", "float64"):
                assert check(text.encode(), dtype, depth)
        assert _native.read_contexts(text.encode(), DIM, True)[0].tobytes() == rows.tobytes()


@pytest.mark.parametrize(
    "body",
    [b'{"contexts": [[1, 2, null]]}', b'{"contexts": [[1, 2]]}', b"", b"[", b'{"contexts": [[1, 2, 3]],}'],
)
def test_control_what_is_not_plain_is_not_read_by_native_code(body):
    assert not check(body, "float32", 2)
