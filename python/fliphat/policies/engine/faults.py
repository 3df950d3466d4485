"""Named points between durable steps, where tests cut a policy off to see that it recovers."""

from __future__ import annotations

__all__ = ["reached"]


def reached(point: str) -> None:
    """Do nothing; tests replace this with something that stops at one point."""
