"""The tables of docs/peers.md are those of the committed run, and what they say of the peers holds."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
update_peers = SimpleNamespace(**runpy.run_path(str(ROOT / "benches" / "update_peers.py")))
PAGE = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")


def test_every_number_is_that_of_the_committed_run():
    assert update_peers.updated(PAGE) == PAGE


def test_control_a_wrong_number_would_be_noticed():
    for name in ("noise calibrated", "Han LDP-SGD"):
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| {name}"))
        wrong = PAGE.replace(row, re.sub(r"\d+", "7", row))
        assert wrong != PAGE and update_peers.updated(wrong) == PAGE


@pytest.mark.parametrize(
    ("policy", "low", "high"),
    [
        ("tree, greedy", 0, 0.10),
        ("blocks, greedy", 0, 0.04),
        ("moment", 0, 0.04),
        ("Shariff-Sheffet, published", 0.95, 1.1),
        ("Zheng, published", 0.95, 1.1),
    ],
)
def test_peers_have_the_regret_over_random_play_that_their_noise_implies(policy, low, high):
    """At d = 20, epsilon = 1: calibrated ones learn, published constants of two are random play."""
    rows = update_peers.read()
    random = float(rows["random", "20", ""]["mean_regret"])
    assert low <= float(rows[policy, "20", "1.0"]["mean_regret"]) / random <= high
