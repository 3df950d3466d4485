"""The workflows: they parse, and cover the systems and Pythons that the package is for."""

import re
import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML comes with Dask")

ROOT = Path(__file__).parents[2]
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


def commands(job):
    return " ; ".join(step.get("run", "") for step in job["steps"])


def test_what_is_too_slow_for_every_change_runs_every_night():
    nightly = yaml.safe_load((ROOT / ".github" / "workflows" / "nightly.yml").read_text())
    assert nightly[True]["schedule"]  # YAML reads the key `on` as a truth value
    run = {name: commands(job) for name, job in nightly["jobs"].items()}
    assert "pytest -m slow" in run["slow"]
    assert "pytest -m mutants tests/mutants" in run["mutants"]
    assert "fliphat audit --full" in run["audit"]


def test_the_oldest_versions_are_those_that_are_promised():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text())["jobs"]
    for dependency in project["dependencies"]:
        name, version = dependency.split(">=")
        assert f"'{name}=={version}.*'" in commands(jobs["oldest-numpy"])
    oldest = next(step for step in jobs["oldest-numpy"]["steps"] if "setup-python" in step.get("uses", ""))
    assert oldest["with"]["python-version"] == project["requires-python"].removeprefix(">=")
    rust = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    assert f"cargo +{rust} check" in commands(jobs["oldest-rust"])


def test_a_tag_publishes_what_was_tested():
    release = WHEELS["jobs"]["release"]
    assert release["if"] == "startsWith(github.ref, 'refs/tags/v')" and WHEELS[True]["push"]["tags"] == ["v*"]
    assert set(release["needs"]) == {"wheel", "test", "sdist"}
    # Trusted publishing: an identity, no stored password; and no other job may write.
    assert release["permissions"] == {"contents": "write", "id-token": "write"}
    assert WHEELS["permissions"] == {"contents": "read"}
    assert all("permissions" not in job for name, job in WHEELS["jobs"].items() if name != "release")
    assert release["steps"][-1]["with"]["command"] == "upload"
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert re.findall(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M) == [version]


def test_every_build_of_rust_is_cached():
    for path in FILES:
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            if "pip install '.[test]'" in commands(job) or "cargo" in commands(job):
                assert any("rust-cache" in step.get("uses", "") for step in job["steps"])


def test_no_check_installs_programs_of_the_system():
    script = (ROOT / ".ci" / "run").read_text()
    assert "apt" not in script and "sudo" not in script


def test_hooks_before_a_commit_are_those_of_the_checks():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    script = (ROOT / ".ci" / "run").read_text()
    for hook in hooks:
        assert hook["entry"].removesuffix(" --force-exclude") in script


def test_commands_of_the_project_are_there():
    commands = " ".join(
        step.get("run", "") for path in FILES for step in steps(yaml.safe_load(path.read_text()))
    )
    assert ".ci/run" in commands and (ROOT / ".ci" / "run").exists()
    assert "mkdocs build --strict" in commands and (ROOT / "mkdocs.yml").exists()
