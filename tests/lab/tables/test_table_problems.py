"""Files as people have them: all problems at once with one command to copy, leaks, packed files, wide tables."""

import gzip
import subprocess
import sys
import time

import numpy as np
import pytest

import fliphat
from fliphat import cli
from fliphat.lab.tables import players as cost
from fliphat.lab.tables.bandit import make_bandit
from fliphat.lab.tables.columns import TableProblems
from fliphat.lab.tables.read import read_frame, read_table
from made_tables import labelled, logged

QUICK = {"orders": 1, "policies": ["random"]}


def broken(rows=600):
    table = labelled(rows)
    codes = [f"c{i % 52}" for i in range(rows)]
    return {
        **table,
        "code": codes,
        "note": [f"patient {i} was seen" for i in range(rows)],
        "day": [f"2024-01-{1 + i % 28:02}" for i in range(rows)],
        "weight": ["" if i % 9 == 0 else str(50 + i % 40) for i in range(rows)],
    }


def to_csv(path, table, separator=","):
    lines = [
        separator.join(table),
        *(separator.join(map(str, row)) for row in zip(*table.values(), strict=True)),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_all_problems_come_at_once_with_the_flags_that_solve_them():
    with pytest.raises(TableProblems) as error:
        fliphat.simulate(broken(), label="arm")
    text = str(error.value)
    assert text.startswith("4 things to settle first:")
    for words in (
        "'code' has 52 distinct texts",
        "'note' has 600",
        "'day' holds dates",
        "'weight' misses 67 of 600",
    ):
        assert words in text
    assert sorted(error.value.flags) == sorted(
        ["--drop", "note", "day", "--most-categories", "52", "--missing", "indicate"]
    )
    study = fliphat.simulate(
        broken(), label="arm", drop=["note", "day"], most_categories=52, missing="indicate", **QUICK
    )
    assert study.encoder.missing == ("weight",) and len(study.encoder.columns["code"]) == 52


def test_the_command_to_copy_works(tmp_path, monkeypatch, capsys):
    path = to_csv(tmp_path / "t.csv", broken())
    words = ["simulate", str(path), "--label", "arm", "--drop", "dose", "--policy", "random", "--orders", "1"]
    words += ["--workers", "1", "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["fliphat", *words])
    assert cli.main(words) == 2
    shown = capsys.readouterr().err.strip().splitlines()
    assert shown[-2] == "Copy this:"
    again = shown[-1].split()[1:]
    assert cli.main(again) == 0
    assert "No private policy was played" in capsys.readouterr().out


def test_a_problem_without_a_flag_promises_no_command(tmp_path, monkeypatch, capsys):
    path = to_csv(tmp_path / "t.csv", {"x": range(60), "arm": ["a"] * 60})
    monkeypatch.setattr(sys, "argv", ["fliphat", "simulate", str(path), "--label", "arm"])
    assert cli.main(["simulate", str(path), "--label", "arm"]) == 2
    shown = capsys.readouterr().err
    assert "'arm' has one class" in shown and "Copy this" not in shown


def test_several_misspelled_names_are_all_answered():
    with pytest.raises(TableProblems) as error:
        fliphat.simulate(labelled(60), label="Armm", drop=["dosis"])
    assert "no column 'Armm'; did you mean 'arm'?" in str(error.value)
    assert "no column 'dosis'; did you mean 'dose'?" in str(error.value)


def test_packed_files_semicolons_and_row_numbers(tmp_path):
    plain = to_csv(tmp_path / "t.csv", labelled(50))
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_table(packed)["age"].values.tolist() == read_table(plain)["age"].values.tolist()
    packed.write_bytes(gzip.compress(plain.read_bytes())[:100])
    with pytest.raises(ValueError, match="must be a whole packed file"):
        read_table(packed)
    german = tmp_path / "g.csv"
    german.write_text('"Alter, Jahre, heute";Dosis\n61,5;1\n;2,25\n')
    table = read_table(german)
    assert table["Alter, Jahre, heute"].values[0] == 61.5 and table["Dosis"].values.tolist() == [1, 2.25]
    numbered = tmp_path / "n.csv"
    numbered.write_text(",x,arm\n0,1,a\n1,2,b\n")
    assert list(read_table(numbered).columns) == ["x", "arm"]


@pytest.mark.parametrize("kind", ["missing", "category", "number"])
def test_a_column_that_tells_the_label_is_named(kind):
    table = labelled(1000)
    told = table["arm"] == "b"
    cause = {
        "missing": np.where(told, "", "fever"),
        "category": np.where(told, "late", np.where(np.arange(1000) % 2, "early", "middle")),
        "number": np.where(told, 5.0, 1.0) + np.random.default_rng(0).uniform(0, 1, 1000),
    }[kind]
    study = fliphat.simulate({**table, "cause": cause}, label="arm", missing="indicate", **QUICK)
    (warning,) = (one for one in study.warnings if "nearly always tells whether the best arm is '" in one)
    assert "Column 'cause' alone" in warning and "--drop cause" in warning
    assert ("whether it is missing" in warning) == (kind == "missing")
    shuffled = np.random.default_rng(1).permutation(cause)
    study = fliphat.simulate({**table, "cause": shuffled}, label="arm", missing="indicate", **QUICK)
    assert not any("nearly always" in one for one in study.warnings)


def test_many_small_categories_and_good_columns_are_no_leak():
    table = labelled(300)
    table["street"] = np.array([f"s{i % 40}" for i in range(300)])
    study = fliphat.simulate(table, label="arm", **QUICK)
    assert not any("nearly always" in one for one in study.warnings)


def test_a_column_that_tells_the_reward_of_a_log_is_named():
    table, _ = logged(2000)
    study = fliphat.simulate(
        {**table, "bought": table["earned"] * 7}, arm="shown", reward="earned", propensity="chance", **QUICK
    )
    assert any(
        "Column 'bought' alone, by its value, nearly always tells the reward" in one for one in study.warnings
    )


def test_rewards_of_every_arm_are_played():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 3000)
    doses = {"low": 20 + 10 * x, "high": 20 - 10 * x + rng.normal(0, 1, 3000)}
    study = fliphat.simulate(
        {"x": x, **doses}, rewards=["low", "high"], reward_range=(0, 40), epsilons=[10.0], orders=3
    )
    assert study.arms == ("low", "high") and not study.logged
    assert study.result("constant").mean == pytest.approx(max(doses["low"].mean(), doses["high"].mean()))
    assert study.result("random").mean == pytest.approx(20, abs=1)
    # The better arm of everyone earns about 25.
    assert 23 < study.result("PrivateLinear", 10.0).mean < study.result("LinUCB").mean + 0.5 < 26
    assert study.recommended is not None and "low" in study.answer + "".join(study.arms)
    with pytest.raises(ValueError, match="at least two different columns, one for each arm"):
        fliphat.simulate({"x": x, **doses}, rewards=["low"])
    with pytest.raises(ValueError, match="must be within the reward range 0 to 25"):
        fliphat.simulate({"x": x, **doses}, rewards=["low", "high"], reward_range=(0, 25))


def test_the_constant_arm_of_a_log_is_not_a_maximum_over_luck():
    # Forty arms that all earn a tenth: the best of them in hindsight would earn far more.
    rng = np.random.default_rng(3)
    table = {
        "x": rng.uniform(-1, 1, 8000),
        "shown": rng.integers(0, 40, 8000),
        "earned": rng.random(8000) < 0.1,
    }
    study = fliphat.simulate(
        {**table, "earned": table["earned"].astype(float)}, arm="shown", reward="earned", propensity=1 / 40,
        reward_range=(0, 1), orders=4, policies=["random"],
    )  # fmt: skip
    best = max(table["earned"][table["shown"] == arm].mean() for arm in range(40))
    assert best > 0.13 and study.result("constant").mean == pytest.approx(0.1, abs=0.02)
    assert study.answer.startswith("This log is too thin") or study.result("random").unusual >= 25
    assert f"about {study.result('random').rounds:,} rounds a run out of 8,000 logged rows" in " ".join(
        str(study).split()
    )


def test_costs_grow_with_public_sizes_and_what_takes_minutes_is_skipped():
    for policy in ("LinUCB", "PrivateLinear", "FLIPHAT"):
        small, wide = cost.seconds(policy, 1000, 3, 30), cost.seconds(policy, 1000, 3, 3000)
        assert small < wide and cost.seconds(policy, 100_000, 3, 30) > small
    rng = np.random.default_rng(0)
    table = {f"g{i}": rng.normal(size=60) for i in range(900)}
    table["arm"] = (table["g0"] > 0).astype(int)
    study = fliphat.simulate(table, label="arm", epsilons=[1.0], orders=2, most_seconds=0.05)
    assert study.find("PrivateLinear", 1.0) is None and study.find("random") is not None
    assert "PrivateLinear was not played: with 900 features and 2 arms" in " ".join(str(study).split())


def test_linucb_on_more_columns_than_rows_is_the_same_policy():
    rng = np.random.default_rng(0)
    table = {f"g{i}": rng.normal(size=80) for i in range(120)}
    table["arm"] = (table["g0"] + table["g1"] > 0).astype(int)
    from fliphat.lab.tables.bandit import make_bandit
    from fliphat.lab.tables.players import PlayedRounds, make_player, public_numbers
    from fliphat.lab.tables.read import read_frame

    bandit = make_bandit(read_frame(table), label="arm")
    public = public_numbers(bandit, None, None)
    spanned = make_player("LinUCB", None, public, bandit, rng)
    whole = make_player("LinUCB", None, public, bandit, rng)
    whole.__init__(public, np.zeros((10**3, public.columns), np.float32))
    assert spanned._span is not None and whole._span is None
    for row in bandit.features.matrix[:, None]:
        arms = spanned.choose(row)
        assert np.array_equal(arms, whole.choose(row))
        rounds = PlayedRounds(np.arange(1), row, arms, np.ones(1))
        spanned.learn(rounds)
        whole.learn(rounds)


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_does_not_wait_for_a_slow_run_and_keeps_what_is_done(tmp_path, workers):
    path = to_csv(tmp_path / "t.csv", labelled(300))
    code = (
        "import sys, time\n"
        "from fliphat.lab.tables import study\n"
        "import slow_order\n"
        "study.play_order = slow_order.play\n"
        "from fliphat import cli\n"
        "if __name__ == '__main__':\n"
        "    raise SystemExit(cli.main(sys.argv[1:]))\n"
    )
    (tmp_path / "slow_order.py").write_text(
        "import time\nfrom pathlib import Path\nfrom fliphat.lab.tables.runs import play_order\n"
        "def play(*given):\n"
        "    if given[2] == 'LinUCB':\n"
        f"        Path({str(tmp_path / 'begun')!r}).touch()\n"
        "        time.sleep(300)\n"
        "    return play_order(*given)\n"
    )
    script = tmp_path / "main.py"
    script.write_text(code)
    words = [
        "simulate",
        str(path),
        "--label",
        "arm",
        "--workers",
        str(workers),
        "--out",
        str(tmp_path / "out"),
    ]
    process = subprocess.Popen(
        [sys.executable, str(script), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for _ in range(600):
        if (tmp_path / "begun").exists():
            break
        time.sleep(0.1)
    time.sleep(1.0)
    process.send_signal(2)
    out, err = process.communicate(timeout=120)  # the run would sleep for 300 s
    assert process.returncode == 130
    assert "what was done is kept" in err and "random play" in out
    assert (tmp_path / "out" / "study.csv").exists()


def test_part_of_a_name_finds_the_column():
    table = read_frame({"best treatment": [1, 2], "age": [3, 4]})
    assert "no column 'best'; did you mean 'best treatment'?" in table.without("best")
    assert "it has 'best treatment', 'age'" in table.without("zzz")


def test_a_leak_s_flag_can_be_copied_and_several_reward_columns_are_columns():
    rng = np.random.default_rng(0)
    right = rng.integers(0, 2, 400)
    columns = {"age": rng.normal(size=400), "cause of death": np.where(right == 1, "heart", None)}
    found = make_bandit(read_frame({**columns, "label": right}), label="label", missing="indicate")
    assert any("(--drop 'cause of death')" in warning for warning in found.warnings)
    rewards = {"low": rng.normal(size=400), "high": rng.normal(size=400)}
    found = make_bandit(read_frame({"age": columns["age"], **rewards}), rewards=["low", "high"])
    assert any("was read off columns 'low', 'high': give" in warning for warning in found.warnings)


def test_too_many_columns_are_warned_of_only_where_it_shows():
    rng = np.random.default_rng(0)
    right = rng.integers(0, 2, 600)
    noise = {f"x{i}": rng.normal(size=600) for i in range(60)}
    asked = {"label": "label", "policies": ["PrivateLinear"], "epsilons": [1.0], "orders": 3}
    useless = fliphat.simulate({**noise, "label": right}, **asked)
    assert any("can hardly be told" in warning for warning in useless.warnings)
    told = {f"y{i}": 3.0 * right + rng.normal(size=600) for i in range(60)}
    useful = fliphat.simulate({**told, "label": right}, **asked)
    assert useful.recommended is not None
    assert not any("can hardly be told" in warning for warning in useful.warnings)


def test_several_columns_that_tell_one_arm_of_three_are_one_warning_that_names_the_arm():
    rng = np.random.default_rng(0)
    right = rng.choice(["a", "b", "c"], 600)
    told = {f"gene {i}": np.where(right == "b", 5.0, 1.0) + rng.random(600) for i in range(3)}
    found = make_bandit(read_frame({"age": rng.normal(size=600), **told, "label": right}), label="label")
    (warning,) = (one for one in found.warnings if "nearly always" in one)
    assert "Each of the columns 'gene 0', 'gene 1', 'gene 2' alone" in warning
    assert "whether the best arm is 'b'" in warning and "--drop 'gene 0' 'gene 1' 'gene 2'" in warning
    two = read_frame({"told": 1.0 * (right == "b"), "age": rng.normal(size=600), "label": right == "b"})
    assert any("tells the best arm. If" in one for one in make_bandit(two, label="label").warnings)


def test_a_number_that_each_row_was_given_is_taken_for_an_id_and_a_measurement_is_not():
    rng = np.random.default_rng(0)
    table = {
        "patient": rng.permutation(400) + 1000,
        "income": rng.normal(size=400),
        "age": rng.integers(18, 90, 400),
        "arm": rng.integers(0, 2, 400),
    }
    told = " ".join(fliphat.simulate(table, label="arm", policies=[], epsilons=[], orders=2).warnings)
    assert (
        "Another whole number in every row: patient. If these are ids, leave them out (--drop patient)"
        in told
    )
    table.pop("patient")
    told = " ".join(fliphat.simulate(table, label="arm", policies=[], epsilons=[], orders=2).warnings)
    assert "Another whole number" not in told


def test_numbers_with_signs_are_not_taken_for_categories_and_plain_texts_are():
    rng = np.random.default_rng(0)
    arm = rng.integers(0, 2, 200)
    for pay in ([f"${i % 40},000" for i in range(200)], [f"{i % 30} %" for i in range(200)]):
        with pytest.raises(ValueError, match=r"'pay' holds numbers with signs, .* \(--drop pay\)"):
            fliphat.simulate({"pay": np.array(pay), "age": rng.normal(size=200), "arm": arm}, label="arm")
    wards = {"ward": np.array([f"{i % 5}a" for i in range(200)]), "arm": arm}
    assert fliphat.simulate(wards, label="arm", policies=[], epsilons=[], orders=2).columns == 6


def test_rewards_in_words_are_told_to_be_numbers_together_with_all_else():
    rng = np.random.default_rng(0)
    log = {
        "x": rng.normal(size=200),
        "day": np.array(["2024-01-31"] * 200),
        "shown": rng.integers(0, 2, 200),
        "earned": rng.choice(["yes", "no"], 200),
    }
    with pytest.raises(ValueError, match="2 things") as caught:
        fliphat.simulate(log, arm="shown", reward="earned", propensity=0.5)
    assert "column 'earned' must hold numbers: write 1 and 0 for yes and no" in str(caught.value)
    assert "column 'day' holds dates" in str(caught.value)


@pytest.mark.parametrize(("chance", "fits"), [(1 / 3, True), (0.9, False), (0.1, False)])
def test_chances_that_can_not_be_those_of_the_log_are_named(chance, fits):
    rng = np.random.default_rng(0)
    log = {
        "x": rng.normal(size=6000),
        "shown": rng.integers(0, 3, 6000),
        "earned": rng.integers(0, 2, 6000),
    }
    asked = {"arm": "shown", "reward": "earned", "policies": [], "epsilons": [], "orders": 2}
    told = " ".join(fliphat.simulate(log, propensity=chance, **asked).warnings)
    assert ("The chances do not fit the log" in told) is not fits


def test_of_a_log_the_rounds_that_were_played_are_told_to_be_too_few_not_its_rows():
    rng = np.random.default_rng(0)
    log = {f"u{i}": rng.normal(size=12_000) for i in range(12)}
    log |= {"shown": rng.integers(0, 34, 12_000), "earned": rng.integers(0, 2, 12_000)}
    asked = {"policies": ["PrivateLinear"], "epsilons": [0.5], "orders": 2}
    study = fliphat.simulate(log, arm="shown", reward="earned", propensity=1 / 34, **asked)
    (told,) = [warning for warning in study.warnings if "can hardly be told" in warning]
    fewest = int(told.split("before about ")[1].split()[0].replace(",", ""))
    assert study.result("PrivateLinear", 0.5).rounds < fewest < study.rows
