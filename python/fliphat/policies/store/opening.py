"""Which engine plays a policy: one in memory, the owner of a directory, or one worker of a database."""

from __future__ import annotations

import os
from typing import Any

from fliphat.fit.base import Fit
from fliphat.policies.engine.age import Ages
from fliphat.policies.engine.engine import Engine
from fliphat.policies.engine.rule import ArmRule
from fliphat.policies.store import directory
from fliphat.policies.store.base import KeptChoices, kept_from
from fliphat.policies.store.directory import DURABILITIES
from fliphat.policies.store.postgres import is_url
from fliphat.policies.store.witness import make_witness
from fliphat.policies.types import StoreError

__all__ = ["DURABILITIES", "kept_choices", "opened_engine", "recorded_settings"]


def kept_choices(store: str | os.PathLike[str]) -> KeptChoices | None:
    """Return what a store was made with and goes on with; None if it is new or can't be read."""
    if not is_url(store):
        return directory.kept_choices(store)
    from fliphat.policies.store.postgres.store import recorded

    record = recorded(str(store))
    return None if record is None else kept_from(record)


def recorded_settings(store: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the record of the settings that a store was made with; only looks."""
    if not is_url(store):
        return directory.recorded_settings(store)
    from fliphat.policies.store.postgres.store import recorded

    record = recorded(str(store))
    if record is None:
        raise StoreError("there is no policy in this database")
    return record


def opened_engine(
    fit: Fit[Any, Any],
    store: str | os.PathLike[str] | None,
    durability: str,
    *,
    policy: str,
    memory_limit: int | None,
    ages: Ages,
    witness: str | os.PathLike[str] | None = None,
    rule: ArmRule | None = None,
) -> Engine:
    """Return an engine that knows everything its store holds.

    Parameters
    ----------
    fit : Fit
    store : path, URL of a database, or None
    durability : str
        One of :data:`DURABILITIES`.
    policy : str
        The class that plays, which a database remembers.
    memory_limit : int or None
    ages : Ages
    witness : path, URL of a database, or None
    rule : ArmRule, optional
        How contexts become arms; by default each round brings a row for each arm.
    """
    if witness is not None and store is None:
        raise ValueError("witness is for a store: give store=, too")
    engine = _opened(fit, store, durability, policy, memory_limit, ages, rule)
    try:
        engine.set_witness(None if witness is None else make_witness(witness))
    except BaseException:
        engine.close()
        raise
    return engine


def _opened(
    fit: Fit[Any, Any],
    store: str | os.PathLike[str] | None,
    durability: str,
    policy: str,
    memory_limit: int | None,
    ages: Ages,
    rule: ArmRule | None,
) -> Engine:
    if is_url(store):
        from fliphat.policies.engine.shared import SharedEngine

        return SharedEngine(
            fit, str(store), policy, durability, rule=rule, memory_limit=memory_limit, ages=ages
        )
    engine = Engine(fit, rule=rule, memory_limit=memory_limit, ages=ages)
    if store is not None:
        directory.open_store(store, durability, engine)
        engine.expire()
    return engine
