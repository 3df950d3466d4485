"""The workflows: they parse, and cover the systems and Pythons that the package is for."""

import re
import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML comes with Dask")

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WHEELS = yaml.safe_load((ROOT / ".github" / "workflows" / "wheels.yml").read_text())


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_step_runs_a_command_or_a_versioned_action(path):
    found = steps(yaml.safe_load(path.read_text()))
    assert found
    for step in found:
        assert ("run" in step) != ("uses" in step)
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@v\d+", step.get("uses", "a/b@v1"))


def test_wheels_are_built_wherever_they_are_tested():
    built = {entry["os"] for entry in WHEELS["jobs"]["wheel"]["strategy"]["matrix"]["include"]}
    tested = set(WHEELS["jobs"]["test"]["strategy"]["matrix"]["os"])
    assert tested <= built
    assert {name.split("-")[0] for name in tested} == {"ubuntu", "macos", "windows"}


def test_the_oldest_and_the_newest_python_are_tested():
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    pythons = WHEELS["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert pythons[0] == oldest.removeprefix(">=") and pythons[-1] == "3.x"


def test_commands_of_the_project_are_there():
    commands = " ".join(
        step.get("run", "") for path in FILES for step in steps(yaml.safe_load(path.read_text()))
    )
    assert ".ci/run" in commands and (ROOT / ".ci" / "run").exists()
    assert "mkdocs build --strict" in commands and (ROOT / "mkdocs.yml").exists()
