"""Each kernel beside its twins, in one group: `pytest benches --benchmark-enable`."""

import pytest

from fliphat.lab.benchmark.races import one_thread_blas, races


@pytest.fixture(scope="module", params=list(races()), ids=lambda make: None)
def race(request):
    return request.param()


@pytest.mark.parametrize("who", ["kernel", "two threads", "plain NumPy", "best NumPy", "read bandwidth"])
def test_race(timed, race, who):
    contestants = race.contestants()
    if who not in contestants:
        pytest.skip(f"no {who!r} in this race")
    with one_thread_blas():
        timed(contestants[who], f"{race.name}, {race.size}", who)
