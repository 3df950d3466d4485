"""The documentation: its code runs, its numbers are measured, and its reference is complete."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

from fliphat import FLIPHAT, Iht, cli
from fliphat.environments import SparseLinear
from fliphat.lab.experiments.catalog import NAMES
from fliphat.simulation import play

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
BLOCKS = [
    (page.relative_to(DOCS).as_posix(), number, code)
    for page in PAGES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.S))
]
CHOOSING = (DOCS / "choosing.md").read_text()


@pytest.mark.parametrize(
    ("page", "number", "code"), BLOCKS, ids=[f"{page}-{number}" for page, number, _ in BLOCKS]
)
def test_code_in_the_docs_runs(page, number, code):
    exec(compile(code, f"{page} block {number}", "exec"), {})


def test_the_blocks_are_found():
    assert {"index.md", "choosing.md", "reproduction.md"} <= {page for page, _, _ in BLOCKS}
    # A fence in another spelling would not be run.
    for page in PAGES:
        languages = re.findall(r"^\s*```(\S*)", page.read_text(), re.M)
        assert set(languages) <= {"python", "sh", "", "text"}, page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_in_the_docs_parse(page):
    text = page.read_text().replace("\n", " ")
    for line in re.findall(
        r"`(fliphat (?:demo|simulate|plan|reproduce|audit|bench) -[^`]*|fliphat reproduce [a-z][^`]*)`", text
    ):
        cli._parser().parse_args(line.split()[1:])
    for block in re.findall(r"```sh\n(.*?)```", page.read_text(), re.S):
        for line in re.findall(r"(?:^|&& )fliphat ([^#\n]*)", block, re.M):
            cli._parser().parse_args(line.split())


def shown(argument):
    """The table of regret against one argument, as the page shows it."""
    found = re.search(rf"\| `{argument}` \|(.*)\|\n.*\n\| regret \|(.*)\|", CHOOSING)
    scales, regret = (row.split("|") for row in found.groups())
    return [(float(scale), float(value)) for scale, value in zip(scales, regret, strict=True)]


@pytest.mark.parametrize("argument", ["context_scale", "reward_scale"])
def test_what_wrong_scales_cost_is_measured(argument):
    table = shown(argument)
    assert len(table) >= 5
    for scale, regret in table:
        options = {"reward_scale": 1.5, argument: scale}
        measured = [
            play(
                FLIPHAT(100, 10, 2.0, 0.01, fit=Iht(), seed=seed, **options),
                SparseLinear(100, seed=seed),
                8000,
                to_the_end=True,
            ).regret.sum()
            for seed in range(6)
        ]
        assert np.mean(measured) == pytest.approx(regret, rel=0.02)


def test_every_experiment_is_described():
    page = (DOCS / "reproduction.md").read_text()
    assert all(f"| `{name}` |" in page for name in NAMES)


#: Pages of rooms that share one.
SHARED_PAGES = {"lab.baselines": "policies"}


@pytest.mark.parametrize(
    "module",
    [
        "kernels",
        "privacy",
        "policies",
        "environments",
        "lab.baselines",
        "lab.experiments",
        "lab.theory",
        "lab.tables",
    ],
)
def test_the_reference_has_every_public_name(module):
    page = (DOCS / "reference" / f"{SHARED_PAGES.get(module, module.removeprefix('lab.'))}.md").read_text()
    for name in importlib.import_module(f"fliphat.{module}").__all__:
        if (module, name) not in {
            ("policies", "FLIPHAT"),
            ("policies", "PrivateLinear"),
        }:  # listed where people import it from
            assert f"::: fliphat.{module}.{name}\n" in page, name


def test_the_reference_has_what_the_package_exports():
    pages = "".join(path.read_text() for path in (DOCS / "reference").glob("*.md"))
    for name in ("FLIPHAT", "PrivateSparseRegressor", "PrivateSparseClassifier", "lab.planning.plan"):
        assert f"::: fliphat.{name}\n" in pages
