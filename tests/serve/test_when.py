"""What docs/when.md says to do, rehearsed; and what can be said when a server starts."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="needs fliphat[serve]")
pytest.importorskip("prometheus_client", reason="needs fliphat[serve]")

from fliphat import FLIPHAT
from fliphat.cli import main
from fliphat.policies.store.inspect import inspect_path
from fliphat.serve.opening import open_policy, read_age
from served import OPERATOR, SERVE, Process, served

DIM = 6
GOOD = np.ones((2, DIM), np.float32)
TOML = f"dim = {DIM}\nsparsity = 2\nepsilon = 1.0\ndelta = 0.01\nfirst_episode = 10\n"


def refused(*arguments):
    """Return what a server that does not start says, in one line."""
    command = [sys.executable, "-c", SERVE, "serve", *map(str, arguments), "--no-token", "--port", "1"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert told.returncode == 2 and told.stderr.count("\n") == 1, told.stderr
    return told.stderr


def test_every_test_that_the_page_names_is_there():
    root = Path(__file__).parents[2]
    named = set(re.findall(r"`(test_\w+)`", (root / "docs" / "when.md").read_text()))
    there = "".join(path.read_text() for path in (root / "tests").rglob("test_*.py"))
    assert len(named) >= 7 and all(f"def {name}(" in there for name in named), named


@pytest.fixture
def witnessed(tmp_path):
    """A policy's file, and a store that was played with a witness, over a release."""
    file = tmp_path / "policy.toml"
    file.write_text(f'{TOML}witness = "{tmp_path / "witness"}"\n')
    with Process(tmp_path / "s", "--policy", str(file)) as server:
        server.client.select_batch(np.stack([GOOD] * 5))
        assert server.end()[0] == 0
    shutil.copytree(tmp_path / "s", tmp_path / "backup")
    return file


def played_on(tmp_path, file, rounds):
    with Process(tmp_path / "s", "--policy", str(file)) as server:
        server.client.select_batch(np.stack([GOOD] * rounds))
        assert server.end()[0] == 0


def test_a_restored_copy_that_the_witness_refuses_is_not_served(tmp_path, witnessed):
    played_on(tmp_path, witnessed, 10)  # over a release, and then the disk is lost
    shutil.rmtree(tmp_path / "s")
    (tmp_path / "backup").rename(tmp_path / "s")
    assert "not the newest copy" in refused(tmp_path / "s", "--policy", witnessed)


def test_a_restored_copy_of_the_same_episode_goes_on(tmp_path, witnessed):
    played_on(tmp_path, witnessed, 2)  # these are lost, and nothing was released
    shutil.rmtree(tmp_path / "s")
    (tmp_path / "backup").rename(tmp_path / "s")
    played_on(tmp_path, witnessed, 1)
    assert inspect_path(tmp_path / "s")["rounds"] == 6


def test_a_store_whose_witness_is_lost_is_not_served(tmp_path, witnessed):
    (tmp_path / "witness").unlink()
    assert "witness" in refused(tmp_path / "s", "--policy", witnessed)
    plain = tmp_path / "plain.toml"
    plain.write_text(TOML)
    assert "witness" in refused(tmp_path / "s", "--policy", plain)


# A user is erased


def test_the_command_erases_a_user_in_a_store_and_at_a_server(tmp_path, capsys):
    store, token = tmp_path / "s", tmp_path / "o"
    token.write_text(f"{OPERATOR}\n")

    def opened():
        return FLIPHAT(dim=DIM, sparsity=2, epsilon=1.0, delta=0.01, first_episode=50, store=store)

    with opened() as policy:
        for number in range(4):
            policy.select(GOOD, user=17 if number else 18)
    assert main(["forget", str(store), "--user", "17"]) == 0
    assert capsys.readouterr().out.startswith("3 rounds")
    with served(opened) as server:
        url = server.client().url
        assert main(["forget", url, "--user", "18", "--operator-token-file", str(token)]) == 0
        assert capsys.readouterr().out.startswith("1 rounds")
        assert main(["forget", url, "--user", "18"]) == 2 and "401" in capsys.readouterr().err
        assert main(["forget", str(store), "--user", "18"]) == 2  # the server has it


