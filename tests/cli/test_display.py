"""What commands show: tables that line up."""

import pytest

from fliphat.lab.display import TextTable

ROWS = [("random", "28,678", "x"), ("FLIPHAT", "608", "yes")]


def test_columns_line_up_and_lines_have_no_spaces_at_their_end():
    table = TextTable.fitting(("policy", "regret", "proven"), ROWS, left=(0, 2))
    assert table.text(ROWS).splitlines() == [
        "policy   regret  proven",
        "-------  ------  ------",
        "random   28,678  x",
        "FLIPHAT     608  yes",
    ]


def test_rows_can_be_given_one_by_one_in_columns_of_fixed_width():
    table = TextTable(("a", "long name"), (4, 2))
    assert table.heading() == "a     long name\n----  ---------"
    assert table.line(("b", "7")) == "b             7"


def test_markdown():
    table = TextTable.fitting(("a", "b"), [("1", "22")], left=(0, 1), markdown=True)
    assert table.text([("1", "22")]).splitlines() == ["| a | b  |", "| - | -- |", "| 1 | 22 |"]


def test_a_table_without_rows_is_as_wide_as_its_names():
    assert TextTable.fitting(("a", "bc"), []).text([]) == "a  bc\n-  --"


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="zip"):
        TextTable(("a", "b"), (1, 1)).line(("1",))
