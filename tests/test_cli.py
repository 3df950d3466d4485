import json
import os
import subprocess
import sys

import pytest

from fliphat import _speed, cli


def test_bench_prints_a_ratio_for_every_race(capsys, monkeypatch):
    few = [lambda: _speed._projection(400), lambda: _speed._dense_gradient("f4", 64, 40)]
    monkeypatch.setattr("fliphat._bench.races", lambda: iter(few))
    assert cli.main(["bench", "--repeats", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| kernel") and "project_l1" in lines[2] and "64 x 40" in lines[3]
    assert cli.main(["bench", "--repeats", "1", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["races"]) == 2


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["bench", "--repeats", "0"]])
def test_bad_arguments_are_one_line_and_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2
    assert "error:" in capsys.readouterr().err.splitlines()[-1]


def test_the_installed_command_works_without_a_terminal():
    command = os.path.join(os.path.dirname(sys.executable), "fliphat")
    shown = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("fliphat ")
    assert "\033" not in shown.stdout
