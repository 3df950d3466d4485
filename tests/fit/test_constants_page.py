"""docs/constants.md lists every constant of the fits, with its value, and no others."""

import ast
import dataclasses
import math
from pathlib import Path

import pytest

from fliphat.fit.dense.constants import DenseTuning
from fliphat.fit.iht import constants as iht
from fliphat.fit.pursuit import constants as pursuit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "constants.md").read_text(encoding="utf-8")
FIT = ROOT / "python" / "fliphat" / "fit"

#: Numbers of formulas: zero, one, halves and doubles, squares and fourth powers, and 8 of the probit's slope.
IN_FORMULAS = {0, 1, 2, 3, 4, 8, 0.5}


def listed(page: str) -> dict[str, list[str]]:
    """Return each row of the page's tables: the cells with values by "section.name"."""
    rows, section, values = {}, "", 0
    for line in page.splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("| constant"):
            values = len(line.split("|")) - 5
        elif line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            assert all(cells), f"an empty cell: {line}"
            key = f"{section}.{cells[0].strip('`')}"
            assert key not in rows, f"twice: {key}"
            rows[key] = cells[1 : 1 + values]
    return rows


def shown(value: object) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {shown(part)}" for name, part in value.items())
    if isinstance(value, tuple):
        return f"({', '.join(shown(part) for part in value)})"
    return "inf" if value == math.inf else f"{value:.6g}" if isinstance(value, float) else str(value)


def of_code() -> dict[str, list[str]]:
    found = {}
    for section, module in (("Pursuit", pursuit), ("Hard thresholding", iht)):
        for name, value in vars(module).items():
            number = isinstance(value, (int, float, tuple, dict))
            if name.isupper() and number:
                found[f"{section}.{name}"] = [shown(value)]
    budgets = (pursuit._SMALL, pursuit._LARGE, pursuit.click_tuning(1.0), pursuit.class_tuning(1.0))
    for field in dataclasses.fields(pursuit.Tuning):
        values = [shown(getattr(tuning, field.name)) for tuning in budgets]
        found[f"Pursuit, by budget and loss.{field.name}"] = values
    for field in dataclasses.fields(DenseTuning):
        found[f"Dense.{field.name}"] = [shown(field.default)]
    return found


def test_the_page_and_the_code_have_the_same_constants_and_values():
    page, code = listed(PAGE), of_code()
    assert sorted(page) == sorted(code)
    assert page == code


@pytest.mark.parametrize("change", [("0.235", "0.236"), ("| `LEAST_SLOPE`", "| `NOT_THERE`")])
def test_control_another_value_or_name_is_noticed(change):
    wrong = PAGE.replace(*change, 1)
    assert wrong != PAGE and listed(wrong) != of_code()


def unnamed(source: str) -> list[tuple[int, float]]:
    """Return the numbers of a source that have no name and are not of a formula, with their lines."""
    tree, cached = ast.parse(source), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "maxsize":
            cached.add(node.value)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id.isupper():
            cached.add(node.value)
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and type(node.value) in (int, float)
        and node.value not in IN_FORMULAS
        and node not in cached
    ]


def test_no_number_of_pursuit_is_without_a_name():
    # A pilot's scales are first written down as 100: what matters is their ratio.
    allowed = {"fit.py": [100, 100]}
    for path in (FIT / "pursuit").glob("*.py"):
        if path.name != "constants.py":
            found = unnamed(path.read_text(encoding="utf-8"))
            assert [value for _, value in found] == allowed.get(path.name, []), f"{path.name}: {found}"


def test_control_an_unnamed_number_is_noticed():
    source = (FIT / "pursuit" / "plan.py").read_text(encoding="utf-8")
    assert [value for _, value in unnamed(source.replace("c.LEAST_SLOPE", "0.02"))] == [0.02]
