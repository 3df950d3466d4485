"""The steps of the Dockerfile and the compose file, run as scripts. The image itself is not built here."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

from fliphat import FLIPHAT
from fliphat.serve import Client, ServerError
from served import OPERATOR, served

yaml = pytest.importorskip("yaml", reason="PyYAML comes with Dask")
pytest.importorskip("uvicorn", reason="needs fliphat[serve]")
pytest.importorskip("prometheus_client", reason="needs fliphat[serve]")

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
SERVICE = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["fliphat"]


def test_every_script_of_the_image_exists_and_is_copied():
    scripts = set(re.findall(r"deploy/(\w+\.sh)", DOCKERFILE))
    assert scripts == {"build.sh", "install.sh", "start.sh"}
    assert all((ROOT / "deploy" / name).exists() for name in scripts)
    copied = re.search(r"^COPY (deploy/.*) /deploy/$", DOCKERFILE, re.M)[1].split()
    assert set(copied) == {f"deploy/{name}" for name in re.findall(r"(?<![\w])/deploy/(\w+\.sh)", DOCKERFILE)}
    assert "USER 10001" in DOCKERFILE and "STOPSIGNAL SIGTERM" in DOCKERFILE


def test_the_compose_file_gives_what_the_start_needs():
    start = (ROOT / "deploy" / "start.sh").read_text()
    assert set(SERVICE["environment"]) <= set(re.findall(r"FLIPHAT_\w+", start))
    assert SERVICE["secrets"] == re.findall(r"\$secrets/(\w+)", start)
    assert SERVICE["ports"][0].startswith("127.0.0.1:")
    grace = int(SERVICE["stop_grace_period"].removesuffix("s"))
    assert grace > 30  # longer than a request may wait


def prepared(tmp_path):
    """Do what the compose file says is to be done before the first start, from an empty directory."""
    script = ROOT / "deploy" / "prepare.sh"
    assert f"sh deploy/{script.name} ." in (ROOT / "compose.yaml").read_text()
    turns = []
    for _ in range(2):
        subprocess.run(["sh", str(script), "."], cwd=tmp_path, check=True)
        turns.append({path: path.read_text() for path in tmp_path.rglob("*") if path.is_file()})
    found, again = turns
    assert found == again  # done again, it changes nothing
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "secrets").iterdir())
    declared = yaml.safe_load((ROOT / "compose.yaml").read_text())["secrets"]
    tokens = {}
    for name in SERVICE["secrets"]:  # where the container has them
        text = found[tmp_path / declared[name]["file"]]
        (tmp_path / "secrets" / name).write_text(text)
        tokens[name] = text.strip()
    return tokens


def start_and_play(tmp_path, path):
    """Do what the container does, with its paths moved into a folder of this test."""
    tokens = prepared(tmp_path)
    dim = tomllib.loads((tmp_path / "policy.toml").read_text())["dim"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        "PATH": f"{path}:{os.environ['PATH']}",
        "FLIPHAT_STORE": str(tmp_path / "data" / "store"),
        "FLIPHAT_POLICY": str(tmp_path / "policy.toml"),
        "FLIPHAT_HOST": "127.0.0.1",
        "FLIPHAT_PORT": str(port),
        "FLIPHAT_SECRETS": str(tmp_path / "secrets"),
    }
    for rounds in (3, 6):  # the second start goes on with the first one's store
        process = subprocess.Popen(["sh", str(ROOT / "deploy" / "start.sh")], env=environment)
        with Client(f"http://127.0.0.1:{port}", tokens["write_token"]) as client:
            for _ in range(600):
                assert process.poll() is None
                try:
                    client.get("/readyz")
                    break
                except (OSError, ServerError):
                    time.sleep(0.05)
            for _ in range(3):
                decision = client.select(np.ones((2, dim), np.float32))
                assert client.update(decision, 0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        shown = subprocess.run(
            ["fliphat", "inspect", environment["FLIPHAT_STORE"]],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert f"{rounds} rounds played" in shown


def test_the_start_of_the_container_runs_here(tmp_path):
    start_and_play(tmp_path, Path(sys.executable).parent)


@pytest.mark.slow
def test_the_image_is_built_and_started_step_by_step_here(tmp_path):
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns("target", ".venv", ".git", "*.so", "__pycache__", "docs", "tests")
    shutil.copytree(ROOT, source, ignore=ignored)
    for script, *arguments in (
        ("build.sh", source, tmp_path / "wheels"),
        ("install.sh", tmp_path / "wheels", tmp_path / "opt"),
    ):
        command = ["sh", str(ROOT / "deploy" / script), *map(str, arguments)]
        subprocess.run(command, check=True, cwd=tmp_path)
    (tmp_path / "empty").mkdir()
    start_and_play(tmp_path / "empty", tmp_path / "opt" / "bin")


def test_the_unit_of_systemd_runs_what_the_container_runs():
    unit = (ROOT / "deploy" / "fliphat.service").read_text()
    start = (ROOT / "deploy" / "start.sh").read_text()
    given = dict(re.findall(r"^Environment=(\w+)=(.*)$", unit, re.M))
    assert {name for name in given if name.startswith("FLIPHAT_")} <= set(re.findall(r"FLIPHAT_\w+", start))
    assert re.search(r"^ExecStart=/bin/sh \S*/deploy/start.sh$", unit, re.M) and "kill -HUP $MAINPID" in unit
    assert int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.M)[1]) > 30
    if shutil.which("systemd-analyze"):
        told = subprocess.run(
            ["systemd-analyze", "verify", "--recursive-errors=no", str(ROOT / "deploy" / "fliphat.service")],
            capture_output=True,
            text=True,
            check=False,
        ).stderr
        assert not re.search("Unknown|Failed to parse|Invalid", told), told


def test_alerts_ask_for_numbers_that_there_are(tmp_path):
    rules = yaml.safe_load((ROOT / "deploy" / "alerts.yml").read_text())["groups"][0]["rules"]
    asked = set(re.findall(r"fliphat_\w+", " ".join(rule["expr"] for rule in rules)))
    codes = set(re.findall(r'code="([^"]+)"', " ".join(rule["expr"] for rule in rules)))
    store = tmp_path / "s"
    with served(lambda: FLIPHAT(dim=6, sparsity=2, epsilon=1.0, delta=0.01, store=store)) as server:
        server.ask("POST", "/select", {}, token=None)
        told = server.ask("GET", "/metrics", token=OPERATOR)[1].decode()
    there = set(re.findall(r"^(fliphat_\w+)", told, re.M))
    assert asked <= there and len(asked) >= 8
    assert 'fliphat_refusals_total{code="token"} 1.0' in told and {"busy", "token"} <= codes
