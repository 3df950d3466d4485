"""The notebooks run from the first cell to the last, and show what they are meant to show."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def kernels_notebook():
    notebook = nbformat.read(EXAMPLES / "kernels.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "committed without outputs"
    return NotebookClient(notebook, timeout=300, kernel_name="python3").execute()


def outputs(notebook, kind):
    return [
        output for cell in notebook.cells for output in cell.get("outputs", []) if output.output_type == kind
    ]


def test_the_kernels_notebook_runs_and_draws_six_pictures(kernels_notebook):
    pictures = [one for one in outputs(kernels_notebook, "display_data") if "image/png" in one.data]
    assert len(pictures) == 6
    assert outputs(kernels_notebook, "error") == []


def test_it_says_what_the_paper_does_not_prove_and_finds_the_coefficients(kernels_notebook):
    text = "".join(one.text for one in outputs(kernels_notebook, "stream") if one.name == "stdout")
    assert "No privacy is proven" in text
    found = {int(column) for column in re.search(r"found \[([\d ]+)\]", text)[1].split()}
    assert {5, 30, 77} <= found
    assert not [one for one in outputs(kernels_notebook, "stream") if one.name == "stderr"]


@pytest.fixture(scope="module")
def first_study():
    notebook = nbformat.read(EXAMPLES / "first_study.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "committed without outputs"
    return NotebookClient(notebook, timeout=300, kernel_name="python3").execute()


def test_the_first_study_runs_and_shows_its_answer_figures_and_guarantee(first_study):
    shown = outputs(first_study, "execute_result")
    assert sum("image/png" in one.data for one in shown) == 2  # the study's figure and the plan's
    cards = [one.data["text/html"] for one in shown if "fliphat-card" in one.data.get("text/html", "")]
    study, plan, policy, guarantee = cards
    assert "is worth it from epsilon" in study and "always benign" in study
    assert "of what random play loses" in plan and "PrivateLinear" in policy
    assert "<strong>proven</strong>" in guarantee
    assert outputs(first_study, "error") == []
    assert not [one for one in outputs(first_study, "stream") if one.name == "stderr"]
