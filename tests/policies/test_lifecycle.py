"""The table of an episode's life: every step there is and no other, and what a claim, a fence and a lease do."""

import itertools

import pytest

from fliphat.policies.engine import lifecycle
from fliphat.policies.engine.lifecycle import (
    MAY,
    TABLE,
    Asked,
    Life,
    Phase,
    Step,
    StepRefused,
    made,
    may,
    step,
)

EVENTS = {event for _, event in TABLE}
#: Every step, written down a second time.
STEPS = {
    "open": {"ahead": "open"},
    "fill": {"open": "full"},
    "claim": {"full": "claimed", "claimed": "claimed"},
    "renew": {"claimed": "claimed"},
    "let_go": {"claimed": "claimed"},
    "take_back": {"claimed": "claimed"},
    "commit": {"claimed": "committed"},
    "accept": {"committed": "witnessed"},
    "refuse": {"committed": "refused", "handed over": "refused", "ahead": "refused"},
    "show": {"witnessed": "shown"},
    "close": {"shown": "closed"},
    "hand_over": {"open": "handed over", "full": "handed over"},
}


def walks(table_steps=step):
    """All sequences of steps of one episode by two workers, up to a depth; yields what was ever seen."""
    start, found = (Life(), 0, ()), []
    todo = [(start, 0)]
    while todo:
        (life, fitted, seen), depth = todo.pop()
        found.append((life, seen))
        if depth == 11:
            continue
        for event in ("fill", "claim", "commit", "accept", "refuse", "show", "close", "take_back"):
            for fence in {life.fence, max(life.fence - 1, 0)} if event == "commit" else {life.fence}:
                asked = Asked(owner="x", fence=fence, now=depth * 2.0, lease=3.0, bits=fitted + 1)
                try:
                    after = table_steps(life, event, asked)
                except StepRefused:
                    continue
                fits = fitted + (event == "commit")
                shown = (*seen, after.bits) if may("see", after) and after.bits not in seen else seen
                todo.append(((after, fits, shown), depth + 1))
    return found


@pytest.mark.parametrize(("phase", "event"), list(itertools.product(Phase, sorted(EVENTS))))
def test_every_step_of_the_table_and_no_other(phase, event):
    life = Life(phase, "a", 3, 10.0, "bits")
    asked = Asked(owner="b", fence=3, now=20.0, lease=4.0, bits="new")
    expected = STEPS[event].get(phase)
    if expected is None:
        with pytest.raises(StepRefused, match=f"is {phase} can't be asked to"):
            step(life, event, asked)
    else:
        assert step(life, event, asked).phase == expected


def test_a_claim_that_was_overtaken_can_not_commit():
    full = Life(Phase.FULL)
    first = step(full, "claim", Asked(owner="a", now=0.0, lease=4.0))
    with pytest.raises(StepRefused):
        step(first, "claim", Asked(owner="b", now=3.9, lease=4.0))  # its lease is not over
    renewed = step(first, "renew", Asked(fence=1, now=3.0, lease=4.0))
    with pytest.raises(StepRefused):
        step(renewed, "claim", Asked(owner="b", now=4.5, lease=4.0))
    second = step(renewed, "claim", Asked(owner="b", now=7.0, lease=4.0))
    assert (second.owner, second.fence) == ("b", 2)
    for event in ("commit", "renew", "let_go"):
        with pytest.raises(StepRefused):
            step(second, event, Asked(fence=1, bits="late"))
    assert step(second, "commit", Asked(fence=2, bits="mine")).bits == "mine"


def test_a_claim_that_was_taken_back_can_not_commit():
    claimed = step(Life(Phase.FULL), "claim", Asked(owner="a", lease=4.0))
    emptied = lifecycle.emptied(claimed)
    with pytest.raises(StepRefused):
        step(emptied, "commit", Asked(fence=claimed.fence))
    assert step(emptied, "claim", Asked(owner="b", lease=4.0)).fence == emptied.fence + 1


def test_what_was_made_before_is_known_by_its_owner_and_its_fence():
    claimed = Life(Phase.CLAIMED, "a", 2)
    assert made(claimed, "claim", Asked(owner="a")) and not made(claimed, "claim", Asked(owner="b"))
    committed = Life(Phase.COMMITTED, "a", 2)
    assert made(committed, "commit", Asked(fence=2)) and not made(committed, "commit", Asked(fence=1))
    assert made(Life(Phase.CLOSED), "show", Asked()) and not made(Life(Phase.WITNESSED), "show", Asked())


def test_what_may_be_done_in_each_phase():
    assert {act: sorted(MAY[act]) for act in MAY} == {
        "play": ["ahead", "open"],
        "reward": ["ahead", "full", "open"],
        "empty": ["ahead", "claimed", "full", "open"],
        "fit": ["claimed"],
        "see": ["closed", "shown"],
        "save": ["full", "open"],
    }


def test_no_sequence_of_steps_shows_two_releases():
    found = walks()
    assert len(found) > 100 and any(len(seen) == 1 for _, seen in found)
    assert max(len(seen) for _, seen in found) == 1


@pytest.mark.parametrize(
    ("key", "broken"),
    [
        ((Phase.COMMITTED, "commit"), Step(Phase.COMMITTED, change=lambda life, asked: {"bits": asked.bits})),
        ((Phase.SHOWN, "claim"), Step(Phase.CLAIMED)),
        ((Phase.CLOSED, "claim"), Step(Phase.CLAIMED)),
        ((Phase.SHOWN, "commit"), Step(Phase.SHOWN, change=lambda life, asked: {"bits": asked.bits})),
    ],
)
def test_a_broken_table_is_noticed(monkeypatch, key, broken):
    monkeypatch.setitem(TABLE, key, broken)
    if key == (Phase.COMMITTED, "commit"):
        monkeypatch.setitem(MAY, "see", MAY["see"] | {Phase.COMMITTED})
    assert max(len(seen) for _, seen in walks()) > 1
