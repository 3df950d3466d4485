"""What people's files hold: each either works as documented or is refused with its column and a fix."""

import numpy as np
import pytest

import fliphat
from fliphat.lab.tables import read
from fliphat.lab.tables.columns import encode
from fliphat.lab.tables.read import Category, Dates, Numbers, read_frame, read_table


def rows(columns, count=60):
    rng = np.random.default_rng(0)
    base = {"age": rng.uniform(20, 80, count).round(1), "arm": rng.choice(list("abc"), count)}
    return {**base, **columns}


def to_csv(path, columns, names=None, separator=","):
    lines = [separator.join(names or columns)]
    lines += [separator.join(map(str, values)) for values in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def refused(path, *, label="arm", **options):
    with pytest.raises(ValueError) as error:
        fliphat.simulate(path, label=label, **options)
    return str(error.value)


def test_numbers_categories_and_missing_values_are_told_apart(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('\ufeffa;b;c\n1;x;"1;5"\n;y;\n 3e2 ;NA;z\n', encoding="utf-8")
    table = read_table(path)
    assert np.array_equal(table["a"].values, [1, np.nan, 300], equal_nan=True)
    assert table["b"].levels == ("x", "y") and table["b"].codes.tolist() == [0, 1, -1]
    assert table["c"].levels == ("1;5", "z")


def test_a_file_and_frames_of_every_kind_give_the_same_columns(tmp_path):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = rows({"whole": np.arange(60), "flag": np.arange(60) % 2 == 0})
    frame = pandas.DataFrame(columns)
    frame.to_csv(tmp_path / "t.csv", index=False)
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    frame["arm"] = frame["arm"].astype("category")
    frame["whole"] = frame["whole"].astype("Int64")
    tables = [
        read_frame(frame),
        read_frame(columns),
        read_frame(pyarrow.table(columns)),
        read_table(tmp_path / "t.parquet"),
        read_frame(frame.convert_dtypes()),
    ]
    text = read_table(tmp_path / "t.csv")
    for table in tables:
        assert np.array_equal(table["age"].values, text["age"].values)
        assert np.array_equal(table["whole"].values, text["whole"].values)
        assert table["arm"].levels == text["arm"].levels
        assert np.array_equal(table["arm"].codes, text["arm"].codes)
        assert isinstance(table["flag"], Numbers)
    assert len(read_table(tmp_path / "t.parquet", rows=7)) == len(read_table(tmp_path / "t.csv", rows=7)) == 7


def test_features_are_between_minus_one_and_one():
    table = read_frame(
        {"x": [0.0, 5.0, 10.0, 99.0], "kind": ["a", "b", "a", ""], "zip": [1, 2, 1, 2], "same": [3, 3, 3, 3]}
    )
    made = encode(table, ["x", "kind", "zip", "same"], {"x": (0.0, 10.0)}, ["zip"])
    assert made.encoder.names == ("x", "kind=a", "kind=b", "kind is not known", "zip=1", "zip=2")
    assert made.matrix[:, 1].tolist() == [-1, 0, 1, 1]  # cut at the range
    assert made.matrix[:, 2:5].tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert made.constant == ("same",) and made.own_ranges == () and made.own_levels == ("kind", "zip")
    assert made.encoder.columns["x"] == (0.0, 10.0) and made.matrix.dtype == np.float32


def test_ranges_of_the_table_itself_are_its_inner_points_and_said_to_be():
    values = np.r_[np.linspace(0, 1, 1000), 1e9]
    study = fliphat.simulate(
        {"x": values, "arm": np.arange(1001) % 2}, label="arm", epsilons=[1.0], orders=1, policies=["random"]
    )
    assert study.ranges["x"][1] < 1.01
    assert any("1 and 99 % points (x)" in warning for warning in study.warnings)
    given = fliphat.simulate(
        {"x": values, "arm": np.arange(1001) % 2},
        label="arm",
        orders=1,
        policies=["random"],
        ranges={"x": (0, 1)},
    )
    assert not any("99 %" in warning for warning in given.warnings)
    assert "not protected" in given.warnings[0]


def test_missing_values_are_refused_dropped_or_indicated(tmp_path):
    columns = rows({"weight": ["" if i % 10 == 0 else 50 + i for i in range(60)]})
    path = to_csv(tmp_path / "t.csv", columns)
    message = refused(path)
    assert "column 'weight' misses 6 of 60 values" in message and "--missing indicate" in message
    quick = {"label": "arm", "orders": 1, "policies": ["random"]}
    assert fliphat.simulate(path, missing="drop", **quick).rows == 54
    assert fliphat.simulate(path, missing="indicate", **quick).columns == 4
    columns["arm"] = ["", *columns["arm"][1:]]
    message = refused(to_csv(tmp_path / "u.csv", columns))
    assert "column 'arm' misses 1 of 60" in message
    # A row without its label can't be played, whatever its other columns have.
    indicated = fliphat.simulate(tmp_path / "u.csv", missing="indicate", **quick)
    assert indicated.rows == 59 and any(
        "most often in column 'arm' (1 of 60): 1 rows" in w for w in indicated.warnings
    )
    columns["void"] = [""] * 60
    message = refused(to_csv(tmp_path / "v.csv", columns), missing="drop")
    assert "every row misses a value, most often in column 'void'" in message


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"arm": ["a"] * 60}, "column 'arm' has one class: there must be at least two arms"),
        ({"arm": [f"c{i % 500}" for i in range(60)]}, "column 'arm' has 60 classes"),
        ({"arm": np.linspace(0, 1, 60)}, "group rare ones, or cut a measurement into classes"),
        ({"notes": [f"patient number {i}" for i in range(60)]}, "'notes' has 60 distinct texts"),
        ({"seen": [f"2024-01-{1 + i % 28:02}" for i in range(60)]}, "column 'seen' holds dates"),
        ({"seen": [f"{1 + i % 28}.2.1999 10:30" for i in range(60)]}, r"days since the study began"),
        ({"big": [float("inf"), *range(59)]}, "column 'big' has 1 infinite values"),
    ],
)
def test_columns_that_cannot_be_used_are_named_with_a_fix(tmp_path, columns, message):
    assert message in refused(to_csv(tmp_path / "t.csv", rows(columns)))


