"""Bodies are read by native code alone; what it makes of them is what Python's own reader makes of them."""

import json
import math
import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fliphat import _native
from fliphat.serve import bodies
from fliphat.serve.refusal import Refusal

DIM, MOST = 3, 5


class Twice(ValueError):
    """A member with a name that another has."""


def members(pairs):
    if len({name for name, _ in pairs}) < len(pairs):
        raise Twice
    return dict(pairs)


def twin(body, dtype):
    """Return what `read_body` returns, slowly: an integer of any length, and then what a double is of it."""
    try:
        # Objects inside are of no interest: they may have members twice.
        record = json.loads(body.decode(), object_pairs_hook=lambda pairs: ("object", pairs))
    except (ValueError, RecursionError):
        return "malformed"
    if not (isinstance(record, tuple) and record[0] == "object"):
        return "no record"
    try:
        record = members(record[1])
    except Twice:
        return "no record"
    if any(isinstance(value, str) and not encodable(value) for value in every(record)):
        return "malformed"
    if "contexts" in record:
        record["contexts"] = lists(record["contexts"], dtype)
        if record["contexts"] is None:
            return "shape"
    return {name: value if name == "contexts" else plain(value) for name, value in record.items()}


def every(value):
    if isinstance(value, dict):
        value = list(value.items())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from every(one)
    else:
        yield value


def encodable(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def double(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def plain(value):
    if isinstance(value, tuple):
        return {}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return double(value)
    return value


def lists(value, dtype, depth=3):
    """Return nested lists of equal lengths as an array, None if they are something else."""
    if not isinstance(value, list) or not value or depth == 0:
        return None
    if not any(isinstance(one, list) for one in value):
        if len(value) != DIM:
            return None
        with np.errstate(over="ignore"):
            return np.array([double(one) for one in value]).astype(dtype)
    found = [lists(one, dtype, depth - 1) for one in value]
    if any(one is None for one in found) or len({one.shape for one in found}) > 1:
        return None
    return np.stack(found)


def check(body, dtype="float32"):
    """Compare both ways of reading a body, and return what native code made of it."""
    found, expected = _native.read_body(body, DIM, dtype == "float64", 2**31), twin(body, dtype)
    if isinstance(expected, str) or isinstance(found, str):
        # A body may be wrong in two ways, of which either may be said.
        assert isinstance(found, str) and isinstance(expected, str), (found, expected)
        return found
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if name == "contexts":
            assert found[name].dtype == value.dtype and found[name].shape == value.shape
            same = found[name] == value
            assert (same | ~(np.isfinite(found[name]) | np.isfinite(value))).all()
        else:
            assert repr(found[name]) == repr(value)  # NaN is not itself
    return found


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
            st.just(""), st.integers(-400, 400).map(lambda e: f"e{e}"), st.sampled_from(["E+5", "e", "e-"])
        ),
    ),
    st.sampled_from(
        ["null", "true", '"1"', "NaN", "-Infinity", "-0", "-0.0", "[]", "{}", '{"a":[1,2]}', "", "9" * 400]
    ),
)
_spaces = st.sampled_from(["", "", "", " ", "\n\t", "\r", "\x0b"])


@settings(max_examples=400, deadline=None)
@given(
    numbers=st.lists(st.lists(_written, min_size=1, max_size=4), min_size=1, max_size=3),
    space=_spaces,
    dtype=st.sampled_from(["float32", "float64"]),
    wrap=st.booleans(),
)
@example(numbers=[["1e39", "-1e39", "1e-46"]], space="", dtype="float32", wrap=False)
@example(numbers=[["9007199254740993", "1e23", "0.1"]], space="", dtype="float64", wrap=False)
@example(numbers=[["1", "2", "1e999"], ["9" * 400, "1", "2"]], space=" ", dtype="float64", wrap=True)
def test_numbers_are_those_of_pythons_own_reader(numbers, space, dtype, wrap):
    comma = f"{space},{space}"
    rows = comma.join(f"[{space}{comma.join(row)}{space}]" for row in numbers)
    text = f"[{rows}]" if not wrap else f"[[{rows}]]"
    check(f'{{{space}"contexts"{space}:{text}{space}}}{space}'.encode(), dtype)


