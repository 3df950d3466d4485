import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


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
    from fliphat import FLIPHAT

    quoted = " ".join(line[2:] for line in README.splitlines() if line.startswith("> "))
    assert quoted == str(FLIPHAT(dim=400, sparsity=10, epsilon=1.0, delta=1e-2).guarantee)


def test_the_regret_table_is_the_committed_run():
    lines = (ROOT / "docs" / "figures" / "regret-vs-time.csv").read_text().splitlines()
    last = {}
    for row in csv.DictReader(lines):
        if row["policy"] == "FLIPHAT" and row["round"] == "20000":
            last[float(row["epsilon"])] = round(float(row["mean_regret"]))
    shown = next(line for line in README.splitlines() if "fliphat, proven" in line)
    numbers = [int(cell) for cell in re.findall(r"\*\*(\d+)\*\*", shown)]
    assert numbers == [last[epsilon] for epsilon in (0.5, 1.0, 2.0, 5.0, 10.0)]
