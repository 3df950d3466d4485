import csv
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
update_readme = SimpleNamespace(**runpy.run_path(str(ROOT / "benches" / "update_readme.py")))
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, re.S))
def test_the_examples_run(code):
    exec(compile(code, "README.md", "exec"), {})


def test_ci_runs_the_commands_that_the_readme_shows():
    ci = (ROOT / ".ci" / "run").read_text()
    commands = re.findall(r"```sh\n(.*?)```", README, re.S)[0]
    main, tests = (line.split("#")[0].strip() for line in commands.splitlines())
    assert tests in ci
    assert main.split("&& ")[1] in ci


def test_the_guarantee_is_quoted_verbatim():
    quoted = " ".join(line[2:] for line in README.splitlines() if line.startswith("> "))
    names = {}
    exec(compile(re.search(r"```python\n(.*?)```", README, re.S)[1], "README.md", "exec"), names)
    assert quoted == str(names["policy"].guarantee) and quoted.startswith("Proven")
    # What the page says of it: it learns.
    assert np.mean(names["rewards"][:500]) < 0.9 and np.mean(names["rewards"][-500:]) > 1.7


def test_every_number_is_what_the_committed_runs_and_the_code_say():
    """``python benches/update_readme.py`` writes them; the CSV files are those of ``fliphat reproduce``."""
    assert update_readme.updated(README) == README


def test_control_a_wrong_number_would_be_noticed():
    first = f"| **{update_readme.regret('regret-vs-time', policy='FLIPHAT')[0]:.0f}**"
    for right in (update_readme.share(), update_readme.small_delta_costs(), first, "> Proven"):
        assert right in README
        wrong = README.replace(right, re.sub(r"\d+|Proven", "7", right))
        assert update_readme.updated(wrong) != wrong and update_readme.updated(wrong) == README


def test_both_runs_at_the_published_delta_agree():
    again = update_readme.regret("regret-vs-delta", policy="FLIPHAT", delta=0.01)
    assert again == update_readme.regret("regret-vs-time", policy="FLIPHAT")


def test_the_tables_of_speed_are_the_kept_races_and_a_wrong_ratio_would_be_noticed():
    page = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    assert update_readme.updated(page, ["races"]) == page
    row = next(line for line in README.splitlines() if line.startswith("| peel laplace"))
    for text, blocks in ((README, ["speed"]), (page, ["races"])):
        wrong = text.replace(row, row.replace(" ms |", " s |"))
        assert wrong != text and update_readme.updated(wrong, blocks) == text
    # Of the kernels that are shown, the worst ratio is among them.
    own = [cells for cells in update_readme.races()[1:] if cells[0].startswith(update_readme.MISSION)]
    worst = min(own, key=update_readme.gain)
    assert f"| {worst[0]} | {worst[1]} |" in README.split("## Speed")[1].split("## ")[0]


def test_the_sections_and_links_are_there():
    sections = re.findall(r"^## (.*)", README, re.M)
    assert sections == ["Install", "Quick start", "Guarantee", "Results", "Speed", "Limitations", "Documents"]
    for target in re.findall(r"\]\((?!http)([^)#]+)", README):
        assert (ROOT / target).exists(), target


def test_the_regret_table_is_the_committed_run():
    lines = (ROOT / "docs" / "figures" / "regret-vs-time.csv").read_text().splitlines()
    last = {}
    for row in csv.DictReader(lines):
        if row["policy"] == "FLIPHAT" and row["round"] == "20000":
            last[float(row["epsilon"])] = round(float(row["mean_regret"]))
    shown = next(line for line in README.splitlines() if "fliphat, proven" in line)
    numbers = [int(cell) for cell in re.findall(r"\*\*(\d+)\*\*", shown)]
    assert numbers == [last[epsilon] for epsilon in (0.5, 1.0, 2.0, 5.0, 10.0)]


def test_rewards_beside_other_libraries_are_the_kept_ones_and_a_wrong_one_would_be_noticed():
    page = (ROOT / "docs" / "beside-others.md").read_text(encoding="utf-8")
    assert update_readme.updated(page, ["libraries"]) == page
    row = next(
        line for line in page.splitlines() if line.startswith("| PrivateLinear, epsilon = 1 (private)")
    )
    wrong = page.replace(row, re.sub(r"0\.\d+", "0.777", row))
    assert wrong != page and update_readme.updated(wrong, ["libraries"]) == page
