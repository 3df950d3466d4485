"""An encoder turns the same person into the same context, whatever shape the person comes in."""

import json

import numpy as np
import pytest

import fliphat
from fliphat.contexts import Encoder
from made_tables import labelled

PEOPLE = Encoder({"age": (20, 80), "ward": ["north", "south"], "zip": ["1234567", "5"]}, missing=["age"])


def test_a_row_a_dict_and_a_frame_give_one_context():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"zip": [5, 1234567], "age": [65, 20], "more": [0, 0], "ward": ["south", "x"]})
    one = PEOPLE.encode({"age": 65, "ward": "south", "zip": 5})
    assert one.tolist() == [0.5, 0.0, 0.0, 1.0, 0.0, 1.0] and one.dtype == np.float32
    for same in (
        [65, "south", 5],
        ("65", " south", "5"),
        frame.iloc[0],
        {"age": 65.0, "ward": "south", "zip": 5.0},
    ):
        assert np.array_equal(PEOPLE.encode(same), one)
    several = PEOPLE.encode(frame)
    assert several.shape == (2, 6) and np.array_equal(several[0], one)
    listed = PEOPLE.encode([{"age": 65, "ward": "south", "zip": 5}, {"age": 20, "ward": "x", "zip": 1234567}])
    assert np.array_equal(listed, several)
    assert np.array_equal(PEOPLE.encode(frame[["age", "ward", "zip"]].to_numpy()), several)


@pytest.mark.parametrize("nothing", [None, float("nan"), "", "NA", "?"])
def test_missing_and_unknown_values_are_zeros_and_one_where_that_is_a_feature(nothing):
    assert PEOPLE.encode({"age": nothing, "ward": nothing, "zip": 6}).tolist() == [0, 1, 0, 0, 0, 0]
    known = Encoder({"ward": ["north"]}, missing=["ward"])
    assert known.encode({"ward": nothing}).tolist() == known.encode({"ward": "a new one"}).tolist() == [0, 1]


def test_numbers_are_cut_to_their_range():
    encoder = Encoder({"x": (0, 10)})
    assert encoder.encode({"x": [-1e308, 0, 5, 10, 1e308, np.inf]})[:, 0].tolist() == [-1, -1, 0, 1, 1, 1]


def test_json_and_back(tmp_path):
    path = tmp_path / "encoder.json"
    text = PEOPLE.to_json(path)
    assert Encoder.from_json(text) == Encoder.from_json(path) == Encoder.from_json(str(path)) == PEOPLE
    assert json.loads(text)["columns"][0] == {"name": "age", "range": [20.0, 80.0]}
    assert Encoder({"age": (20, 80)}) != PEOPLE
    with pytest.raises(ValueError, match="must have format"):
        Encoder.from_json('{"columns": []}')


def test_a_public_table_gives_ranges_and_categories():
    made = Encoder.from_public(
        {"x": np.linspace(0, 100, 1001), "kind": ["b", None, "a"] * 333 + ["a", "b"], "y": np.arange(1001)},
        ranges={"y": (0, 2000)},
    )
    assert made.columns == {"x": (1.0, 99.0), "kind": ["a", "b"], "y": (0.0, 2000.0)}
    assert made.missing == ("kind",) and made.dim == 5
    assert made.norm == pytest.approx(np.sqrt(2 / 3 + 1), abs=1e-3)


@pytest.mark.parametrize(
    ("columns", "missing", "message"),
    [
        ({"x": (1, 1)}, (), r"range of 'x' must be two finite numbers, low < high"),
        ({"x": (0, np.inf)}, (), "range of 'x' must be two finite"),
        ({"x": ["a", "a"]}, (), "categories of 'x' must be different texts"),
        ({"x": ["a", ""]}, (), "none of them empty"),
        ({"x": []}, (), "at least one"),
        ({}, (), "at least one column"),
        ({"x": (0, 1)}, ["y"], r"those of missing, got \['y'\]"),
    ],
)
def test_what_can_not_be_an_encoder_is_named(columns, missing, message):
    with pytest.raises(ValueError, match=message):
        Encoder(columns, missing=missing)


def test_errors_name_the_column_and_never_a_value():
    with pytest.raises(ValueError, match=r"^column 'ward' is not there$"):
        PEOPLE.encode({"age": 5, "zip": 1})
    with pytest.raises(ValueError, match=r"^column 'age' has a range and must hold numbers$"):
        PEOPLE.encode({"age": "secret", "ward": "north", "zip": 1})
    with pytest.raises(ValueError, match=r"values of the 3 columns age, ward, zip, got shape \(2,\)"):
        PEOPLE.encode([1, 2])


def test_what_was_simulated_is_what_is_played():
    from fliphat.lab.tables.bandit import make_bandit
    from fliphat.lab.tables.read import read_frame

    table = {**labelled(200), "weight": [None if i % 7 == 0 else 50.0 + i for i in range(200)]}
    table["zip"] = np.arange(200) % 5 + 1234560
    table["ward"] = [None if i % 11 == 0 else ward for i, ward in enumerate(table["ward"])]
    bandit = make_bandit(read_frame(table), label="arm", missing="indicate", categorical=["zip"])
    encoder = Encoder.from_json(bandit.features.encoder.to_json())
    assert np.array_equal(bandit.features.matrix[:, 1:], encoder.encode(table))
    policy = fliphat.PrivateLinear(
        3, dim=encoder.dim, epsilon=1.0, delta=1e-4, context_norm=encoder.norm, seed=1
    )
    person = {name: values[3] for name, values in table.items()}
    assert policy.select(encoder.encode(person)).arm in range(3)
