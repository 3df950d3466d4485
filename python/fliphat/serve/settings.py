"""What an operator decides: tokens and limits."""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from fliphat import arguments

__all__ = ["Limits", "Tokens"]

_SHORTEST_TOKEN = 16


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much the server takes and how long it waits.

    Attributes
    ----------
    body : int
        Bytes of a request's body at most; larger ones are refused by their length, or as soon as more came.
    waiting : int
        Requests that may wait for the owner; more are refused at once.
    wait : float
        Seconds that a request waits for its answer, a fit included.
    read : float
        Seconds that a client has for sending a request's head, and again for its body.

    Examples
    --------
    >>> Limits(wait=5.0).body
    8388608
    """

    body: int = 8 * 2**20
    waiting: int = 4096
    wait: float = 30.0
    read: float = 10.0

    def __post_init__(self) -> None:
        arguments.integer("body", self.body, 1024, 2**31)
        arguments.integer("waiting", self.waiting, 1, 10**6)
        arguments.within("wait", self.wait, 0.01, 3600.0)
        arguments.within("read", self.read, 0.01, 3600.0)


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Who may write, and who may see an operator's numbers; None lets everybody.

    Attributes
    ----------
    write : str or None
        Needed for ``/select`` and ``/update``.
    operator : str or None
        Needed for the private part of ``/metrics`` (counts of rewards, late and invalid rounds, requests) and
        to change arms. Without one, whoever may write may change arms.

    Examples
    --------
    >>> tokens = Tokens(write="a token of some length", operator="another token, as long")
    >>> tokens.allows("write", b"Bearer a token of some length"), tokens.allows("operator", b"")
    (True, False)
    >>> Tokens(write="a token of some length", operator=None).allows("arms", b"")
    False
    """

    write: str | None
    operator: str | None

    def __post_init__(self) -> None:
        for name in ("write", "operator"):
            token = getattr(self, name)
            if token is not None and not (len(token) >= _SHORTEST_TOKEN and token.isascii()):
                raise ValueError(
                    f"the {name} token must have at least {_SHORTEST_TOKEN} characters, all of them ASCII"
                )

    def allows(self, what: str, header: bytes) -> bool:
        """Whether a request with this ``Authorization`` header may do that."""
        token = {"write": self.write, "operator": self.operator, "arms": self.operator or self.write}[what]
        if token is None:
            return True
        return hmac.compare_digest(header, b"Bearer " + token.encode())
