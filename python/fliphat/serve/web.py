"""One request: its token, its limits, its answer. Plain ASGI: a round costs little more than its play."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from fliphat.serve.compact import COMPACT
from fliphat.serve.connections import EXCHANGE
from fliphat.serve.refusal import Refusal
from fliphat.serve.settings import Limits

__all__ = ["Answer", "Asked", "Disconnected", "read_body", "refuse_foreign", "refused", "send_answer"]

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


_LOCAL: Final = frozenset((b"127.0.0.1", b"localhost", b"[::1]"))


def refuse_foreign(scope: Scope) -> None:
    """Refuse what a page of another site may have sent, where no token tells who writes.

    A browser lets any page send a form or plain text here, and says so in ``Origin``; a name of the page's
    own that leads to this machine stands in ``Host``. JSON it sends only after asking, which nobody answers.
    """
    headers = dict(scope["headers"])
    host = headers.get(b"host", b"")
    name = host if host.endswith(b"]") else host.rpartition(b":")[0] or host
    if b"origin" in headers and headers[b"origin"] not in (b"http://" + host, b"https://" + host):
        raise Refusal(403, "origin", "a server without tokens takes nothing from pages of other sites")
    if name not in _LOCAL:
        raise Refusal(403, "host", "a server without tokens answers to this machine's own names alone")
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip()
    if kind not in (JSON, _COMPACT):
        raise Refusal(415, "content type", f"the content type must be application/json or {COMPACT}")


async def read_body(scope: Scope, receive: Receive, asked: Asked, limits: Limits) -> bytes:
    """Return a request's body; one that is too long is refused before it was read whole, a slow one too."""
    if asked.length is not None and not 0 <= asked.length <= limits.body:
        raise _too_large(limits)
    exchange = scope.get("extensions", {}).get(EXCHANGE)
    body: bytes | None = None if exchange is None else exchange.body()
    if body is not None and len(body) <= limits.body:
        return body
    try:
        async with asyncio.timeout(limits.read):
            return await _read(receive, limits)
    except TimeoutError:
        raise Refusal(408, "slow", f"the body must arrive within {limits.read:g} seconds") from None


async def _read(receive: Receive, limits: Limits) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        parts, size = [body], len(body)
        while message.get("more_body") and size <= limits.body:
            message = await receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
        body = b"".join(parts)
    if message["type"] == "http.disconnect":
        raise Disconnected
    if len(body) > limits.body:
        raise _too_large(limits)
    return body


def _too_large(limits: Limits) -> Refusal:
    return Refusal(413, "too large", f"a body must have at most {limits.body} bytes")


class Answer(NamedTuple):
    """What is sent; `more` are headers of its own."""

    body: bytes
    kind: bytes = JSON
    status: int = 200
    more: tuple[tuple[bytes, bytes], ...] = ()


async def send_answer(scope: Scope, send: Send, answer: Answer) -> None:
    """Send a whole answer. Caches must not keep it: decisions are for one person."""
    headers = [
        (b"content-type", answer.kind),
        (b"content-length", b"%d" % len(answer.body)),
        (b"cache-control", b"no-store"),
        *answer.more,
    ]
    exchange = scope.get("extensions", {}).get(EXCHANGE)
    if (
        exchange is not None
        and scope["method"] != "HEAD"
        and answer.status not in _UNREAD
        and exchange.answer(answer.status, headers, answer.body)
    ):
        return
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


#: The body was perhaps not read: the connection can't be used again.
_CLOSE: Final = (b"connection", b"close")
_UNREAD: Final = frozenset((401, 403, 408, 413, 415))


def refused(refusal: Refusal, request: str) -> Answer:
    """Say why nothing was done, in words that hold nothing of the request; the log has a line of that id."""
    more: tuple[tuple[bytes, bytes], ...] = ((b"x-request-id", request.encode()),)
    if refusal.status in _UNREAD:
        more += (_CLOSE,)
    if refusal.status == 401:
        more += ((b"www-authenticate", b"Bearer"),)
    if refusal.status == 503:
        more += ((b"retry-after", b"1"),)
    body = json.dumps({"error": refusal.code, "detail": refusal.detail}).encode()
    return Answer(body, JSON, refusal.status, more)
