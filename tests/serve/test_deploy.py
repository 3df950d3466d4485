"""The steps of the Dockerfile and the compose file, run as scripts. The image itself is not built here."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fliphat.serve import Client, ServerError

yaml = pytest.importorskip("yaml", reason="PyYAML comes with Dask")
pytest.importorskip("uvicorn", reason="needs fliphat[serve]")
pytest.importorskip("prometheus_client", reason="needs fliphat[serve]")

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
SERVICE = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["fliphat"]
POLICY = 'dim = 6\nsparsity = 2\nepsilon = 1.0\ndelta = 0.01\nfit = "pursuit"\n'


def test_every_script_of_the_image_exists_and_is_copied():
    scripts = set(re.findall(r"deploy/(\w+\.sh)", DOCKERFILE))
    assert scripts == {path.name for path in (ROOT / "deploy").iterdir()}
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


def start_and_play(tmp_path, path):
    """Do what the container does, with its paths moved into a folder of this test."""
    (tmp_path / "secrets").mkdir()
    for name in SERVICE["secrets"]:
        (tmp_path / "secrets" / name).write_text(f"{name} of this test only\n")
    (tmp_path / "policy.toml").write_text(POLICY)
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
        with Client(f"http://127.0.0.1:{port}", "write_token of this test only") as client:
            for _ in range(600):
                assert process.poll() is None
                try:
                    client.get("/readyz")
                    break
                except (OSError, ServerError):
                    time.sleep(0.05)
            for _ in range(3):
                decision = client.select(np.ones((2, 6), np.float32))
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
    start_and_play(tmp_path, tmp_path / "opt" / "bin")
