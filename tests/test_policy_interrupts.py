"""An interrupt between any two lines of a call: rows are never fitted twice, and rewards stay with their rows."""

import sys

import numpy as np
import pytest

from fliphat import FLIPHAT
from fliphat.policies import engine
from fliphat.policies.errors import StoreError
from policy_model import DIM, Fits


class Interrupt(BaseException):
    """Stands for KeyboardInterrupt, which pytest would take for its own."""


class AfterLines:
    """Raises when the engine has run `count` lines: where a signal's handler could run."""

    def __init__(self, count):
        self.left = count

    def __call__(self, frame, event, _):
        if frame.f_code.co_filename != engine.__file__:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise Interrupt
        return self


def interrupted(call, count):
    """Whether the call was cut off after `count` lines of the engine."""
    sys.settrace(AfterLines(count))
    try:
        call()
    except Interrupt:
        return True
    finally:
        sys.settrace(None)
    return False


def make(store=None, **changes):
    settings = {"dim": DIM, "sparsity": 1, "epsilon": 1.0, "delta": 0.01, "first_episode": 3, "growth": 2}
    return FLIPHAT(**settings | changes, store=store, durability="batch")


def row(number):
    """Contexts whose every arm is the same row, which tells the round."""
    return np.full((2, DIM), float(number), np.float32)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_select_cut_off_after_any_line(tmp_path, monkeypatch, stored, sparse):
    import scipy.sparse as sp

    wrap = sp.csr_array if sparse else np.asarray
    count, cut = 0, True
    while cut:
        count += 1
        store = tmp_path / f"{count}" if stored else None
        fits, policy = Fits(monkeypatch), make(store)
        for number in (1, 2, 3):
            policy.update(policy.select(wrap(row(number)), user=number), float(number))
        # This one fits the full episode and plays a round of the next.
        cut = interrupted(lambda p=policy: p.select(wrap(row(4)), user=4), count)
        number, played = 5, []
        while policy is not None and len(fits.of(1)) == 0 and number < 20:
            try:
                decision = policy.select(wrap(row(number)), user=number)
                policy.update(decision, float(number))
                played.append(number)
            except StoreError:
                policy.close()
                policy = make(store)
                continue
            number += 1
        # What a fit saw was shown at most once: no two different estimates of the same rows are visible.
        visible = [facts.episode for facts in policy.history]
        assert visible == sorted(set(visible)), count
        X, y, present = fits.of(1)[-1][1]
        assert np.array_equal(X[present, 0], y[present]), (count, X[:, 0], y)
        policy.close()
    assert count > 20


@pytest.mark.parametrize("stored", [False, True])
def test_an_estimate_that_was_seen_is_never_computed_again(tmp_path, monkeypatch, stored):
    count, cut = 0, True
    while cut:
        count += 1
        Fits(monkeypatch)
        policy = make(tmp_path / f"{count}" if stored else None)
        for number in (1, 2, 3):
            policy.update(policy.select(row(number)), float(number))
        cut = interrupted(lambda p=policy: p.select(row(4)), count)
        seen = [facts.estimate.values.tolist() for facts in policy.history]
        seen += [policy.estimate.values.tolist()] if len(policy.estimate.values) else []
        try:
            policy.select(row(5))
        except StoreError:
            policy.close()
            policy = make(tmp_path / f"{count}")
            policy.select(row(5))
        released = policy.history[0].estimate.values.tolist()
        assert all(one == released for one in seen), count
        policy.close()


def test_the_check_would_see_a_second_release(monkeypatch):
    # The control: showing an estimate before the episode is closed is caught.
    fits, policy = Fits(monkeypatch), make()
    for number in (1, 2, 3):
        policy.update(policy.select(row(number)), float(number))
    monkeypatch.setattr(engine.Engine, "_turn", lambda self: self.show(self.episode.successor.known))
    with pytest.raises(Exception):  # noqa: B017
        policy.select(row(4))
    first = policy.estimate.values.tolist()
    policy._engine.episode.successor = None  # as if nothing had been kept of the release
    with pytest.raises(Exception):  # noqa: B017
        policy.select(row(5))
    assert policy.estimate.values.tolist() != first and len(fits.of(0)) == 2


@pytest.mark.parametrize("stored", [False, True])
def test_a_save_whose_sealing_fails_leaves_no_live_object(tmp_path, monkeypatch, stored):
    from fliphat.policies import CopyError, files

    policy = make(tmp_path / "store" if stored else None)
    policy.update(policy.select(row(1)), 1.0)

    def fail(_):
        raise OSError("no space")

    with monkeypatch.context() as patch:
        if stored:
            patch.setattr("fliphat.policies.snapshot.os.rename", lambda *_: fail(None))
        else:
            patch.setattr(files, "sync_directory", fail)
        with pytest.raises(OSError, match="no space"):
            policy.save(tmp_path / "file")
    with pytest.raises(CopyError):
        policy.select(row(2))