def test_the_command_erases_a_user_of_a_database_that_is_played(database, capsys):
    url = database.new()
    with Process(url, *["--dim", "6", "--sparsity", "2", "--epsilon", "1", "--delta", "0.01"]) as server:
        for number in range(3):
            server.client.select(GOOD, user=f"u{number}")
        assert main(["forget", url, "--user", "u1"]) == 0
        assert capsys.readouterr().out.startswith("1 rounds")
        server.client.select(GOOD, user="u4")


# Retention


@pytest.mark.parametrize(
    ("written", "seconds"), [("'30d'", 30 * 86400), ("00:10:00", 600), ("'36h'", 129600), ("'90s'", 90)]
)
def test_retention_by_time_is_given_in_a_file_and_kept_with_the_store(tmp_path, written, seconds):
    file = tmp_path / "policy.toml"
    file.write_text(f"{TOML}retention = {written}\n")
    with Process(tmp_path / "s", "--policy", str(file)) as server:
        server.client.select(GOOD)
        assert server.end()[0] == 0
    with open_policy(str(tmp_path / "s"), None, "group") as policy:  # a restart without the file
        assert policy._engine.ages.retention.total_seconds() == seconds
    file.write_text(f"{TOML}retention = '999d'\n")
    assert "can only be made shorter" in refused(tmp_path / "s", "--policy", file)


@pytest.mark.parametrize("wrong", [30.5, "30", "d", "-3d", "3 days", True, None])
def test_a_retention_that_says_nothing_is_refused(wrong):
    with pytest.raises(ValueError, match="retention must be"):
        read_age("retention", wrong)


# Connections of a database


def test_workers_that_the_database_has_no_connections_for_do_not_start(database):
    url = database.new()
    new = ["--dim", "6", "--sparsity", "2", "--epsilon", "1", "--delta", "0.01"]
    told = refused(url, *new, "--workers", "30")
    assert "30 workers of 8 threads need up to 300 connections, and the database allows 197" in told


def test_a_worker_takes_no_more_connections_than_it_says(database, tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    from fliphat.serve import Client
    from fliphat.serve.connections import BESIDE_THREADS
    from served import WRITE

    url, limits = database.new(), tmp_path / "limits.toml"
    limits.write_text("threads = 3\n")
    new = ["--dim", "6", "--sparsity", "2", "--epsilon", "1", "--delta", "0.01", "--limits", str(limits)]
    with Process(url, *new) as server, database.connect() as admin:

        def play(number):
            with Client(server.client.url, WRITE) as client:
                for _ in range(20):
                    client.update(client.select(GOOD), 1.0)
                    count = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
                    most.append(admin.execute(count, (url.rsplit("/", 1)[1],)).fetchone()[0])

        most = []
        with ThreadPoolExecutor(12) as pool:
            list(pool.map(play, range(12)))
        assert 2 <= max(most) <= 3 + BESIDE_THREADS


def test_a_holdout_is_a_share_that_plays_uniformly(tmp_path):
    new = ["--dim", "6", "--sparsity", "2", "--epsilon", "1", "--delta", "0.01", "--holdout", "0.5"]
    with Process(tmp_path / "s", *new) as server:
        decided = server.client.select(GOOD)
        assert 0.25 <= decided.probability <= 1 and server.end()[0] == 0
    with FLIPHAT.open(tmp_path / "s") as policy:
        assert policy._settings.exploration_in(5) == 0.5
    linear = ["--dim", "6", "--arms", "2", "--context-norm", "1", "--epsilon", "1", "--delta", "0.01"]
    assert "--holdout" in refused(tmp_path / "t", *linear, "--holdout", "0.5")
