"""Every sentence that a study can say: said where it is true, and not where it is false."""

import numpy as np
import pytest

from fliphat.lab.tables import sentences
from fliphat.lab.tables.runs import collapse, result_of
from invented_study import RANDOM, invent, run, study

GOOD = {("LinUCB", None): 0.8, ("FLIPHAT", 1.0): 0.45, ("FLIPHAT", 10.0): 0.7, ("PrivateLinear", 1.0): 0.6}
STUDIES = {
    "worth it": study({**GOOD, ("PrivateLinear", 10.0): 0.76}),
    "tied": study({("LinUCB", None): 0.8, ("FLIPHAT", 1.0): 0.687, ("PrivateLinear", 1.0): 0.683}),
    "one private policy": study({("PrivateLinear", 1.0): 0.825}),
    "nothing helps": study({("LinUCB", None): 0.5, ("FLIPHAT", 1.0): 0.49, ("PrivateLinear", 1.0): 0.4}),
    "may be chance": study({("LinUCB", None): 0.507, ("FLIPHAT", 1.0): 0.49, ("PrivateLinear", 1.0): 0.4}),
    "too wide": study({("LinUCB", None): 0.5, ("FLIPHAT", 1.0): 0.49}, columns=9000),
    "more would help": study({("LinUCB", None): 0.8, ("FLIPHAT", 1.0): 0.35, ("PrivateLinear", 1.0): 0.5}),
    "not known": study({("FLIPHAT", 1.0): 0.49}, skipped=("LinUCB was not played: it is too slow.",)),
    "below random": study({("LinUCB", None): 0.8, ("FLIPHAT", 1.0): 0.2, ("PrivateLinear", 1.0): 0.4}),
    "free": study({("LinUCB", None): 0.7, ("FLIPHAT", 1.0): 0.7, ("PrivateLinear", 1.0): 0.6}),
    "nothing private": study({("LinUCB", None): 0.8}),
    "one order": study({("LinUCB", None): 0.8, ("FLIPHAT", 1.0): 0.7}, orders=1),
    "stopped": study({("LinUCB", None): 0.8, ("FLIPHAT", 1.0): 0.7}, complete=False),
    "log": study({("LinUCB", None): 0.8, ("FLIPHAT", 1.0): 0.7}, logged=True),
    "thin log": study({("LinUCB", None): 0.8, ("FLIPHAT", 1.0): 0.7}, logged=True, unusual=1),
    "short log": study({("LinUCB", None): 0.8, ("FLIPHAT", 1.0): 0.7}, logged=True, rounds=150),
}


def _collapsed():
    fallen = (RANDOM,) * 4 + (0.9,) * 6 + (RANDOM,) * 10
    runs = [run("FLIPHAT", 1.0, o, 0, windows=fallen if o == 2 else (0.9,) * 20) for o in range(8)]
    random, constant = (
        [run(name, None, order, 0, windows=(level,) * 20) for order in range(8)]
        for name, level in (("random", RANDOM), ("constant", 0.5))
    )
    return invent(tuple(result_of(own, [*random, *constant, *runs]) for own in (random, constant, runs)))


STUDIES["collapse"] = _collapsed()

#: Of each sentence: the studies of which it is true, and words that it must then have.
TRUE = {
    "thin": ({"thin log", "short log"}, "too thin to judge any policy: of 10,000 rows a run plays about"),
    "nothing private": ({"nothing private"}, "No private policy was played"),
    "one order": ({"one order"}, "One order can't be told from chance"),
    "worth it": (
        {"worth it", "tied", "one private policy", "free", "stopped", "log", "collapse"},
        "is worth it from epsilon = 1 on: it earns",
    ),
    "nothing helps": ({"nothing helps"}, "it is not privacy that stands in the way"),
    "may be chance": ({"may be chance"}, "rounds may be chance: more rounds would tell"),
    "too wide": ({"too wide"}, "10,000 rounds are few for 8,999 features"),
    "more would help": ({"more would help", "below random"}, "more people or a larger epsilon would help"),
    "not known": ({"not known"}, "Whether any policy could be is not known"),
    "tied": ({"tied"}, "FLIPHAT and PrivateLinear are tied at epsilon = 1"),
    "better": (
        {"worth it", "nothing helps", "may be chance", "more would help", "below random", "free"},
        "is clearly the better private policy at epsilon = 1",
    ),
    "learned": (
        set(STUDIES) - {"thin log", "short log", "nothing private", "one order"},
        "over random play is there by round",
    ),
    "price": (
        set(STUDIES)
        - {
            "one private policy",
            "not known",
            "collapse",
            "thin log",
            "short log",
            "nothing private",
            "one order",
        },
        "privacy costs",
    ),
    "below random": ({"below random"}, "FLIPHAT, epsilon = 1, earns less than random play"),
    "collapse": (
        {"collapse"},
        "Learned and then lost half of it or more: FLIPHAT, epsilon = 1, in 1 of 8 orders, first near round",
    ),
    "other half": ({"log", "thin log", "short log"}, "its reward is that of the other half"),
    "skipped": ({"not known"}, "LinUCB was not played: it is too slow."),
    "stopped": ({"stopped"}, "Stopped early"),
}


