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
