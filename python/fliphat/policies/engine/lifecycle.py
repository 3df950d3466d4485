"""The life of an episode: its phases, and one table of the steps between them.

| phase | what it means | what a crash leads to |
|---|---|---|
| ahead | its first rounds are played while the episode before it is released; its length is not final | - |
| open | rounds are played, rewards arrive | the rounds that are durable are there again |
| full | every round was played; rewards still arrive | the same |
| claimed | one owner may fit the rows; which rewards count is fixed | fitted again: nobody saw the first |
| committed | the release is final: these rows are never fitted again | the witness is asked |
| witnessed | the witness has moved to this release, so that no copy can show another | it is shown |
| shown | everybody may see it | rows are dropped |
| closed | its rows are gone | - |
| handed over | the policy goes on in a file | the file is sealed |
| refused | the witness knows another copy: this one shows, plays and saves nothing more | - |

Memory, SQLite and PostgreSQL are three ways to make a step durable; each asks :func:`step`, and nobody else
decides where an episode is. A *claim* has an owner, a fence that grows with every claim, and a lease, which
its owner renews while the fit runs. An owner that hangs is overtaken when its lease is over; its fence is
then an old one, and its late commit is refused. Whoever erases rows of a claimed episode takes the claim
back, so that a fit that has read them can't be committed.

Everything here is a pure function of small values. A broken machine is made by changing entries of
:data:`TABLE` or :data:`MAY`, which the real code reads as well.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, NamedTuple

__all__ = [
    "HEARTBEAT",
    "LEASE",
    "MAY",
    "TABLE",
    "Asked",
    "Life",
    "Phase",
    "Step",
    "StepRefused",
    "emptied",
    "made",
    "may",
    "step",
]

#: Seconds that a claim lasts unless it is renewed, and between two renewals.
LEASE: float = 4.0
HEARTBEAT: float = 1.0


class Phase(StrEnum):
    """Where an episode is."""

    AHEAD = "ahead"
    OPEN = "open"
    FULL = "full"
    CLAIMED = "claimed"
    COMMITTED = "committed"
    WITNESSED = "witnessed"
    SHOWN = "shown"
    CLOSED = "closed"
    HANDED_OVER = "handed over"
    REFUSED = "refused"


class Life(NamedTuple):
    """An episode's phase, its claim, and what was committed.

    Attributes
    ----------
    phase : Phase
    owner : str
        Who claimed it last.
    fence : int
        Grows with every claim; the last one alone can commit.
    until : float
        When the claim's lease is over, by the clock of whoever keeps the episode.
    bits : object
        What was committed: these alone are witnessed and shown.
    """

    phase: Phase = Phase.OPEN
    owner: str = ""
    fence: int = 0
    until: float = 0.0
    bits: Any = None


class Asked(NamedTuple):
    """What comes with a step.

    Attributes
    ----------
    owner : str
        Who claims; another name for every attempt.
    fence : int
        Of the claim that renews, lets go or commits.
    now : float
    lease : float
        Seconds that a claim lasts.
    alone : bool
        Whether whoever claimed before is known to be gone: its process held a lock that is free now.
    bits : object
        What is committed.
    """

    owner: str = ""
    fence: int = 0
    now: float = 0.0
    lease: float = 0.0
    alone: bool = False
    bits: Any = None


class StepRefused(Exception):
    """An episode can't take this step; it stays where it is."""


class Step(NamedTuple):
    """Where a step leads, on which condition, and what else of the life it changes."""

    to: Phase
    when: Callable[[Life, Asked], bool] | None = None
    change: Callable[[Life, Asked], dict[str, Any]] | None = None


def _mine(life: Life, asked: Asked) -> bool:
    return asked.fence == life.fence


def _over(life: Life, asked: Asked) -> bool:
    return asked.alone or asked.now >= life.until


def _claim(life: Life, asked: Asked) -> dict[str, Any]:
    return {"owner": asked.owner, "fence": life.fence + 1, "until": asked.now + asked.lease}


def _renew(life: Life, asked: Asked) -> dict[str, Any]:
    return {"until": asked.now + asked.lease}


def _free(life: Life, asked: Asked) -> dict[str, Any]:
    return {"owner": "", "until": 0.0}


def _take_back(life: Life, asked: Asked) -> dict[str, Any]:
    return {"owner": "", "fence": life.fence + 1, "until": 0.0}


def _commit(life: Life, asked: Asked) -> dict[str, Any]:
    return {"bits": asked.bits}


def _drop(life: Life, asked: Asked) -> dict[str, Any]:
    return {"bits": None}


