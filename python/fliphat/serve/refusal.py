"""A request that is refused: its status, a stable code, and words that hold nothing of the request."""

from __future__ import annotations

__all__ = ["Refusal", "malformed", "too_many", "unprocessable"]


class Refusal(Exception):
    """A request that is refused."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail


def malformed(detail: str) -> Refusal:
    """Return the refusal of a body that can't be read."""
    return Refusal(400, "malformed", detail)


def too_many(most: int) -> Refusal:
    """Return the refusal of a body with more rounds or rewards than the owner plays in one go."""
    return Refusal(413, "too many", f"a body must have at most {most} rounds or rewards")


def unprocessable(detail: str) -> Refusal:
    """Return the refusal of a body whose structure is not what the policy takes."""
    return Refusal(422, "unprocessable", detail)
