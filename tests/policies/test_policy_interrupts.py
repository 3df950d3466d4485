"""Interrupts of single calls whose every outcome is known, and by real signals; `tests/store/test_cuts.py` has all lines."""

import signal
import time
from pathlib import Path

import numpy as np
import pytest

from cut_calls import CALLS, FOLLOWING, Interrupt, finish, points, traced
from fliphat import FLIPHAT, Iht
from fliphat.policies import CopyError
from fliphat.policies.engine import files
from policy_model import DIM, Fits, without_syncs

# A file whose opening was interrupted is closed by the interpreter, with a warning.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_an_over_limit_round_that_was_cut_off_leaves_no_mark(monkeypatch):
    # The next person's round takes the same place: their reward must count.
    fits, marked, every = Fits(monkeypatch), 0, [None]
    for stop in every:
        policy = FLIPHAT(dim=DIM, sparsity=1, epsilon=1.0, delta=0.01, first_episode=3, fit=Iht(growth=2))
        policy.update(policy.select(np.ones((2, DIM)), user="a"), 1.0)
        visits, cut = traced(lambda p=policy: p.select(np.ones((2, DIM)), user="a"), stop)
        happened = policy.rounds == 2  # cut off after it counted, or not at all
        while policy.rounds < 3:
            assert policy.update(policy.select(np.ones((2, DIM)), user=f"b{policy.rounds}"), 2.0)
        policy.select(np.ones((2, DIM)), user="c")
        assert fits.calls[-1][1][2].tolist() == [True, not happened, True], stop
        marked += cut and not happened
        if stop is None:
            every += points(visits)
    assert marked > 20


def prepared(directory, monkeypatch, call, where):
    without_syncs(monkeypatch)
    return CALLS[call].prepare(directory, Fits(monkeypatch), where=where)


@pytest.mark.parametrize("where", ["memory", "sqlite"])
def test_the_checks_can_fail(tmp_path, monkeypatch, where):
    # The controls: an estimate shown and then computed again, a reward lost, a reward at another's row.
    play = prepared(tmp_path / "a", monkeypatch, "select", where)
    play.visible[0] = [99.0]
    with pytest.raises(AssertionError, match="released twice"):
        play.look()
    play = prepared(tmp_path / "b", monkeypatch, "select that releases", where)
    play.policy._engine.episode.codes[1] = np.nan
    play.go_on()
    with pytest.raises(AssertionError, match="acknowledged and lost"):
        play.check()
    play = prepared(tmp_path / "c", monkeypatch, "select that releases", where)
    play.policy._engine.episode.codes[:2] = play.policy._engine.episode.codes[1::-1].copy()
    play.go_on()
    with pytest.raises(AssertionError, match="another round's row"):
        play.check()


@pytest.mark.parametrize("where", ["memory", "sqlite"])
def test_a_save_whose_sealing_fails_leaves_no_live_object(tmp_path, monkeypatch, where):
    play = prepared(tmp_path / "a", monkeypatch, "save", where)

    def fail(*_):
        raise OSError("no space")

    with monkeypatch.context() as patch:
        if play.stored:
            patch.setattr("fliphat.policies.engine.snapshot.os.rename", fail)
        else:
            patch.setattr(files, "sync_directory", fail)
        with pytest.raises(OSError, match="no space"):
            CALLS["save"].make(play)
    with pytest.raises(CopyError):
        play.select()
    assert play.go_on()
    play.check()


# Real signals


def after(seconds, call):
    """Run a call that a timer's signal interrupts after some seconds; whether it did."""

    def handler(_, frame):
        # What a test does before a call, and writes down of it, is not the call: it is not cut off.
        if frame is None or Path(frame.f_code.co_filename).name not in ("cut_calls.py", Path(__file__).name):
            raise Interrupt

    old = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        call()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    return False


def hit_by_signals(tmp_path, monkeypatch, name, times, where):
    """Interrupt a call again and again at random moments of its usual time; how many were hit."""
    rng, hits, usual, call = np.random.default_rng(0), 0, [], CALLS[name]
    for i in range(times):
        play = prepared(tmp_path / f"{i}", monkeypatch, name, where)
        if i < 5:
            began = time.perf_counter()
            call.make(play)
            usual.append(time.perf_counter() - began)
            play.policy.close()
            continue
        seconds = max(1e-6, rng.random() * 1.2 * float(np.median(usual)))
        hits += after(seconds, lambda play=play: call.make(play))
        finish(play, call, list(FOLLOWING)[i % 4])
    return hits


SIGNALLED = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")


@SIGNALLED
@pytest.mark.parametrize("where", ["memory", "sqlite"])
@pytest.mark.parametrize("call", ["save", "select that releases"])
def test_some_calls_hit_by_real_signals(tmp_path, monkeypatch, call, where):
    hit_by_signals(tmp_path, monkeypatch, call, 15, where)


@pytest.mark.slow
@SIGNALLED
@pytest.mark.parametrize("where", ["memory", "sqlite"])
@pytest.mark.parametrize("call", ["save", "select that releases"])
def test_a_thousand_calls_hit_by_real_signals(tmp_path, monkeypatch, call, where):
    hits = tries = 0
    while hits < 1000:  # how often a timer hits a call is the machine's affair
        place = tmp_path / str(tries)
        place.mkdir()
        hits += hit_by_signals(place, monkeypatch, call, 400, where)
        tries += 400
        assert tries <= 16_000
    print(f"{call}, {where}: {hits} of about {tries} interrupted")