@pytest.mark.parametrize("sentence", [*sentences.ANSWERS, *sentences.NOTES], ids=lambda one: one.name)
def test_a_sentence_is_said_where_it_is_true_and_nowhere_else(sentence):
    where, words = TRUE[sentence.name]
    assert {name for name, one in STUDIES.items() if sentence.holds(one)} == where
    assert where
    assert where != set(STUDIES)
    for name in where:
        assert words in sentence.words(STUDIES[name])


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_has_one_answer(name):
    assert sum(sentence.holds(STUDIES[name]) for sentence in sentences.ANSWERS) == 1
    assert STUDIES[name].answer in said(name)
    assert STUDIES[name]._repr_html_().count("<tr>") == 1 + len(STUDIES[name].results)


def said(name):
    return " ".join(str(STUDIES[name]).replace("\n- ", " ").split())


def test_help_is_promised_only_where_something_beats_the_constant_arm():
    assert "not privacy" not in said("may be chance") and "epsilon would" not in said("may be chance")
    assert "would help" not in said("nothing helps") and "would not help" in said("nothing helps")
    assert "without privacy LinUCB is no better, either" in STUDIES["nothing helps"].answer


def test_a_clear_policy_is_not_hidden_by_one_that_earns_more_in_some_orders():
    found = study(
        {("LinUCB", None): 0.8, ("FLIPHAT", 1.0): (0.35, 1.0, 0.4, 0.95), ("PrivateLinear", 1.0): 0.6}
    )
    assert found.result("FLIPHAT", 1.0).mean > found.result("PrivateLinear", 1.0).mean
    assert (
        found.result("FLIPHAT", 1.0).above_constant[1]
        < 0
        < found.result("PrivateLinear", 1.0).above_constant[1]
    )
    assert found.recommended.policy == "PrivateLinear" and "PrivateLinear is worth it" in found.answer


def test_a_winner_by_chance_is_a_tie_and_a_policy_alone_is_judged():
    assert "the better private policy" not in said("tied")
    assert "0.825 a round" in STUDIES["one private policy"].answer
    assert "not clearly better than random" not in said("one private policy")


def test_nothing_is_recommended_from_a_thin_log():
    for name in ("thin log", "short log"):
        assert STUDIES[name].recommended is None
        assert "Settings" not in str(STUDIES[name])
    assert STUDIES["log"].recommended is not None


def test_a_price_that_is_not_seen_is_not_said():
    assert "privacy costs nothing that can be seen here" in said("free")
    slightly = str(study({("LinUCB", None): 0.8, ("FLIPHAT", 1.0): 0.795}))
    assert "privacy costs 0.005 a round, if that is not chance." in " ".join(slightly.split())
    assert "privacy costs 0.200 a round" in said("worth it")
    assert "nothing that can be seen" not in said("worth it") and "chance" not in said("worth it")


def test_a_policy_that_never_learned_is_said_to_be_no_better_than_random():
    stuck = study({("LinUCB", None): 0.8, ("FLIPHAT", 1.0): RANDOM})
    assert "FLIPHAT, epsilon = 1, is not clearly better than random play within 10,000 rounds" in str(stuck)


def test_what_earned_more_than_random_play_but_not_at_the_end_is_not_called_no_better():
    early = (0.9,) * 8 + (RANDOM,) * 12
    runs = [run("FLIPHAT", 1.0, order, 0, windows=early) for order in range(4)]
    random = [run("random", None, order, 0, windows=(RANDOM,) * 20) for order in range(4)]
    found = invent(tuple(result_of(own, [*random, *runs]) for own in (random, runs)))
    told = " ".join(str(found).split())
    assert "earns more than random play over 10,000 rounds, but not clearly so at the end" in told
    assert "is not clearly better than random" not in told


def test_there_is_no_price_where_nobody_learned():
    nothing = study({("LinUCB", None): RANDOM, ("FLIPHAT", 1.0): RANDOM})
    assert "privacy costs" not in str(nothing)


def test_steady_runs_are_hardly_ever_said_to_fall_and_a_fall_is_seen():
    rng = np.random.default_rng(0)
    noise = 0.45 / np.sqrt(10_000 / 20)
    steady, gain = 0, 5 * 0.45 * np.sqrt(2 * 20 / (3 * 10_000))  # where chance has the best chance
    for number in range(2000):
        windows = tuple(RANDOM + gain + noise * rng.normal(size=20))
        one = run("FLIPHAT", 1.0, number, 0, windows=windows)
        steady += collapse(result_of([one], [one]), RANDOM) is not None
    assert steady <= 4
    fallen = [run("FLIPHAT", 1.0, 0, 0, windows=(0.6,) * 10 + (0.4,) * 10)]
    orders, near = collapse(result_of(fallen, fallen), RANDOM)
    assert orders == 1 and 5000 < near <= 6000
