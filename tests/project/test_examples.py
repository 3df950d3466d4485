"""The examples run, and say what they are meant to show."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def output(name):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_tested():
    tested = {"mobile_health.py", "click_service.py"}
    assert {path.name for path in EXAMPLES.glob("*.py")} == tested


def test_mobile_health():
    text = output("mobile_health.py")
    assert text.startswith("Proven: joint differential privacy with epsilon = 4.0")
    assert "only the first 3 rounds of a user can be learned from" in text
    shares = [int(share) for share in re.findall(r"(-?\d+)%", text)]
    assert len(shares) >= 6 and shares[-1] > 60 > 30 > shares[0]


def test_click_service():
    text = output("click_service.py")
    before, after = (re.search(rf"{when} the restart: +(.*)", text)[1] for when in ("before", "after"))
    assert before == after and before.startswith("30000 requests")
    rates = [float(rate) for rate in re.findall(r"(\d+\.\d)%", text)]
    assert rates[-1] > 70 > 60 > rates[0]
    assert "proven: True" in text


@pytest.mark.parametrize("name", ["mobile_health.py", "click_service.py"])
def test_examples_say_how_to_run_them(name):
    assert f"python examples/{name}" in (EXAMPLES / name).read_text()
