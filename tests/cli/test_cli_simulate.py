import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from fliphat import cli
from made_tables import labelled, logged


def written(path, columns):
    lines = [",".join(columns)]
    lines += [
        ",".join(map(str, row))
        for row in zip(*(np.asarray(c).tolist() for c in columns.values()), strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_one_line_gives_table_figure_and_report(tmp_path, capsys, monkeypatch):
    file = written(tmp_path / "pilot.csv", labelled(400))
    out = tmp_path / "out"
    line = ["simulate", file, "--label", "arm", "--orders", "2", "--epsilon", "1", "10", "--out", str(out)]
    monkeypatch.setattr("sys.argv", ["fliphat", *line])
    assert cli.main([*line, "--workers", "1"]) == 0
    shown = capsys.readouterr().out
    assert "pilot.csv: 400 rounds, each row once; 3 arms" in shown and str(out / "report.html") in shown
    assert sorted(path.name for path in out.iterdir()) == [
        "encoder.json",
        "report.html",
        "study.csv",
        "study.png",
        "study.svg",
    ]
    assert "simulate" in (out / "report.html").read_text()


def test_json_and_every_option(tmp_path, capsys):
    table, _ = logged(3000)
    file = written(tmp_path / "log.csv", {**table, "id": np.arange(3000), "site": np.arange(3000) % 3})
    line = f"simulate {file} --arm shown --reward earned --propensity chance --reward-range 0:1 --drop id".split()
    line += [
        "--categorical",
        "site",
        "--range",
        "u=-1:1",
        "--range",
        "v=-1:1",
        "--missing",
        "indicate",
        "--orders",
        "2",
        "--epsilons",
        "2",
    ]
    line += ["--delta", "1e-5", "--policies", "random", "FLIPHAT", "--rows", "2500", "--sparsity", "6"]
    line += ["--seed", "3", "--workers", "1", "--json", "--out", str(tmp_path / "out")]
    assert cli.main(line) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["rows"] == 2500 and record["delta"] == 1e-5 and record["logged"] is True
    assert record["ranges"] == {"u": [-1.0, 1.0], "v": [-1.0, 1.0]} and record["columns"] == 6
    assert record["settings"]["FLIPHAT, epsilon = 2"]["sparsity"] == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--label", "weight"], "has no column 'weight'"),
        ([], "a table needs a label"),
        (["--label", "arm", "--policy", "nothing"], "policies must be"),
        (["--label", "arm", "--epsilon", "-1"], "epsilons"),
    ],
)
def test_mistakes_are_one_line(tmp_path, capsys, options, message):
    file = written(tmp_path / "t.csv", labelled(50))
    assert cli.main(["simulate", file, *options]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and error.startswith("fliphat: error: ")


@pytest.mark.parametrize("given", ["age", "age=1", "age=a:b", "=1:2"])
def test_mistaken_ranges_are_one_line(given, capsys):
    with pytest.raises(SystemExit):
        cli.main(["simulate", "t.csv", "--label", "arm", "--range", given])
    assert "LOW:HIGH" in capsys.readouterr().err


def test_out_must_be_a_directory(tmp_path, capsys):
    file = written(tmp_path / "t.csv", labelled(50))
    assert cli.main(["simulate", file, "--label", "arm", "--out", file]) == 2
    assert "--out must be a directory" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="sends a POSIX signal")
def test_ctrl_c_in_the_middle_of_processes_leaves_a_report(tmp_path):
    file = written(tmp_path / "t.csv", labelled(30_000))
    out = tmp_path / "out"
    command = [os.path.join(os.path.dirname(sys.executable), "fliphat"), "simulate", file, "--label", "arm"]
    started = subprocess.Popen(
        [*command, "--orders", "2000", "--workers", "2", "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    time.sleep(25)
    started.send_signal(signal.SIGINT)
    shown, errors = started.communicate(timeout=120)
    assert started.returncode == 130 and "Traceback" not in errors
    assert "Stopped early" in shown and (out / "report.html").exists()


def test_a_misspelt_flag_is_answered_with_the_nearest(capsys):
    for typed, meant in (("--lable", "--label"), ("--polcy", "--policy"), ("--missng=drop", "--missing")):
        with pytest.raises(SystemExit):
            cli.main(["simulate", "pilot.csv", typed, "arm"])
        assert f"did you mean {meant}?" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["simulate", "pilot.csv", "--qqqq", "arm"])
    assert "did you mean" not in capsys.readouterr().err
