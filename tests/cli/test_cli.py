import json
import os
import re
import subprocess
import sys

import pytest

from fliphat import cli
from fliphat.lab.benchmark import races

# In the order of the help.
COMMANDS = [
    "demo",
    "simulate",
    "plan",
    "reproduce",
    "audit",
    "bench",
    "serve",
    "inspect",
    "forget",
    "export",
    "verify",
]


def test_bench_prints_a_ratio_for_every_race(capsys, monkeypatch):
    few = [lambda: races._projection(400), lambda: races._dense_gradient("f4", 64, 40)]
    monkeypatch.setattr("fliphat.lab.benchmark.table.races", lambda: iter(few))
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
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert "error:" in captured.err and "--help)" in captured.err


def test_the_installed_command_works_without_a_terminal():
    command = os.path.join(os.path.dirname(sys.executable), "fliphat")
    shown = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("fliphat ")
    assert "\033" not in shown.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_that_parse(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main([command, "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    examples = [line.strip() for line in shown.split("examples:\n")[1].splitlines()]
    assert len(examples) >= 2
    for example in examples:
        program, *arguments = example.split("#")[0].split(">")[0].split()
        assert program == "fliphat" and arguments[0] == command
        assert callable(cli._parser().parse_args(arguments).run)
    assert ("--json" in shown) == (command not in ("serve", "export")) and "\033" not in shown


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    shown = capsys.readouterr().out
    commands = re.findall(r"^ {4}(\w+)\b", shown.split("examples:")[0], re.M)
    assert commands == COMMANDS


def interrupt_after(calls, result):
    """Stand in for a slow step: Ctrl-C comes in the middle of the last one."""
    done = []

    def step(*arguments, **options):
        if len(done) == calls:
            raise KeyboardInterrupt
        done.append(arguments)
        return result(*arguments, **options)

    return step


def test_ctrl_c_keeps_finished_races(capsys, monkeypatch):
    few = [lambda: races._projection(400), lambda: races._dense_gradient("f4", 64, 40)]
    monkeypatch.setattr("fliphat.lab.benchmark.table.races", lambda: iter(few))
    monkeypatch.setattr("fliphat.lab.benchmark.table.best_times", interrupt_after(1, races.best_times))
    assert cli.main(["bench", "--repeats", "1", "--json"]) == 130
    captured = capsys.readouterr()
    assert len(json.loads(captured.out)["races"]) == 1
    assert "stopped after 1 of 2 races" in captured.err and "Traceback" not in captured.err


def test_ctrl_c_keeps_finished_audits_and_says_how_to_go_on(capsys, monkeypatch):
    from fliphat.lab.audit import table as audit_table

    monkeypatch.setattr(audit_table, "audit_case", interrupt_after(2, audit_table.audit_case))
    assert cli.main(["audit", "--runs", "2000", "--json"]) == 130
    captured = capsys.readouterr()
    record = json.loads(captured.out)
    assert len(record["findings"]) == 2 and not record["complete"] and not record["sound"]
    third = audit_table.all_cases()[2].name
    assert f"stopped after 2 of {len(audit_table.all_cases())} cases: --case {third!r}" in captured.err


@pytest.mark.parametrize("no_color", [False, True])
def test_nothing_is_coloured_where_there_is_no_terminal(no_color):
    environment = {**os.environ, **({"NO_COLOR": "1"} if no_color else {})}
    command = os.path.join(os.path.dirname(sys.executable), "fliphat")
    plan = ["plan", "--dim", "50", "--sparsity", "5", "--epsilon", "1", "--delta", "0.01"]
    for arguments in (plan, ["plan"], ["audit", "--runs", "1000", "--case", "niht"]):
        shown = subprocess.run([command, *arguments], capture_output=True, text=True, env=environment)
        assert "\033" not in shown.stdout + shown.stderr and shown.stdout + shown.stderr


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_a_reader_that_leaves_early_is_no_error():
    command = os.path.join(os.path.dirname(sys.executable), "fliphat")
    plan = "plan --dim 50 --sparsity 5 --epsilon 1 --delta 0.01 --json --rounds 100000000"
    piped = subprocess.run(f"{command} {plan} | head -c 10", shell=True, capture_output=True, text=True)
    assert piped.stdout == '{\n  "setti' and piped.stderr == ""


def test_a_new_command_is_one_new_file(tmp_path, monkeypatch):
    (tmp_path / "greet.py").write_text(
        "ORDER = 12\n\ndef add(commands):\n"
        "    commands.add_parser('greet', help='say hello').set_defaults(run=lambda chosen: 7)\n"
    )
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path)])
    assert cli.main(["greet"]) == 7
    assert [command.__name__.rsplit(".")[-1] for command in cli._commands()][:3] == [
        "demo",
        "greet",
        "simulate",
    ]
