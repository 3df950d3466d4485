"""The client: one connection, and retries that are safe. It needs the standard library and NumPy alone."""

from __future__ import annotations

import http.client
import json
import math
import random
import ssl
import time
import uuid
from collections.abc import Iterable
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

import numpy as np

from fliphat.serve import compact

__all__ = ["Client", "Decided", "ServerError"]

_JSON = "application/json"
_MAY_PASS = (502, 503, 504)


class ServerError(RuntimeError):
    """The server refused a request; `status` and `code` say why."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.status, self.code = status, code


class Decided(NamedTuple):
    """A decision of a server; as :class:`fliphat.Decision`, with an id that is text and proves itself."""

    id: str
    arm: Any
    valid: bool
    episode: int
    probability: float


class Client:
    """A policy that another process plays; calls are those of a policy. For one thread at a time.

    Parameters
    ----------
    url : str
        Such as ``"http://127.0.0.1:8377"``.
    token : str, optional
        The token for writing; the operator's, for a client that changes arms.
    timeout : float
        Seconds to wait for an answer; a little more than the server's own limit.
    attempts : int
        How often a request is sent at most, when the connection or the store fails.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8377", token="a token of some length")
    >>> client.url
    'http://127.0.0.1:8377'
    """

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = 35.0, attempts: int = 5
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must begin with http:// or https:// and have a host, got {url!r}")
        self.url, self._path, self._attempts = url, parts.path.rstrip("/"), attempts
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._connection: http.client.HTTPConnection = (
            http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=timeout, context=ssl.create_default_context()
            )
            if parts.scheme == "https"
            else http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
        )

    def select(self, contexts: Any, user: Any = None, key: Any = None) -> Decided:
        """Play one round; without a `key` one is made, so that a lost answer can be asked for again."""
        key = uuid.uuid4().hex if key is None else key
        (decided,) = self._decided(compact.write_rounds(contexts, users=user, keys=key, single=True))
        return decided

    def select_batch(
        self, contexts: Any, users: Any = None, keys: Any = None, *, arms: int | None = None
    ) -> list[Decided]:
        """Play several rounds. They are sent again only with `keys`: without, they might be played twice."""
        body = compact.write_rounds(contexts, arms=arms, users=users, keys=keys, single=False)
        return self._decided(body, again=keys is not None)

    def update(
        self, decision: Decided | str | None = None, reward: Any = None, *, key: Any = None, user: Any = None
    ) -> bool:
        """Hand in the reward of a round, or of the one with this `key` (and `user`); False if it came late.

        A repeated one counts once. Only a key of 16 characters or more names a round here.
        """
        if (decision is None) == (key is None):
            raise ValueError("update must be given a decision, or the key (and user) that it was made with")
        named: dict[str, Any] = {"key": key} | ({} if user is None else {"user": user})
        if decision is not None:
            named = {"id": _id(decision)}
        return bool(self._post("/update", named | {"reward": float(reward)})["taken"])

    def update_batch(self, decisions: Iterable[Decided | str], rewards: Any) -> int:
        """Hand in several rewards; how many were taken, of which those of a lost answer do not count."""
        ids, given = [_id(one) for one in decisions], np.asarray(rewards, float).tolist()
        return int(self._post("/update", {"ids": ids, "rewards": given})["taken"])

    def cancel(self, decision: Decided | str) -> bool:
        """Take a round back that was never shown; False if its episode is over."""
        return bool(self._post("/cancel", {"id": _id(decision)})["cancelled"])

    def forget(self, user: str | int) -> int:
        """Erase what is kept of a user; how many rounds those were. Needs the operator's token."""
        return int(self._post("/forget", {"user": user})["rounds"])

    def get(self, path: str) -> Any:
        """Return what ``/estimate``, ``/guarantee``, ``/arms`` or ``/readyz`` shows."""
        return json.loads(self._send("GET", path))

    def switch_off(self, arm: str | int) -> None:
        """Give every round this arm from now on, and learn nothing. Needs the operator's token."""
        self._post("/switch", {"arm": arm})

    def switch_on(self) -> None:
        """Let the policy play again. Needs the operator's token."""
        self._post("/switch", {"arm": None})

    def add_arm(self, arm: str | int) -> None:
        """Let rounds play one more arm, of a policy that knows its arms. Needs the operator's token."""
        self._post("/arms", {"add": arm})

    def remove_arm(self, arm: str | int) -> None:
        """Play an arm no more. Needs the operator's token."""
        self._post("/arms", {"remove": arm})

    def close(self) -> None:
        """Close the connection; the next call opens one again."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _post(self, path: str, members: dict[str, Any]) -> Any:
        return json.loads(self._send("POST", path, json.dumps(members).encode()))

    def _decided(self, body: bytes, *, again: bool = True) -> list[Decided]:
        told = json.loads(self._send("POST", "/select", body, compact.COMPACT, again=again))
        columns = zip(*told.values(), strict=True) if "ids" in told else [told.values()]
        return [Decided._make((*one, math.nan if chance is None else chance)) for *one, chance in columns]

    def _send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        kind: str = _JSON,
        *,
        again: bool = True,
    ) -> bytes:
        """Send a request until it is answered; only one that may be repeated is sent again."""
        headers = {} if body is None else self._headers | {"Content-Type": kind}
        for attempt in range(self._attempts):
            last = attempt == self._attempts - 1 or not again
            try:
                self._connection.request(method, self._path + path, body, headers)
                answer = self._connection.getresponse()
                content = answer.read()
            except (OSError, http.client.HTTPException):
                self._connection.close()
                if last:
                    raise
            else:
                if answer.status == 200:
                    return content
                if answer.status == 409 and attempt > 0 and path == "/update":
                    return b'{"taken": true}'  # the answer to an earlier attempt was lost on its way
                if last or answer.status not in _MAY_PASS:
                    raise _error(answer.status, content)
            time.sleep(min(2.0, 0.05 * 2**attempt) * (0.5 + random.random()))
        raise AssertionError("unreachable")


def _id(decision: Decided | str) -> str:
    return decision if isinstance(decision, str) else decision.id


def _error(status: int, content: bytes) -> ServerError:
    try:
        told = json.loads(content)
        return ServerError(status, str(told["error"]), str(told["detail"]))
    except (ValueError, KeyError, TypeError):
        return ServerError(status, "unknown", "the answer is not one of fliphat's")