_P = Phase
#: Every step there is.
TABLE: Final[dict[tuple[Phase, str], Step]] = {
    (_P.AHEAD, "open"): Step(_P.OPEN),
    (_P.OPEN, "fill"): Step(_P.FULL),
    (_P.FULL, "claim"): Step(_P.CLAIMED, change=_claim),
    (_P.CLAIMED, "claim"): Step(_P.CLAIMED, _over, _claim),
    (_P.CLAIMED, "renew"): Step(_P.CLAIMED, _mine, _renew),
    (_P.CLAIMED, "let_go"): Step(_P.CLAIMED, _mine, _free),
    (_P.CLAIMED, "take_back"): Step(_P.CLAIMED, change=_take_back),
    (_P.CLAIMED, "commit"): Step(_P.COMMITTED, _mine, _commit),
    (_P.COMMITTED, "accept"): Step(_P.WITNESSED),
    (_P.COMMITTED, "refuse"): Step(_P.REFUSED, change=_drop),
    (_P.WITNESSED, "show"): Step(_P.SHOWN),
    (_P.SHOWN, "close"): Step(_P.CLOSED),
    (_P.OPEN, "hand_over"): Step(_P.HANDED_OVER),
    (_P.FULL, "hand_over"): Step(_P.HANDED_OVER),
    (_P.HANDED_OVER, "refuse"): Step(_P.REFUSED),
    (_P.AHEAD, "refuse"): Step(_P.REFUSED),
}

#: What may be done in a phase without leaving it. "reward" is also cancelling, "empty" also expiring.
MAY: Final[dict[str, frozenset[Phase]]] = {
    "play": frozenset({_P.AHEAD, _P.OPEN}),
    "reward": frozenset({_P.AHEAD, _P.OPEN, _P.FULL}),
    "empty": frozenset({_P.AHEAD, _P.OPEN, _P.FULL, _P.CLAIMED}),
    "fit": frozenset({_P.CLAIMED}),
    "see": frozenset({_P.SHOWN, _P.CLOSED}),
    "save": frozenset({_P.OPEN, _P.FULL}),
}

#: The order of the phases that a release passes through.
_WAY: Final = (_P.FULL, _P.CLAIMED, _P.COMMITTED, _P.WITNESSED, _P.SHOWN, _P.CLOSED)


def may(act: str, life: Life) -> bool:
    """Whether something may be done to an episode that stays where it is.

    Examples
    --------
    >>> may("play", Life()), may("see", Life(Phase.COMMITTED))
    (True, False)
    """
    return life.phase in MAY[act]


def step(life: Life, event: str, asked: Asked = Asked()) -> Life:  # noqa: B008 - a constant
    """Return the life after a step, or raise :class:`StepRefused`.

    Examples
    --------
    >>> claimed = step(Life(Phase.FULL), "claim", Asked(owner="a", now=10.0, lease=4.0))
    >>> claimed.phase, claimed.fence, claimed.until
    (<Phase.CLAIMED: 'claimed'>, 1, 14.0)
    >>> step(claimed, "commit", Asked(fence=0))
    Traceback (most recent call last):
    ...
    fliphat.policies.engine.lifecycle.StepRefused: an episode that is claimed can't be asked to commit now
    """
    entry = TABLE.get((life.phase, event))
    if entry is None or not (entry.when is None or entry.when(life, asked)):
        raise StepRefused(f"an episode that is {life.phase} can't be asked to {event.replace('_', ' ')} now")
    return life._replace(phase=entry.to, **({} if entry.change is None else entry.change(life, asked)))


def emptied(life: Life) -> Life:
    """Return the life after rows lost their contents: whoever claimed the episode can't commit a fit of them.

    Examples
    --------
    >>> emptied(Life(Phase.CLAIMED, "a", 1, 9.0)), emptied(Life()).phase
    (Life(phase=<Phase.CLAIMED: 'claimed'>, owner='', fence=2, until=0.0, bits=None), <Phase.OPEN: 'open'>)
    """
    return step(life, "take_back") if life.phase is Phase.CLAIMED else life


def made(life: Life, event: str, asked: Asked) -> bool:
    """Whether this very step was made before: by a call whose answer was lost, or by whoever completed it.

    A claim and a commit are their owner's. What follows a commit leads to the same place, whoever does it.

    Examples
    --------
    >>> made(Life(Phase.SHOWN, fence=3), "commit", Asked(fence=3)), made(Life(Phase.SHOWN), "show", Asked())
    (True, True)
    """
    if event == "claim":
        return life.phase is Phase.CLAIMED and life.owner == asked.owner != ""
    if event == "commit":
        return life.phase in _WAY[2:] and life.fence == asked.fence
    if event in ("accept", "show", "close"):
        reached = {"accept": Phase.WITNESSED, "show": Phase.SHOWN, "close": Phase.CLOSED}[event]
        return life.phase in _WAY[_WAY.index(reached) :]
    return (event, life.phase) in (("hand_over", Phase.HANDED_OVER), ("refuse", Phase.REFUSED))
