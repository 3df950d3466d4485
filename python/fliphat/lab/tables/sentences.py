"""Everything a study can say about its results, each sentence with the condition under which it is true."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fliphat.lab.tables.runs import Result, best_private, clearly_better, collapse

if TYPE_CHECKING:
    from fliphat.lab.tables.study import TableStudy

#: A log is too thin to judge anything with fewer rounds a run, or fewer rewards that differ from the usual.
FEWEST_ROUNDS: Final = 200
FEWEST_UNUSUAL: Final = 25


@dataclass(frozen=True)
class Sentence:
    """A sentence, and whether it may be said of a study."""

    name: str
    holds: Callable[[TableStudy], bool]
    words: Callable[[TableStudy], str]


def answer(study: TableStudy) -> str:
    """Return the one sentence that answers whether a private policy is worth it here."""
    (found,) = (sentence for sentence in ANSWERS if sentence.holds(study))
    return found.words(study)


def notes(study: TableStudy) -> list[str]:
    """Return everything else that is true and worth knowing."""
    return [sentence.words(study) for sentence in NOTES if sentence.holds(study)]


# Facts that the conditions rest on.


def is_thin(study: TableStudy) -> bool:
    """Return whether too few rounds of a log count to judge any policy."""
    random = study.find("random")
    return (
        study.logged
        and random is not None
        and (random.rounds < FEWEST_ROUNDS or random.unusual < FEWEST_UNUSUAL)
    )


def _epsilons(study: TableStudy) -> list[float]:
    return sorted({one.epsilon for one in study.results if one.epsilon is not None})


def _can_compare(study: TableStudy) -> bool:
    """Return whether private policies were played, often enough, on enough rounds."""
    played = [one for one in study.results if one.epsilon is not None]
    return bool(played) and min(one.orders for one in played) > 1 and not is_thin(study)


def _without_privacy(study: TableStudy) -> str:
    """Return how LinUCB fares against the constant arm: perhaps better is by half of its interval's half."""
    free = study.find("LinUCB")
    if free is None or free.above_constant is None:
        return "not known"
    mean, low, _ = free.above_constant
    if low > 0:
        return "clearly better"
    if free.rounds < study.columns * len(study.arms):  # fewer rounds than coefficients: it proves nothing
        return "too wide"
    return "perhaps better" if mean > (mean - low) / 2 else "no better"


def _useless(study: TableStudy, without_privacy: str) -> bool:
    """Return whether no private policy is recommended, and LinUCB fares like this."""
    unhelpful = _can_compare(study) and study.recommended is None
    return unhelpful and _without_privacy(study) == without_privacy


def _leaders(study: TableStudy, epsilon: float) -> list[Result]:
    """Return the best private policy at an epsilon, and those that it is not clearly better than."""
    best = best_private(study.results, epsilon)
    others = [one for one in study.results if one.epsilon == epsilon and one is not best]
    return [] if best is None else [best, *(one for one in others if not clearly_better(best, one))]


def _tied(study: TableStudy) -> list[float]:
    return [epsilon for epsilon in _epsilons(study) if len(_leaders(study, epsilon)) > 1]


def _won(study: TableStudy) -> dict[str, list[float]]:
    """Return at which epsilons each private policy is clearly the best of several."""
    found: dict[str, list[float]] = {}
    for epsilon in _epsilons(study):
        leaders = _leaders(study, epsilon)
        if len(leaders) == 1 and sum(one.epsilon == epsilon for one in study.results) > 1:
            found.setdefault(leaders[0].policy, []).append(epsilon)
    return found


def _below_random(study: TableStudy) -> list[Result]:
    random = study.find("random")
    private = [one for one in study.results if one.epsilon is not None]
    return [one for one in private if random is not None and clearly_better(random, one)]


def _discussed(study: TableStudy) -> Result | None:
    """Return the policy that is talked about: the recommended one, or the best at the largest epsilon."""
    epsilons = _epsilons(study)
    return study.recommended or (best_private(study.results, epsilons[-1]) if epsilons else None)


def _earns_more_than_random(study: TableStudy, one: Result) -> bool:
    random = study.find("random")
    return random is not None and clearly_better(one, random)


def _price(study: TableStudy) -> float | None:
    """Return what the policy talked about earns less than LinUCB; None if one was not played.

    None as well where neither learned: then there is no price to see.
    """
    free, discussed = study.find("LinUCB"), _discussed(study)
    if free is None or discussed is None:
        return None
    learned = any(_earns_more_than_random(study, one) for one in (free, discussed))
    return free.mean - discussed.mean if learned else None


def _price_is_seen(study: TableStudy) -> bool:
    free, discussed = study.find("LinUCB"), _discussed(study)
    return free is not None and discussed is not None and clearly_better(free, discussed)


def _fallen(study: TableStudy) -> list[tuple[Result, tuple[int, int]]]:
    random = study.find("random")
    if random is None:
        return []
    every = [(one, collapse(one, random.mean)) for one in study.results if one.epsilon is not None]
    return [(one, found) for one, found in every if found is not None]


# Their words.


def _listed(epsilons: list[float]) -> str:
    return ", ".join(f"{epsilon:g}" for epsilon in epsilons)


def _constant(study: TableStudy) -> str:
    one = study.find("constant")
    return f"always showing {study.constant_arm!r}" + ("" if one is None else f" ({one.mean:.3f} a round)")


def _worth_it(study: TableStudy) -> str:
    best = study.recommended
    assert best is not None
    assert best.above_constant is not None
    return (
        f"{best.policy} is worth it from epsilon = {best.epsilon:g} on: it earns {best.mean:.3f} a round, "
        f"{best.above_constant[0]:.3f} more than {_constant(study)}."
    )


