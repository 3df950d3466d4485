"""Ways to a second release of the same rows: each was one, and each is refused or completed now.

Interrupts are put where a real signal could fall.
"""

import numpy as np
import pytest

from fliphat import FLIPHAT, Iht, Store
from fliphat.policies import StoreError
from fliphat.policies.engine import faults, turn
from fliphat.policies.engine.lifecycle import Phase
from fliphat.policies.store.inspect import inspect_path
from policy_model import DIM, Fits

FIRST = 3


class Cut(BaseException):
    """Stands for an interrupt."""


def played(**more):
    policy = FLIPHAT(
        dim=DIM, sparsity=1, epsilon=1.0, delta=0.01, first_episode=FIRST, fit=Iht(growth=2), **more
    )
    for number in range(1, FIRST + 1):
        policy.update(policy.select(np.full((2, DIM), float(number)), user=number), float(number))
    return policy


def cut_at(monkeypatch, phase, policy, *, after=False):
    """Run the select that releases, and cut it off before or after what is done in a phase."""
    real = turn._STEPS[phase]

    def cut(engine, episode):
        if after:
            real(engine, episode)
        raise Cut

    with monkeypatch.context() as patch:
        patch.setitem(turn._STEPS, phase, cut)
        with pytest.raises(Cut):
            policy.select(np.ones((2, DIM)), user=99)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    "phase",
    [Phase.FULL, Phase.CLAIMED, Phase.COMMITTED, Phase.WITNESSED, Phase.SHOWN, Phase.CLOSED],
)
def test_a_turn_cut_off_anywhere_is_completed_by_save(tmp_path, monkeypatch, phase, after):
    fits = Fits(monkeypatch)
    policy = played()
    cut_at(monkeypatch, phase, policy, after=after)
    seen = [facts.estimate.values.tolist() for facts in policy.history]
    policy.save(tmp_path / "file")
    loaded = FLIPHAT.load(tmp_path / "file")
    for _ in range(2 * FIRST + 2):
        loaded.select(np.ones((2, DIM)), user=int(loaded.rounds) + 100)
    assert len(fits.of(0)) == 1, "fitted again"
    assert [facts.estimate.values.tolist() for facts in loaded.history][: len(seen)] == seen
    (_, (rows, _, _), _) = fits.of(1)[0]
    assert rows[:, 0].tolist() == [1.0] * (2 * FIRST), "rows of a released episode in the next one"


@pytest.mark.parametrize("point", ["commit durable", "accept durable", "show durable", "close durable"])
def test_with_a_store_a_turn_cut_off_on_disk_is_not_saved_from_memory(tmp_path, monkeypatch, point):
    fits = Fits(monkeypatch)
    store = Store(tmp_path / "s", witness=tmp_path / "w")
    policy = played(store=store)

    def reached(name):
        if name == point:
            raise Cut

    with monkeypatch.context() as patch:
        patch.setattr(faults, "reached", reached)
        with pytest.raises(Cut):
            policy.select(np.ones((2, DIM)), user=99)
    shown = inspect_path(tmp_path / "s")["estimate"]["values"]
    with pytest.raises(StoreError, match="open it again"):
        policy.save(tmp_path / "file")
    assert not list(tmp_path.glob("file*"))
    policy.close()
    with FLIPHAT.open(store) as policy:
        policy.select(np.ones((2, DIM)), user=99)
        final = policy.estimate.values.tolist()
    assert len(fits.of(0)) == 1 and (not shown or shown == final)


def test_cut_off_while_the_witness_is_told_nothing_shows_what_it_may_refuse(tmp_path, monkeypatch):
    fits = Fits(monkeypatch)
    store = Store(tmp_path / "s", witness=tmp_path / "w")
    policy = played(store=store)
    real = turn.agrees

    def told(*given):
        assert real(*given)
        raise Cut

    with monkeypatch.context() as patch:
        patch.setattr(turn, "agrees", told)
        with pytest.raises(Cut):
            policy.select(np.ones((2, DIM)), user=99)
    assert not policy.history and not inspect_path(tmp_path / "s")["history"]
    policy.save(tmp_path / "file")  # completes the turn first: the witness has moved for these very bits
    loaded = FLIPHAT.load(tmp_path / "file")
    assert len(fits.of(0)) == 1 and len(loaded.history) == 1
    assert loaded.history[0].estimate.values.tolist() == fits.of(0)[0][2].values.tolist()


def test_a_late_reward_of_a_claimed_episode_is_late_after_save_and_load(tmp_path, monkeypatch):
    fits = Fits(monkeypatch)
    policy = FLIPHAT(dim=DIM, sparsity=1, epsilon=1.0, delta=0.01, first_episode=FIRST, fit=Iht(growth=2))
    decisions = [policy.select(np.ones((2, DIM))) for _ in range(FIRST)]
    fits.fail = True
    with pytest.raises(OSError, match="no entropy"):
        policy.select(np.ones((2, DIM)))
    assert policy.pending == [] and policy.update(decisions[0], 5.0) is False
    with pytest.raises(OSError, match="no entropy"):  # a turn that can't be completed is not saved
        policy.save(tmp_path / "file")
    assert not list(tmp_path.glob("file*"))
    fits.fail = False
    policy.save(tmp_path / "file")
    loaded = FLIPHAT.load(tmp_path / "file")
    assert loaded.update(decisions[1].id, 5.0) is False and loaded.pending == [] and loaded.late == 2
    assert not fits.of(0)[0][1][2].any()
