"""One request: its token, its limits, its answer. Plain ASGI: a round costs little more than its play."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fliphat.serve.bodies import COMPACT, Refusal
from fliphat.serve.settings import Limits

__all__ = ["JSON", "Asked", "Disconnected", "read_body", "refuse", "send_answer"]

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

JSON: Final = b"application/json"
_COMPACT: Final = COMPACT.encode()


class Disconnected(Exception):
    """The client went away; there is nobody to answer."""


@dataclass(slots=True)
class Asked:
    """What the head of a request says that concerns us."""

    authorization: bytes
    compact: bool
    length: int | None

    @classmethod
    def of(cls, scope: Scope) -> Asked:
        """Return the head of a request."""
        authorization, compact, length = b"", False, None
        for name, value in scope["headers"]:
            if name == b"authorization":
                authorization = value
            elif name == b"content-type":
                compact = value.startswith(_COMPACT)
            elif name == b"content-length":
                length = int(value) if value.isdigit() and len(value) < 20 else -1
        return cls(authorization, compact, length)


async def read_body(receive: Receive, asked: Asked, limits: Limits) -> bytes:
    """Return a request's body; one that is too long is refused before it was read whole."""
    if asked.length is not None and not 0 <= asked.length <= limits.body:
        raise _too_large(limits)
    try:
        async with asyncio.timeout(limits.read):
            message = await receive()
            body: bytes = message.get("body", b"")
            if message.get("more_body"):
                parts, size = [body], len(body)
                while message.get("more_body"):
                    message = await receive()
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > limits.body:
                        raise _too_large(limits)
                body = b"".join(parts)
    except TimeoutError:
        raise Refusal(408, "slow", f"the body must arrive within {limits.read:g} seconds") from None
    if message["type"] == "http.disconnect":
        raise Disconnected
    if len(body) > limits.body:
        raise _too_large(limits)
    return body


def _too_large(limits: Limits) -> Refusal:
    return Refusal(413, "too large", f"a body must have at most {limits.body} bytes")


async def send_answer(
    send: Send,
    body: bytes,
    kind: bytes = JSON,
    status: int = 200,
    *,
    more: tuple[tuple[bytes, bytes], ...] = (),
) -> None:
    """Send a whole answer. Caches must not keep it: decisions are for one person."""
    headers = [
        (b"content-type", kind),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        *more,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


#: The body was perhaps not read: the connection can't be used again.
_CLOSE: Final = (b"connection", b"close")
_UNREAD: Final = frozenset((401, 408, 413))


async def refuse(send: Send, refusal: Refusal) -> None:
    """Say why nothing was done, in words that hold nothing of the request."""
    more: tuple[tuple[bytes, bytes], ...] = ()
    if refusal.status in _UNREAD:
        more += (_CLOSE,)
    if refusal.status == 401:
        more += ((b"www-authenticate", b"Bearer"),)
    if refusal.status == 503:
        more += ((b"retry-after", b"1"),)
    body = json.dumps({"error": refusal.code, "detail": refusal.detail}).encode()
    await send_answer(send, body, status=refusal.status, more=more)
