"""Which policy is served: the one that a store was made with, or a new one from an operator's arguments."""

from __future__ import annotations

import dataclasses
import inspect
import os
from datetime import time, timedelta
from typing import Any, Final

from fliphat.fit.dense import DenseSettings, class_of, named_settings
from fliphat.policies.fliphat import FLIPHAT
from fliphat.policies.linear import PrivateLinear
from fliphat.policies.live import LivePolicy
from fliphat.policies.store.opening import recorded_settings
from fliphat.policies.store.options import Store, as_store
from fliphat.policies.store.sql import refuse_other_settings
from fliphat.policies.types import StoreError
from fliphat.serve.terms import terms_of

__all__ = ["POLICIES", "checked_arguments", "open_policy", "reopened"]

POLICIES: Final[dict[str, type[FLIPHAT] | type[PrivateLinear]]] = {
    "FLIPHAT": FLIPHAT,
    "PrivateLinear": PrivateLinear,
}

#: Options of the store that an operator gives together with the policy's arguments.
_EVERY_TIME: Final[tuple[str, ...]] = ("witness", "memory_limit", "retention", "reward_timeout", "users")
#: Arguments that belong to the server.
_OURS: Final = ("self", "store", "durability")


def checked_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """Return a policy's arguments with its class as ``policy``, refusing names that the class does not have.

    Examples
    --------
    >>> checked_arguments({"arms": ["red", "blue"], "dim": 5})["policy"]
    'PrivateLinear'
    """
    linear = "arms" in given and "sparsity" not in given
    name = given.get("policy", "PrivateLinear" if linear else "FLIPHAT")
    if name not in POLICIES:
        raise ValueError(f"policy must be one of {sorted(POLICIES)}, got {name!r}")
    known = [one for one in inspect.signature(POLICIES[name]).parameters if one not in _OURS]
    known += _EVERY_TIME
    for one in given:
        if one in _OURS:
            raise ValueError(f"{one} belongs to the command line, not to the policy's arguments")
        if one != "policy" and one not in known:
            raise ValueError(f"{one} is no argument of {name}, which has {', '.join(known)}")
    return given | {"policy": name}


def open_policy(store: str, given: dict[str, Any] | None, durability: Any) -> LivePolicy:
    """Open the policy of a store; `given` are its arguments, None to go on with those it was made with.

    A policy with named arms goes on with those that its store has now, whatever `given` says.
    """
    policy = _opened(store, given, durability)
    try:
        terms_of(policy, getattr(policy._fit, "table", None))  # refuses arms that JSON can't hold
    except BaseException:
        policy.close()
        raise
    return policy


def reopened(store: str, witness: str | None = None) -> LivePolicy:
    """Open a store that exists, whichever policy it holds, with the arguments it was made with."""
    kept = Store(store, witness=witness)
    return POLICIES[class_of(recorded_settings(kept))].open(kept)


def _opened(store: str, given: dict[str, Any] | None, durability: Any) -> LivePolicy:
    try:
        record = recorded_settings(as_store(store))
    except StoreError:
        record = None  # new, or damaged: whoever opens it says so
    if given is None:
        if record is None and _nothing_at(store):
            raise ValueError(
                f"there is no store at {store!r} yet: a new one needs the policy's arguments, from --policy, "
                f"or --dim, --epsilon, --delta and either --sparsity, or --arms and --context-norm"
            )
        kept = FLIPHAT if record is None else POLICIES[class_of(record)]
        return kept.open(Store(store, durability=durability))
    named = checked_arguments(given)
    policy = POLICIES[named.pop("policy")]
    every_time = {name: named.pop(name) for name in _EVERY_TIME if name in named}
    there = record is not None and record["fit"] == "dense" and POLICIES[class_of(record)] is policy
    if there and "arms" in named:
        return _gone_on_with(policy, store, named, durability, every_time)
    _refuse_missing(policy, named)
    return policy(**named, store=_store(store, durability, every_time))


def _store(where: str, durability: Any, options: dict[str, Any]) -> Store:
    given = dict(options)
    for name in ("retention", "reward_timeout"):
        if name in given:
            given[name] = read_age(name, given[name])
    return Store(where, durability=durability, **given)


_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def read_age(name: str, value: Any) -> int | timedelta:
    """Return an age as a file of arguments has it: a number of rounds, ``"30d"``, or a time such as 00:10:00.

    Examples
    --------
    >>> read_age("retention", 5000), read_age("retention", "36h")
    (5000, datetime.timedelta(days=1, seconds=43200))
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, time):
        return timedelta(hours=value.hour, minutes=value.minute, seconds=value.second)
    if isinstance(value, str) and value[:-1].isascii() and value[:-1].isdigit() and value[-1:] in _UNITS:
        return timedelta(seconds=int(value[:-1]) * _UNITS[value[-1]])
    raise ValueError(
        f"{name} must be a number of rounds, or digits and one of {', '.join(_UNITS)}, such as '30d'"
    )


def _gone_on_with(
    kind: type[FLIPHAT] | type[PrivateLinear],
    store: str,
    given: dict[str, Any],
    durability: Any,
    every_time: dict[str, Any],
) -> LivePolicy:
    _refuse_missing(kind, given)
    policy = kind.open(_store(store, durability, every_time))
    try:
        left_out = (*_OURS, "arms", "fit")
        parameters = inspect.signature(kind).parameters.items()
        asked = {name: given.get(name, one.default) for name, one in parameters if name not in left_out}
        table = policy._fit.table  # type: ignore[attr-defined]
        make = DenseSettings.checked if kind is PrivateLinear else named_settings
        settings = make(**asked, arms=table.initial)
        # A store goes on with its own constants: they are no argument.
        settings = dataclasses.replace(settings, constants=policy._settings.constants)
        refuse_other_settings(policy._settings.to_dict(), settings)
    except BaseException:
        policy.close()
        raise
    return policy


def _refuse_missing(policy: type[FLIPHAT] | type[PrivateLinear], given: dict[str, Any]) -> None:
    parameters = inspect.signature(policy).parameters.items()
    missing = [name for name, one in parameters if one.default is one.empty and name not in given]
    if missing:
        raise ValueError(f"{policy.__name__} needs {', '.join(missing)} too")


def _nothing_at(store: str) -> bool:
    if "://" in store:
        return False
    return not os.path.isdir(store) or not os.listdir(store)
