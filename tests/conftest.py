"""What holds for every test: no times are asserted, also not by Hypothesis, and every draw is charged."""

import pytest
from hypothesis import HealthCheck, settings

from observed_draws import observed

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

#: Tests that break noise on purpose, as the audit's controls do.
BREAK_NOISE = ("lab/", "mutants/")
#: Tests in which nothing but a fit draws; others hand noise to kernels themselves.
ONLY_FITS_DRAW = ("regression/",)

_SEEN = {"fits": 0, "draws": 0}


@pytest.fixture(autouse=True)
def draws_are_charged(request):
    """Price every fit's draws again; `uncharged_draws` marks a test that breaks the noise to see it noticed."""
    with observed() as seen:
        yield seen
    _SEEN["fits"] += seen.fits
    _SEEN["draws"] += seen.draws
    place = request.node.nodeid.removeprefix("tests/")
    if request.node.get_closest_marker("uncharged_draws") or place.startswith(BREAK_NOISE):
        return
    assert not seen.uncharged
    assert not (seen.stray and place.startswith(ONLY_FITS_DRAW)), "noise was drawn that no fit accounts for"


def pytest_sessionfinish(session):
    """Hand what a worker of xdist observed to whoever sums it up."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["observed"] = dict(_SEEN)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Add what a worker observed; one that crashed says nothing."""
    for name, count in getattr(node, "workeroutput", {}).get("observed", {}).items():
        _SEEN[name] += count


def pytest_terminal_summary(terminalreporter):
    """Say how much was observed."""
    terminalreporter.write_line("{draws} draws of {fits} fits were priced again".format(**_SEEN))
