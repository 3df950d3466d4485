"""What an operator decides: tokens and limits, both of which can be changed while the server runs."""

from __future__ import annotations

import dataclasses
import functools
import hmac
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from fliphat import arguments

__all__ = ["Limits", "Rules", "Tokens"]

_SHORTEST_TOKEN = 16


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much the server takes and how long it waits.

    Attributes
    ----------
    body : int
        Bytes of a request's body at most; larger ones are refused by their length, or as soon as more came.
    rounds : int
        Rounds or rewards of one request at most: those of others wait for all of them.
    waiting : int
        Requests that may wait for the owner; more are refused at once.
    wait : float
        Seconds that a request waits for its answer, a fit included.
    read : float
        Seconds that a client has for sending its first request's head, and again for every body.
    idle : float
        Seconds that a connection may be without a request: the next head must be whole by then.
    threads : int
        Rounds that a worker plays at once in a database, each with a connection to it; read at the start.
    connections : int
        Connections at most; fewer, where the system has too few descriptors for them and the store.

    Examples
    --------
    >>> Limits(wait=5.0).rounds
    4096
    """

    body: int = 8 * 2**20
    rounds: int = 4096
    waiting: int = 4096
    wait: float = 30.0
    read: float = 10.0
    idle: float = 30.0
    threads: int = 8
    connections: int = 1024

    def __post_init__(self) -> None:
        arguments.integer("body", self.body, 1024, 2**31)
        arguments.integer("rounds", self.rounds, 1, 10**6)
        arguments.integer("waiting", self.waiting, 1, 10**6)
        arguments.integer("threads", self.threads, 1, 256)
        arguments.integer("connections", self.connections, 8, 10**6)
        for name in ("wait", "read", "idle"):
            arguments.within(name, getattr(self, name), 0.01, 3600.0)

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Return the limits that a TOML file has, and those that it leaves out."""
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        known = [field.name for field in dataclasses.fields(cls)]
        for name in given:
            if name not in known:
                raise ValueError(f"{name} is no limit: there are {', '.join(known)}")
        return cls(**given)


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Who may write, and who may see an operator's numbers; without any, everybody.

    Attributes
    ----------
    write : tuple of str, str or None
        One of them is needed for ``/select``, ``/update`` and ``/cancel``. While a token is changed there are
        two.
    operator : tuple of str, str or None
        Needed for the private part of ``/metrics`` (counts of rewards, late and invalid rounds, requests), to
        change arms, to erase and to switch play off. Without one, whoever may write may do so.

    Examples
    --------
    >>> tokens = Tokens(write="a token of some length", operator="another token, as long")
    >>> tokens.allows("write", b"Bearer a token of some length"), tokens.allows("operator", b"")
    (True, False)
    >>> Tokens(write="a token of some length", operator=None).allows("operator", b"")
    False
    """

    write: tuple[str, ...] | str | None
    operator: tuple[str, ...] | str | None

    def __post_init__(self) -> None:
        for name in ("write", "operator"):
            for token in _each(getattr(self, name)) or ():
                if not (len(token) >= _SHORTEST_TOKEN and token.isascii()):
                    raise ValueError(
                        f"the {name} token must have at least {_SHORTEST_TOKEN} characters, all of them ASCII"
                    )

    @functools.cached_property
    def _headers(self) -> dict[str, tuple[bytes, ...] | None]:
        return {
            what: None if tokens is None else tuple(b"Bearer " + one.encode() for one in tokens)
            for what, tokens in (
                ("write", _each(self.write)),
                ("operator", _each(self.operator or self.write)),
            )
        }

    def allows(self, what: str, header: bytes) -> bool:
        """Whether a request with this ``Authorization`` header may write, or do what an operator does."""
        right = self._headers[what]
        return right is None or any(hmac.compare_digest(header, one) for one in right)


def _each(tokens: tuple[str, ...] | str | None) -> tuple[str, ...] | None:
    return (tokens,) if isinstance(tokens, str) else tokens


@dataclass(kw_only=True)
class Rules:
    """The tokens and limits in force, which a reload replaces, and the connections that there are."""

    tokens: Tokens
    limits: Limits
    connections: int = 1024
    open_connections: int = 0