def _up_to(study: TableStudy) -> str:
    most = f"Up to epsilon = {_epsilons(study)[-1]:g}"
    return f"{most} no private policy is clearly better than {_constant(study)}"


def _may_be_chance(study: TableStudy) -> str:
    free = study.find("LinUCB")
    assert free is not None
    assert free.above_constant is not None
    return (
        f"{_up_to(study)}. LinUCB, without privacy, earns {free.above_constant[0]:.3f} more, which in "
        f"{free.rounds:,} rounds may be chance: more rounds would tell."
    )


def _few_rounds(study: TableStudy) -> str:
    free = study.find("LinUCB")
    assert free is not None
    return (
        f"{_up_to(study)}. LinUCB, without privacy, is not, either, but {free.rounds:,} rounds are few for "
        f"{study.columns - 1:,} features: more rounds or fewer columns would tell."
    )


def _thin(study: TableStudy) -> str:
    random = study.find("random")
    assert random is not None
    return (
        f"This log is too thin to judge any policy: of {study.rows:,} rows a run plays about "
        f"{random.rounds:,}, and the reward of {random.unusual:,} of them differs from the usual one."
    )


def _loses(study: TableStudy) -> str:
    return " ".join(f"{one.name}, earns less than random play." for one in _below_random(study))


def _costs(study: TableStudy) -> str:
    free, discussed, price = study.find("LinUCB"), _discussed(study), _price(study)
    assert free is not None
    assert discussed is not None
    assert price is not None
    chance = "" if _price_is_seen(study) else ", if that is not chance"
    return (
        f"LinUCB, without privacy, earns {free.mean:.3f}: at epsilon = {discussed.epsilon:g} privacy costs "
        + ("nothing that can be seen here." if price <= 0 else f"{price:.3f} a round{chance}.")
    )


def _learned(study: TableStudy) -> str:
    discussed = _discussed(study)
    assert discussed is not None
    rounds = f"{discussed.rounds:,}"
    if discussed.learns_from is None:
        if _earns_more_than_random(study, discussed):
            told = f"earns more than random play over {rounds} rounds, but not clearly so at the end"
        else:
            told = f"is not clearly better than random play within {rounds} rounds"
        return f"{discussed.name}, {told}."
    return (
        f"Half of what {discussed.name}, gains over random play is there by round "
        f"{discussed.learns_from:,} of {rounds}."
    )


def _falls(study: TableStudy) -> str:
    told = "; ".join(
        f"{one.name}, in {orders} of {one.orders} orders, first near round {at:,}"
        for one, (orders, at) in _fallen(study)
    )
    return f"Learned and then lost half of it or more: {told}. More orders (--orders) tell how often."


def _ties(study: TableStudy) -> str:
    every = [
        (epsilon, " and ".join(sorted(one.policy for one in _leaders(study, epsilon))))
        for epsilon in _tied(study)
    ]
    named = dict.fromkeys(names for _, names in every)
    return " ".join(
        f"{names} are tied at epsilon = {_listed([e for e, other in every if other == names])}: "
        "their difference is within chance."
        for names in named
    )


#: Exactly one of these holds of any study.
ANSWERS: Final = (
    Sentence("thin", is_thin, _thin),
    Sentence(
        "nothing private",
        lambda study: not _epsilons(study) and not is_thin(study),
        lambda study: "No private policy was played: these are figures without privacy.",
    ),
    Sentence(
        "one order",
        lambda study: bool(_epsilons(study)) and not _can_compare(study) and not is_thin(study),
        lambda study: (
            "One order can't be told from chance: play at least two (--orders) to compare policies."
        ),
    ),
    Sentence("worth it", lambda study: _can_compare(study) and study.recommended is not None, _worth_it),
    Sentence(
        "nothing helps",
        lambda study: _useless(study, "no better"),
        lambda study: (
            f"{_up_to(study)}, and without privacy LinUCB is no better, either: it is not privacy that "
            "stands in the way, and a larger epsilon would not help."
        ),
    ),
    Sentence("too wide", lambda study: _useless(study, "too wide"), _few_rounds),
    Sentence("may be chance", lambda study: _useless(study, "perhaps better"), _may_be_chance),
    Sentence(
        "more would help",
        lambda study: _useless(study, "clearly better"),
        lambda study: (
            f"{_up_to(study)}. LinUCB, without privacy, is: more people or a larger epsilon would help."
        ),
    ),
    Sentence(
        "not known",
        lambda study: _useless(study, "not known"),
        lambda study: f"{_up_to(study)}. Whether any policy could be is not known: LinUCB was not played.",
    ),
)

#: All of these that hold are said.
NOTES: Final = (
    Sentence("tied", lambda study: _can_compare(study) and bool(_tied(study)), _ties),
    Sentence(
        "better",
        lambda study: _can_compare(study) and bool(_won(study)),
        lambda study: " ".join(
            f"{policy} is clearly the better private policy at epsilon = {_listed(epsilons)}."
            for policy, epsilons in _won(study).items()
        ),
    ),
    Sentence("learned", lambda study: _can_compare(study), _learned),
    Sentence("price", lambda study: _can_compare(study) and _price(study) is not None, _costs),
    Sentence("below random", lambda study: _can_compare(study) and bool(_below_random(study)), _loses),
    Sentence("collapse", lambda study: _can_compare(study) and bool(_fallen(study)), _falls),
    Sentence(
        "other half",
        lambda study: study.logged and study.find("constant") is not None,
        lambda study: (
            "The constant arm is the best one of one half of the log, and its reward is that of the "
            "other half."
        ),
    ),
    Sentence("skipped", lambda study: bool(study.skipped), lambda study: " ".join(study.skipped)),
    Sentence(
        "stopped",
        lambda study: not study.complete,
        lambda study: "Stopped early: these are the runs that were done.",
    ),
)