_name = st.one_of(st.text(max_size=5), st.integers(-(2**70), 2**70), st.floats(), st.none(), st.booleans())


@settings(max_examples=300, deadline=None)
@given(
    record=st.dictionaries(
        st.sampled_from(["contexts", "user", "key", "users", "keys", "other"]),
        st.one_of(
            st.just([[1.0, 2.5, -3.0]] * 2),
            st.just([1, 2, 3]),
            _name,
            st.lists(_name, max_size=2),
            st.dictionaries(st.text(max_size=2), _name, max_size=2),
        ),
        max_size=5,
    ),
    escaped=st.booleans(),
)
def test_members_are_those_of_pythons_own_reader(record, escaped):
    check(json.dumps(record, ensure_ascii=escaped).encode("utf-8", "surrogatepass"))


@settings(max_examples=400, deadline=None)
@given(at=st.integers(0, 84), byte=st.integers(0, 255), cut=st.integers(0, 90))
def test_a_damaged_body_is_read_alike(at, byte, cut):
    body = bytearray(
        b'{"contexts": [[1.5, -2, 3e2], [0, 0.25, null]], "user": "a\\u0062\\n", "key": [17, {}]}'
    )
    body[at] = byte
    for damaged in (bytes(body), bytes(body[:cut])):
        try:
            damaged.decode()
        except UnicodeDecodeError:
            assert isinstance(_native.read_body(damaged, DIM, False, MOST), str)
        else:
            check(damaged)


def test_doubles_have_the_same_bits():
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = struct.unpack("<6d", rng.integers(0, 2**63, 6, np.uint64).tobytes())
        rows = np.nan_to_num(np.array(values), nan=0.5, posinf=1.0, neginf=-1.0).reshape(2, DIM)
        found = check(json.dumps({"contexts": rows.tolist(), "key": "k"}).encode(), "float64")
        assert found["contexts"].tobytes() == rows.tobytes()


@pytest.mark.parametrize("element", ["1e999", "-1e999", "9" * 400, "null", "NaN", '"a"', "{}"])
def test_an_element_that_is_no_finite_number_is_its_own_rounds_alone(element):
    body = f'{{"contexts": [[[1, 2, 3]], [[1, {element}, 3]], [[4, 5, 6]]], "keys": [1, 2, 3]}}'
    rounds = bodies.read_rounds(body.encode(), DIM)
    assert rounds.count == 3 and rounds.keys == [1, 2, 3]
    assert np.isfinite(rounds.contexts).all(axis=(1, 2)).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b'{"contexts": [[1, 2]]}', 422, "dim = 3"),
        (b'{"contexts": [1, 2, 3]}', 422, "one list for each arm"),
        (b"", 400, "JSON"),
        (b"[", 400, "JSON"),
        (b'{"contexts": [[1, 2, 3]],}', 400, "JSON"),
        (b'{"contexts": [[1, 2, 3]], "user": "", "key": 1}', 422, "not empty"),
        (b'{"contexts": [[[1, 2, 3]]], "users": [9223372036854775808]}', 422, "64 bits"),
        (b'{"contexts": [%s]}' % b",".join([b"[[1, 2, 3]]"] * 6), 413, "at most 5 rounds"),
        (b'{"contexts": [[[1, 2, 3]]], "users": [1, 2, 3, 4, 5, 6]}', 413, "at most 5 rounds"),
        (b"[1]", 422, "an object"),
    ],
)
def test_what_is_wrong_is_said(body, status, words):
    with pytest.raises(Refusal, match=words) as refused:
        bodies.read_rounds(body, DIM, most=MOST)
    assert refused.value.status == status


def test_control_the_twin_and_the_reader_can_differ(monkeypatch):
    monkeypatch.setattr(json, "loads", lambda text, **_: ("object", [("contexts", [[1.0, 2.0, 3.5]])]))
    with pytest.raises(AssertionError):
        check(b'{"contexts": [[1, 2, 3]]}')
