"""Rounds of each bench: ``--benchmark-min-rounds``, 5 unless said otherwise; ``.ci/run`` asks for one."""

import pytest


@pytest.fixture
def timed(benchmark, request):
    """Time `run` in the group and under the name given; `setup` makes its arguments afresh each round."""
    rounds = request.config.getoption("--benchmark-min-rounds")

    def time(run, group, name=None, **how):
        benchmark.group = group
        if name is not None:
            benchmark.name = name
        benchmark.pedantic(run, rounds=rounds, warmup_rounds=int(rounds > 1), **how)

    return time
