"""All sequences of calls, cuts, kills, copies and second workers up to a depth: no row is released twice.

The real table of steps is searched, and each broken one must be found.
"""

import pytest

from fliphat.policies.engine import lifecycle
from fliphat.policies.engine.lifecycle import Phase, Step
from life_model import IN_MEMORY, Rules, search

ONE_OWNER, WORKERS, MEMORY = Rules(), Rules(workers=True, witness=False), Rules(witness=False)
DEPTH = {ONE_OWNER: 12, WORKERS: 14, MEMORY: 12}
#: Of the nightly search, with the states it visits at least.
DEEPER = {ONE_OWNER: (15, 700_000), WORKERS: (20, 150_000), MEMORY: (14, 150_000)}
KINDS = pytest.mark.parametrize("rules", DEPTH, ids=["one owner", "workers", "memory"])


def found_by(rules, depth=None):
    begin = IN_MEMORY if rules.witness is rules.workers else None
    return search(rules, depth or DEPTH[rules._replace(children_act=False)], begin)


@KINDS
def test_no_sequence_of_acts_breaks_a_promise(rules):
    found = found_by(rules)
    assert found.way is None, (found.promise, found.way)
    assert found.states > 500  # a search that can't move finds nothing either


@pytest.mark.slow
@KINDS
def test_no_longer_sequence_does(rules):
    depth, states = DEEPER[rules]
    found = found_by(rules, depth)
    assert found.way is None, (found.promise, found.way)
    assert found.states > states


_P = Phase
_ANY = Step(_P.COMMITTED, change=lambda life, asked: {"bits": asked.bits})
TABLES = {
    "a late commit is taken": (WORKERS, {(_P.CLAIMED, "commit"): _ANY}, {}),
    "what is committed can be claimed again": (
        ONE_OWNER,
        {(_P.COMMITTED, "claim"): lifecycle.TABLE[_P.FULL, "claim"]},
        {},
    ),
    "what is shown can be claimed again": (
        WORKERS,
        {(_P.SHOWN, "claim"): lifecycle.TABLE[_P.FULL, "claim"]},
        {},
    ),
    "it is shown before the witness is asked": (
        ONE_OWNER,
        {(_P.COMMITTED, "show"): Step(_P.SHOWN)},
        {},
    ),
    "a refused copy goes on": (ONE_OWNER, {(_P.COMMITTED, "refuse"): Step(_P.WITNESSED)}, {}),
    "inspect shows what is committed": (ONE_OWNER, {}, {"see": {_P.COMMITTED, _P.SHOWN, _P.CLOSED}}),
    "a claimed episode can be saved": (ONE_OWNER, {}, {"save": {_P.OPEN, _P.FULL, _P.CLAIMED, _P.COMMITTED}}),
    "a shown episode can be saved with its rows": (ONE_OWNER, {}, {"save": {_P.OPEN, _P.FULL, _P.SHOWN}}),
    "rounds are played in a claimed episode": (
        ONE_OWNER,
        {(_P.CLAIMED, "fill"): Step(_P.CLAIMED), (_P.OPEN, "fill"): Step(_P.OPEN),
         (_P.OPEN, "claim"): lifecycle.TABLE[_P.FULL, "claim"]},
        {"play": {_P.OPEN, _P.CLAIMED}},
    ),
}  # fmt: skip
RULES = {
    "the witness's no is not heard": ONE_OWNER._replace(witness_decides=False),
    "save does not ask the witness": ONE_OWNER._replace(witness_asked_at_save=False),
    "save does not leave the witness": ONE_OWNER._replace(save_leaves_witness=False),
    "a file can be loaded twice": ONE_OWNER._replace(load_consumes=False),
    "a store that was handed over opens again with its rows": ONE_OWNER._replace(handed_over_opens=True),
    "forgetting does not take a claim back": ONE_OWNER._replace(forget_takes_back=False),
    "rows are not dropped at the end": ONE_OWNER._replace(rows_dropped=False),
    "what was committed is fitted again after an opening": ONE_OWNER._replace(opening_finishes=False),
    "forked children act": MEMORY._replace(children_act=True),
    "the fence does not grow": WORKERS._replace(fence_grows=False),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_broken_table_is_found(monkeypatch, name):
    rules, steps, may = TABLES[name]
    for entry, step in steps.items():
        monkeypatch.setitem(lifecycle.TABLE, entry, step)
    for act, phases in may.items():
        monkeypatch.setitem(lifecycle.MAY, act, frozenset(phases))
    assert found_by(rules).way is not None


@pytest.mark.parametrize("name", RULES)
def test_a_broken_rule_is_found(name):
    rules = RULES[name]
    assert found_by(rules, 13).way is not None