def test_five_hundred_classes_are_refused_and_can_be_asked_for(tmp_path):
    columns = {"x": np.arange(5000) % 7, "arm": [f"c{i % 500}" for i in range(5000)]}
    path = to_csv(tmp_path / "t.csv", columns)
    assert "has 500 classes" in refused(path) and "--most-arms" in refused(path)
    study = fliphat.simulate(path, label="arm", most_arms=500, orders=1, policies=["random", "constant"])
    assert len(study.arms) == 500


def test_dates_in_frames_are_refused_by_name():
    day = np.datetime64("2024-01-01") + np.arange(60)
    assert isinstance(read_frame(rows({"day": day}))["day"], Dates)
    with pytest.raises(ValueError, match=r"column 'day' holds dates.*--drop day"):
        fliphat.simulate(rows({"day": day}), label="arm")
    study = fliphat.simulate(rows({"day": day}), label="arm", drop=["day"], orders=1, policies=["random"])
    assert study.rows == 60


def test_names_twice_missing_or_unknown(tmp_path):
    path = to_csv(tmp_path / "t.csv", rows({"b": range(60)}), names=["age", "arm", "age"])
    assert "more than one column 'age': rename or remove" in refused(path)
    path = to_csv(tmp_path / "u.csv", rows({"b": range(60)}), names=["age", "arm", ""])
    assert "column 3 of u.csv has no name" in refused(path)
    path = to_csv(tmp_path / "v.csv", rows({}))
    assert "v.csv has no column 'dose'; it has 'age', 'arm'" in refused(path, label="dose")
    assert "no column 'Agee'; did you mean 'age'?" in refused(path, drop=["Agee"])
    assert "has no column 'dose'" in refused(path, ranges={"dose": (0, 1)})
    assert "low < high" in refused(path, ranges={"age": (5, 5)})
    assert "not a numeric column that is used" in refused(path, ranges={"arm": (0, 1)})


def test_frames_with_names_twice():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([[1, 2, 0], [3, 4, 1]], columns=["x", "x", "arm"])
    with pytest.raises(ValueError, match="the DataFrame has more than one column 'x'"):
        fliphat.simulate(frame, label="arm")


def test_files_that_are_no_tables(tmp_path):
    empty = tmp_path / "e.csv"
    empty.touch()
    assert "e.csv is empty: it needs a header line" in refused(empty)
    header = tmp_path / "h.csv"
    header.write_text("x,arm\n")
    assert "h.csv has a header and no rows" in refused(header)
    ragged = tmp_path / "r.csv"
    ragged.write_text("x,arm\n1,a\n1,2,b\n")
    assert "row 2 of r.csv has 3 values and the header 2 names" in refused(ragged)
    latin = tmp_path / "l.csv"
    latin.write_bytes("x,arm\n1,\xe4\n".encode("latin-1"))
    assert "l.csv must be text in UTF-8" in refused(latin)
    with pytest.raises(FileNotFoundError):
        fliphat.simulate(tmp_path / "none.csv", label="arm")
    with pytest.raises(TypeError, match="table must be a path, a DataFrame or a mapping"):
        fliphat.simulate(7, label="arm")


def test_a_parquet_file_that_is_none(tmp_path):
    pytest.importorskip("pyarrow")
    fake = tmp_path / "f.parquet"
    fake.write_text("x,arm\n1,a\n")
    assert "f.parquet must be a Parquet file" in refused(fake)


def test_a_file_of_10_gb_is_refused_by_its_size_and_its_first_rows_can_be_read(tmp_path):
    path = to_csv(tmp_path / "t.csv", rows({}))
    with open(path, "r+b") as file:
        file.truncate(10 * 10**9)  # sparse: no disk is used
    message = refused(path)
    assert "t.csv has 10.0 GB, more than the 1 GB" in message and "--rows 100000" in message
    # Reading goes no further than it must.
    study = fliphat.simulate(path, label="arm", rows=50, orders=1, policies=["random"])
    assert study.rows == 50


def test_large_parquet_files_are_refused_by_their_cells(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(rows({})), tmp_path / "t.parquet")
    monkeypatch.setattr(read, "MOST_CELLS", 100)
    assert "has 120 cells, more than the 100" in refused(tmp_path / "t.parquet")


def test_missing_marks_are_no_category():
    column = read_frame({"kind": ["a", None, "?", "NA", "b"]})["kind"]
    assert isinstance(column, Category) and column.levels == ("a", "b")
    assert column.codes.tolist() == [0, -1, -1, -1, 1]
