"""The examples run, and say what they are meant to show."""

import importlib.util
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def output(name, *arguments):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def example(name):
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name.removesuffix(".py"), EXAMPLES / name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tested():
    tested = {"mobile_health.py", "click_service.py", "open_bandit.py"}
    tested.add("check_guarantee.py")  # in tests/privacy/test_group.py
    assert {path.name for path in EXAMPLES.glob("*.py")} == tested


def test_mobile_health():
    text = output("mobile_health.py")
    assert text.startswith("Proven: joint differential privacy with epsilon = 4.0")
    assert "only the first 3 rounds of a user can be learned from" in text
    shares = [int(share) for share in re.findall(r"(-?\d+)%", text)]
    assert len(shares) >= 6 and shares[-1] > 60 > 30 > shares[0]
    # It publishes what is true: every effect of .7 to .9, about as large as it is.
    found = [
        (float(value), float(true))
        for value, true in re.findall(r"([+-]\d\.\d\d)   \(([+-]\d\.\d\d)\)", text)
    ]
    assert sum(true != 0 for _, true in found) == 5
    assert all(abs(value - true) < 0.4 for value, true in found)


@pytest.mark.slow
def test_mobile_health_publishes_what_it_finds_on_twenty_seeds():
    # The settings were chosen on other seeds.
    module = example("mobile_health.py")
    matter, errors, false = np.flatnonzero(module.EFFECT), [], []
    for seed in range(5000, 5020):
        published = module.run(seed, noise_seed=seed + 10**6).published
        errors.append(np.abs(published - module.EFFECT)[matter].max())
        false.append(np.abs(np.delete(published, matter)).max())
    assert np.median(errors) < 0.15 and np.sum(np.array(errors) < 0.25) >= 18
    assert np.max(false) < 0.3


def test_click_service():
    text = output("click_service.py")
    before, after = (re.search(rf"{when} the restart: +(.*)", text)[1] for when in ("before", "after"))
    assert before == after and before.startswith("30000 requests")
    rates = [float(rate) for rate in re.findall(r"(\d+\.\d)%", text)]
    assert rates[-1] > 70 > 60 > rates[0]
    assert "proven: True" in text


def test_open_bandit_without_its_data_says_where_they_are():
    assert "pip download --no-deps" in output("open_bandit.py")


def test_open_bandit_on_a_wheel_of_the_same_layout(tmp_path):
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(tmp_path / "obp.whl", "w") as wheel:
        for policy, best in (("random", 1 / 34), ("bts", 0.5)):
            chances = np.full(34, (1 - best) / 33)
            chances[5] = best
            items = rng.choice(34, 3000, p=chances)
            clicks = (rng.random(3000) < np.where(items == 5, 0.4, 0.1)).astype(int)
            lines = ["item_id,position,click,propensity_score"]
            lines += [
                f"{i},{1 + at % 3},{c},{chances[i]}"
                for at, (i, c) in enumerate(zip(items, clicks, strict=True))
            ]
            wheel.writestr(f"obp/dataset/obd/{policy}/men/men.csv", "\n".join(lines))
    text = output("open_bandit.py", str(tmp_path / "obp.whl"))
    truth = float(re.search(r"really earned ([\d.]+)%", text)[1])
    for low, high in re.findall(r"interval ([\d.]+)% to ([\d.]+)%", text):
        assert float(low) < truth < float(high)


@pytest.mark.parametrize("name", ["mobile_health.py", "click_service.py", "open_bandit.py"])
def test_examples_say_how_to_run_them(name):
    assert f"python examples/{name}" in (EXAMPLES / name).read_text()
