"""The operator's page, one file without anything from elsewhere, and what it shows: public facts alone."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from importlib import resources
from typing import Any, Final

from fliphat._native import VERSION
from fliphat.serve.owner import Public, Ready
from fliphat.serve.terms import Terms
from fliphat.serve.web import Answer

__all__ = ["overview", "shown"]

#: Releases that are listed, the last ones.
_LISTED: Final = 8


def overview(public: Public, terms: Terms, ready: Ready, off: str | int | None = None) -> dict[str, Any]:
    """Return what the policy is, what it promises, where it is and how it does, for JSON."""
    estimates = list(public.history)[-_LISTED:]
    return {
        "version": VERSION,
        "policy": terms.policy,
        "dim": terms.dim,
        "arms": None if terms.arms is None else list(map(str, terms.arms)),
        "ready": ready.ready,
        "detail": ready.words,
        "switched_off": off,
        "rounds": public.rounds,
        "episode": public.episode,
        "remaining": public.remaining,
        "played_in_episode": public.played_in_episode,
        "released": public.releases,
        "findings": list(public.health.findings),
        "health": str(public.health),
        "guarantee": str(public.guarantee),
        "scoreboard": str(public.scoreboard),
        "releases": [
            {
                "episode": one.episode,
                "rounds": one.rounds,
                "coefficients": len(one.estimate.indices),
                "noise_scale": one.noise_scale,
            }
            for one in reversed(estimates)
        ],
    }


@functools.cache
def shown() -> Answer:
    """Return the page, with the header that lets it run its own script and ask this server alone."""
    text = resources.files("fliphat.serve").joinpath("page.html").read_text(encoding="utf-8")
    style, script = (_digest(text, name) for name in ("style", "script"))
    policy = (
        f"default-src 'none'; style-src '{style}'; script-src '{script}'; connect-src 'self'; "
        f"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    header = (b"content-security-policy", policy.encode())
    return Answer(text.encode(), b"text/html; charset=utf-8", more=(header,))


def _digest(text: str, name: str) -> str:
    found = re.search(f"<{name}>(.*?)</{name}>", text, re.DOTALL)
    assert found is not None
    return "sha256-" + base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
