"""The proof names functions and tests; a name that does not exist would be a step nobody can tick off."""

import re

import pytest

from code_names import ROOT, backticked, exists, missing, tables

PRIVACY = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
STEPS = [row for table in tables(PRIVACY) for row in table if "step" in row]
PROSE = "\n".join(line for line in PRIVACY.splitlines() if not line.startswith("|"))
# What the prose has in backticks and is not the name of a thing in the tree.
NOT_NAMES = {"y"}


@pytest.mark.parametrize("column", ["function", "test"])
@pytest.mark.parametrize("row", STEPS, ids=lambda row: row["step"])
def test_every_step_names_functions_and_tests_that_exist(row, column):
    assert missing(row[column]) == []


def test_every_step_has_a_test_and_nearly_all_a_function():
    assert [row["step"] for row in STEPS if not re.search(r"\w{10,}", row["test"])] == []
    # B2 adds two bounds; E9 is about every message.
    assert [row["step"] for row in STEPS if not backticked(row["function"])] == ["B2", "E9"]


def test_tests_named_without_backticks_are_found_too():
    for name in re.findall(r"\btest_\w+\b(?!\.py)", PRIVACY):
        assert exists(name), name


def test_every_name_in_the_prose_exists():
    assert [name for name in backticked(PROSE) if name not in NOT_NAMES and not exists(name)] == []


def test_the_tables_are_read_whole():
    parts = {"A": 4, "B": 4, "C": 8, "D": 4, "E": 10, "F": 8, "G": 5, "P": 5}
    steps = [row["step"] for row in STEPS]
    for part, least in parts.items():
        numbers = [int(step[1:]) for step in steps if step[0] == part]
        assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) >= least
    assert sum(step[0] in parts for step in steps) == len(steps)


LONGEST_PROSE = 120


def too_long(text):
    """Lines of prose beyond the longest: code, tables, and lines that are one link or word are exempt."""
    found, code = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            code = not code
        elif not code and not line.lstrip().startswith("|"):
            without_links = re.sub(r"\]\([^)]*\)|<?https?://\S+", "", line)
            if len(without_links) > LONGEST_PROSE:
                found.append(line)
    return found


@pytest.mark.parametrize(
    "path", [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], ids=lambda path: path.name
)
def test_no_line_of_prose_is_longer_than_a_screen(path):
    assert too_long(path.read_text(encoding="utf-8")) == []


def test_a_long_line_of_prose_is_found_and_tables_code_and_links_are_not():
    words = "a word and " * 12
    assert too_long(f"short\n{words}\n") == [words]
    assert too_long(f"| {words} |\n```\n{words}\n```\nsee [it](https://example.org/{'x' * 120})\n") == []


def test_places_named_in_contributing_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names = [name.removeprefix("python ") for name in backticked(text)]
    places = [name for name in names if re.fullmatch(r"[\w.-]*/[\w./-]+|\w+\.(?:py|md)", name)]
    assert len(places) > 25
    assert [place for place in places if not (ROOT / place).exists() and not exists(place)] == []


@pytest.mark.parametrize(
    "name",
    [
        "gradient/map.rs",
        "rust/core/src/noise/exact/",
        "tests/helpers/exactness.py",
        "scalar.rs: BLOCK_ROWS",
        "entropy.rs: SecureRng",
        "SecureRng::from_os",
        "accounting.delta_from_rho(rho, epsilon) <= delta",
        "Engine.select",
        "test_bad_input",
        "FLIPHAT",
        'mechanism="laplace"',
        "fliphat audit",
        "`test_bad_input` of `tests/kernels/test_gradient.py`",
    ],
)
def test_names_of_every_kind_are_understood(name):
    assert missing(name if "`" in name else f"`{name}`") == []


@pytest.mark.parametrize(
    "name",
    [
        "gradient/nowhere.rs",
        "core/src/exact",  # a folder is written with a slash at its end
        "rust/nowhere/",
        "entropy.rs: BLOCK_ROWS",  # exists, but in another file
        "real.rs: no_such_item",
        "SecureRng::no_such_function",
        "NoSuchType::from_os",
        "Engine.no_such_method",
        "accounting.no_such_function",
        "scales.delta_from_rho",  # exists, but in another module
        "test_no_such_test",
        "NoSuchClass",
        'no_such_option="laplace"',
        "fliphat dance",
        "`test_bad_input` of `tests/project/test_package.py`",
        "`test_bad_input` of `tests/test_nowhere.py`",
    ],
)
def test_control_names_that_do_not_exist_are_found(name):
    assert missing(name if "`" in name else f"`{name}`") != []
