"""The table of private models in docs/reproduction.md is that of the committed runs."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parents[2]
update_models = SimpleNamespace(**runpy.run_path(str(ROOT / "benches" / "update_models.py")))
PAGE = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")


def test_every_number_is_that_of_the_committed_runs():
    assert update_models.updated(PAGE) == PAGE


def test_control_a_wrong_number_would_be_noticed():
    row = next(line for line in PAGE.splitlines() if line.startswith("| phishing, classes"))
    wrong = PAGE.replace(row, re.sub(r"0\.\d+", "0.777", row))
    assert wrong != PAGE and update_models.updated(wrong) == PAGE


def test_rows_that_opendp_cannot_fit_say_so_and_no_other():
    rows = [line.split("|")[1:-1] for line in PAGE.splitlines() if re.match(r"\| .*(classes|R2) +\|", line)]
    header = next(line.split("|")[1:-1] for line in PAGE.splitlines() if line.startswith("| data  "))
    at = [cell.strip() for cell in header].index("OpenDP")
    for row in rows:
        assert (row[at].strip() == "none") == ("by" not in row[0]), row
