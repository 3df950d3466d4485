"""What a store goes on with, whatever a new policy would get: arguments, fit, accounting, constants."""

from __future__ import annotations

from typing import Any, NamedTuple

from fliphat.fit.dense import DenseTuning
from fliphat.fit.pursuit.constants import Tuning
from fliphat.fit.settings import EngineSettings, read_constants
from fliphat.policies.types import StoreError

__all__ = ["KeptChoices", "kept_from", "refuse_other_settings"]


class KeptChoices(NamedTuple):
    """What a store goes on with, whatever a new policy would get: its fit, its accounting, its constants."""

    fit: str
    accounting: str
    constants: Any


def kept_from(record: dict[str, Any]) -> KeptChoices | None:
    """Return what a record of settings says; None if it is damaged, which whoever opens the store tells."""
    fit, accounting = record.get("fit"), record.get("accounting")
    if not isinstance(fit, str) or not isinstance(accounting, str):
        return None
    try:
        constants = read_constants(record["constants"], DenseTuning if fit == "dense" else Tuning)
    except (LookupError, ValueError, TypeError):
        return None
    return KeptChoices(fit, accounting, constants)


def refuse_other_settings(recorded: dict[str, Any], settings: EngineSettings) -> None:
    """Raise if a store was made with other arguments, and name them."""
    now = settings.to_dict()
    changed = sorted(name for name in now if recorded.get(name) != now[name])
    if "fit" in changed:
        changed = [name for name in changed if name != "constants"]  # which follow from it
    if changed:
        told = ", ".join(f"{name} was {recorded.get(name)!r}, got {now[name]!r}" for name in changed)
        raise StoreError(f"the store was made with other arguments: {told}")
