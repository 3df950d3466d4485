"""What `fliphat inspect` and `fliphat verify` print: a store or a saved file in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from fliphat.lab.display.text_table import TextTable

#: Arms that are named in the line about them.
_MOST_ARMS = 20
_COLUMNS = ("episode", "rounds", "columns picked", "noise", "in the estimate")


def store_lines(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that tell what :func:`fliphat.policies.store.inspect.inspect_path` found."""
    settings = facts["settings"]
    versions = ", ".join(f"{name} {value}" for name, value in facts["format"].items() if name != "current")
    yield f"{facts['kind']} of format {versions}"
    if "in_use" in facts:
        told = {True: "in use by a policy", False: "not in use", None: "whether it is in use is not known"}
        yield told[facts["in_use"]]
    if facts.get("witnessed"):
        yield "played with a witness"
    if facts.get("handed_over"):
        yield f"handed over to the file {facts['handed_over']!r}: the policy goes on there"
    sparsity = f", sparsity {settings['sparsity']}" if "sparsity" in settings else ""
    yield (
        f"{facts['policy']}: dim {settings['dim']}{sparsity}, epsilon {settings['epsilon']:g}, "
        f"delta {settings['delta']:g}, fit {settings['fit']}, loss {settings['loss']}, "
        f"rounds_per_user {settings['rounds_per_user']}"
    )
    if kept := settings.get("constants"):  # hard thresholding has none of its own
        yield f"constants of its fit: {len(kept)} recorded, kept whatever a later version's are"
    if facts["arms"] is not None:
        named = ", ".join(str(arm) for arm in facts["arms"][:_MOST_ARMS])
        more = len(facts["arms"]) - _MOST_ARMS
        yield f"arms {named}" + (f" and {more} more" if more > 0 else "")
    yield f"episode {facts['episode']} is {facts['state']}; {facts['rounds']} rounds played"
    if facts["guarantee"] is None:
        yield f"not known without running its functions: {facts['not_known_because']}"
    else:
        yield f"{facts['remaining']} rounds until the estimate changes"
        yield from _history(facts["history"])
        if facts["scoreboard"]["recent"] is not None:
            yield "scoreboard: mean reward of a round, with 95 %"
            yield from ("  " + line for line in facts["scoreboard"]["text"].splitlines())
        yield "health: " + facts["health_text"].replace("\n", "; ")
        yield facts["guarantee"]["text"]
        if group := facts["guarantee"].get("group"):
            shown = "; ".join(f"{rounds} rounds {_up(epsilon)}" for rounds, epsilon in group)
            yield f"epsilon of several rounds together, at the same delta, as others see them: {shown}"
    if "private" in facts:
        numbers = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in facts["private"].items())
        yield f"PRIVATE, not to be passed on: {numbers}"


def _up(epsilon: float) -> str:
    """Return a number of three digits that is not below it."""
    digits = 2 - math.floor(math.log10(epsilon)) if epsilon > 0 else 2
    return f"{math.ceil(epsilon * 10**digits - 1e-9) / 10**digits:g}"


def _history(history: list[dict[str, Any]]) -> Iterator[str]:
    if not history:
        return
    rows = [
        (
            str(one["episode"]),
            str(one["rounds"]),
            str(one["sparsity"]),
            "-" if one["noise_scale"] is None else f"{one['noise_scale']:.3g}",
            str(len(one["indices"])),
        )
        for one in history
    ]
    yield TextTable.fitting(_COLUMNS, rows).text(rows)
