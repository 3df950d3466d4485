"""Instructions of each kernel, beside those that the tracked file has."""

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benches"))

import count_instructions as bench


@pytest.fixture(scope="module")
def program():
    for tool in ("valgrind", "cargo"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    return bench.build()


@pytest.mark.slow
@pytest.mark.parametrize("kernel", bench.KERNELS)
def test_a_kernel_takes_about_as_many_instructions_as_in_the_file(program, kernel):
    before = json.loads(bench.KEPT.read_text())
    now = {kernel: bench.count(program, kernel)}
    assert abs(bench.changes(before, now)[kernel]) <= bench.BAND, (before[kernel], now[kernel])


def test_the_file_has_every_kernel():
    assert set(json.loads(bench.KEPT.read_text())) == set(bench.KERNELS)


def test_control_a_tenth_more_is_outside_the_band():
    before = json.loads(bench.KEPT.read_text())
    slower = {kernel: round(1.1 * count) for kernel, count in before.items()}
    assert all(change > bench.BAND for change in bench.changes(before, slower).values())
    assert not any(bench.changes(before, before).values())
