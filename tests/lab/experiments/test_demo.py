"""The demo: what it shows is what was run, with and without the packages that make it pretty."""

import importlib.util
import json
import os
import re
import subprocess
import sys

import pytest

from fliphat import FLIPHAT, cli
from fliphat.lab.experiments import run_cell
from fliphat.lab.experiments.catalog import first_look

COLOUR = re.compile(r"\033\[[0-9;]*(3[0-8]|4[0-8]|9[0-7])m")
EPSILONS = [0.5, 1.0, 2.0, 5.0, 10.0]


@pytest.fixture
def one_process(monkeypatch):
    monkeypatch.setattr("fliphat.lab.experiments.executors.cores", lambda: 1)


def without(monkeypatch, *names):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in names else find(name))


def test_the_table_the_guarantee_and_the_figure(tmp_path, capsys, one_process):
    figure = tmp_path / "demo.png"
    assert cli.main(["demo", "--repeats", "1", "--out", str(figure)]) == 0
    shown = capsys.readouterr().out
    rows = re.findall(
        r"^(random|FLIPHAT|no privacy) +([\d.]*) +([\d,]+) +([\d.]+)% +([\d,]+) rounds$", shown, re.M
    )
    assert [row[0] for row in rows] == ["random", *["FLIPHAT"] * 5, "no privacy"]
    assert [float(row[1]) for row in rows[1:6]] == EPSILONS
    regret = [int(row[2].replace(",", "")) for row in rows]
    assert regret == [round(run_cell(cell, 0).regret[-1]) for cell in first_look(1).cells]
    assert regret[0] > 5 * regret[1] > 5 * regret[-1]
    words = " ".join(shown.split())
    assert str(FLIPHAT(400, 10, 1.0, 1e-6, reward_scale=1.5).guarantee) in words and "Proven" in words
    assert "Health of a run with epsilon = 1, from public numbers: no sign of trouble\n" in shown
    assert str(figure) in shown and "fliphat plan --help" in shown and "\033" not in shown
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_json_says_the_same(tmp_path, capsys, one_process):
    assert cli.main(["demo", "--repeats", "2", "--json", "--out", str(tmp_path / "a.svg")]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [row.get("epsilon") for row in record["results"]] == [None, *EPSILONS, None]
    assert {row["repeats"] for row in record["results"]} == {2}
    assert record["health"] == "no sign of trouble"
    assert record["guarantee"].startswith("Proven") and (tmp_path / "a.svg").exists()


def test_without_extras_it_says_what_is_missing(tmp_path, capsys, monkeypatch, one_process):
    without(monkeypatch, "matplotlib", "rich")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo", "--repeats", "1"]) == 0
    assert "needs matplotlib. pip install 'fliphat[experiments]'" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def on_a_terminal(tmp_path, **environment):
    """Run the demo with a terminal for its output, and return what the terminal was sent."""
    pty = pytest.importorskip("pty", reason="needs pseudo-terminals")
    ours, theirs = pty.openpty()
    code = "import sys; from fliphat.cli import main; sys.exit(main(sys.argv[1:]))"
    running = subprocess.Popen(
        [sys.executable, "-c", code, "demo", "--repeats", "1", "--out", str(tmp_path / "a.png")],
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **environment},
    )
    os.close(theirs)
    sent = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # how Linux says that the other end was closed
            break
        if not part:
            break
        sent += part
    os.close(ours)
    assert running.wait() == 0
    return sent.decode()


def test_a_terminal_gets_a_table_that_redraws_itself(tmp_path):
    sent = on_a_terminal(tmp_path)
    assert sent.count("no privacy") > 3 and "\033[1A" in sent and "..." in sent
    assert COLOUR.search(sent)


def test_no_color_is_respected(tmp_path):
    sent = on_a_terminal(tmp_path, NO_COLOR="1")
    assert not COLOUR.search(sent)


def test_a_dumb_terminal_gets_plain_rows(tmp_path):
    sent = on_a_terminal(tmp_path, TERM="dumb")
    assert "\033" not in sent and sent.count("no privacy") == 1
