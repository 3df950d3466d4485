"""The addresses, as a Starlette application."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from fliphat.policies.engine.each import Single
from fliphat.policies.live import LivePolicy
from fliphat.policies.types import Decision, Decisions
from fliphat.serve import bodies, compact, logs, openapi, page, play, switch
from fliphat.serve.decisions import DecisionLog
from fliphat.serve.metrics import CONTENT_TYPE, Metrics
from fliphat.serve.owner import Owner
from fliphat.serve.refusal import Refusal
from fliphat.serve.settings import Limits, Rules, Tokens
from fliphat.serve.web import (
    Asked,
    Disconnected,
    Patience,
    Receive,
    Scope,
    Send,
    refuse,
    refuse_foreign,
    send_answer,
)

__all__ = ["make_app"]

_COMPACT = compact.COMPACT.encode()


def make_app(
    open_policy: Callable[[], LivePolicy],
    *,
    tokens: Tokens,
    limits: Limits | None = None,
    log_requests: bool = False,
    decision_log: DecisionLog | None = None,
) -> Any:
    """Return a Starlette application that plays one policy.

    Parameters
    ----------
    open_policy : function
        Returns the policy, which must have a store. Called in the thread that will play it, when the server
        starts, and again after its store failed. With a directory give ``durability="group"``: the server
        syncs each group of requests before it answers any of them.
    tokens : Tokens
    limits : Limits, optional
    log_requests : bool
        Whether requests that went well have a line in the log too.
    decision_log : DecisionLog, optional
        Where every decision and reward is noted, for the operator.

    Returns
    -------
    starlette.applications.Starlette

    Examples
    --------
    >>> from fliphat import FLIPHAT
    >>> from fliphat.serve import Tokens, make_app
    >>> app = make_app(
    ...     lambda: FLIPHAT(dim=20, sparsity=2, epsilon=1.0, delta=1e-2, store="store", durability="group"),
    ...     tokens=Tokens(write="a token of some length", operator="another token, as long"),
    ... )  # doctest: +SKIP
    """
    from starlette.applications import Starlette
    from starlette.routing import Route

    service = _Service(open_policy, Rules(tokens=tokens, limits=limits or Limits()), log_requests)
    service.decisions = decision_log

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        await service.owner.start()
        if decision_log is not None:
            decision_log.keyed(service.owner.secret)
        service.patience.start()
        logs.event("started")
        try:
            yield
        finally:
            service.patience.stop()
            await service.owner.stop()
            logs.event("stopped")

    writing = {
        "/select": service.select,
        "/update": service.update,
        "/cancel": service.cancel,
        "/forget": service.forget,
        "/switch": service.switch,
        "/arms": service.change_arms,
    }
    reading = {
        "/arms": service.arms,
        "/estimate": service.estimate,
        "/guarantee": service.guarantee,
        "/livez": service.livez,
        "/readyz": service.readyz,
        "/status": service.status,
        "/metrics": service.metrics,
        "/openapi.json": service.openapi,
        "/": service.page,
    }
    direct = {("POST", path): _Address(service, path, do, True) for path, do in writing.items()}
    direct |= {("GET", path): _Address(service, path, do, False) for path, do in reading.items()}

    class Application(Starlette):  # type: ignore[misc, unused-ignore]
        """Takes what is asked of an address to it at once; the rest goes through routes and their errors."""

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            address = direct.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
            await (super().__call__ if address is None else address)(scope, receive, send)

    routes = [Route(path, address, methods=[method]) for (method, path), address in direct.items()]
    app = Application(routes=routes, lifespan=lifespan)
    app.router.redirect_slashes = False  # to an address with the host's name that the client chose
    app.state.service = service
    return app


class _Address:
    """One address: what it does, and what becomes of whatever is raised there."""

    def __init__(
        self,
        service: _Service,
        path: str,
        do: Callable[[Asked, Receive, Send], Awaitable[int]],
        writes: bool,
    ) -> None:
        self._service, self._path, self._do, self._writes = service, path, do, writes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        started = time.perf_counter()
        service, code, request = self._service, None, ""
        try:
            if self._writes and service.rules.tokens.write is None:
                refuse_foreign(scope)
            status = await self._do(Asked.of(scope), receive, send)
        except Disconnected:
            return
        except Refusal as refusal:
            status, code, request = refusal.status, refusal.code, service.next_request()
            await refuse(send, refusal, request)
        except Exception as error:  # its words may hold contents
            status, code, request = 500, type(error).__name__, service.next_request()
            await refuse(send, Refusal(500, "internal", "an unexpected error"), request)
        seconds = time.perf_counter() - started
        service.numbers.request(self._path, status, seconds)
        if code is not None:
            service.numbers.refused(code)
        if code is not None or service.log_requests:
            facts = {"route": self._path, "status": status, "code": code, "ms": round(1000 * seconds, 2)}
            logs.event("request", request=request or service.next_request(), **facts)


class _Service:
    """What the addresses do."""

    def __init__(self, open_policy: Callable[[], LivePolicy], rules: Rules, log_requests: bool) -> None:
        self.rules, self.log_requests = rules, log_requests
        self.owner = Owner(open_policy, rules)
        self.patience = Patience(rules)
        self.numbers = Metrics(self.owner, rules)
        self.decisions: DecisionLog | None = None
        self._shown: tuple[Any, bytes] = (None, b"")
        self._requests = 0

    def next_request(self) -> str:
        """Return an id for a request that has a line in the log; unlike other workers' ones."""
        self._requests += 1
        return f"{os.getpid()}-{self._requests}"

    # Addresses that write

    async def select(self, asked: Asked, receive: Receive, send: Send) -> int:
        """Play one round, or a batch."""
        self._require("write", asked)
        body = await self.patience.read_body(receive, asked)
        terms, most = self.owner.terms, self.rules.limits.rounds
        if asked.compact:
            rounds = compact.read_rounds(body, terms.dim, terms.depth, most)
        else:
            rounds = bodies.read_rounds(body, terms.dim, terms.dtype, terms.depth, most)
        off, public = self.owner.switched_off, self.owner.public
        if off is not None and public is not None:
            decided: Any = switch.fallback(rounds, off, terms, public.episode)
        elif rounds.single:
            users, keys = rounds.users, rounds.keys
            single = Single(rounds.contexts, users[0] if users else None, keys[0] if keys else None)
            decided = await self.owner.submit(single)
        else:
            decided = await self.owner.submit(functools.partial(play.play_batch, rounds))
        if off is None:
            self.numbers.add("invalid_rounds", _invalid(decided))
            if self.decisions is not None:
                self.decisions.decided(rounds, decided)
        receipts = self.owner.receipts
        if asked.compact:
            answer = compact.answer(decided, receipts, self.owner.terms.numbers)
            await send_answer(send, answer, _COMPACT)
        else:
            await send_answer(send, bodies.json_answer(decided, receipts))
        return 200

    async def update(self, asked: Asked, receive: Receive, send: Send) -> int:
        """Hand in one reward, or several."""
        self._require("write", asked)
        body = await self.patience.read_body(receive, asked)
        rewards = (compact if asked.compact else bodies).read_rewards(body, self.rules.limits.rounds)
        self.owner.receipts.require(rewards.ids, rewards.receipts)
        played = switch.of_played(rewards)
        taken: bool | int = False if rewards.single else 0
        if played.count:
            taken = await self.owner.submit(functools.partial(play.hand_in, played))
            if self.decisions is not None:
                ids = played.ids or [await self.owner.submit(functools.partial(play.named, played))]
                self.decisions.rewarded(ids, played.rewards)
        self.numbers.add("rewards", int(taken))
        self.numbers.add("rewards_not_taken", rewards.count - int(taken))
        await send_answer(send, b'{"taken":%s}' % json.dumps(taken).encode())
        return 200

    async def cancel(self, asked: Asked, receive: Receive, send: Send) -> int:
        """Take a round back."""
        self._require("write", asked)
        identity, receipt = bodies.read_cancelled(await self.patience.read_body(receive, asked))
        self.owner.receipts.require([identity], [receipt])
        cancelled = await self.owner.submit(functools.partial(play.cancel, identity))
        if self.decisions is not None:
            self.decisions.cancelled(identity)
        await send_answer(send, json.dumps({"cancelled": cancelled}).encode())
        return 200

    async def forget(self, asked: Asked, receive: Receive, send: Send) -> int:
        """Erase what is kept of a user."""
        self._require("change", asked)
        user = bodies.read_forgotten(await self.patience.read_body(receive, asked))
        rounds = await self.owner.submit(functools.partial(play.forget, user))
        if self.decisions is not None:
            await asyncio.to_thread(self.decisions.forget, user)
        await send_answer(send, json.dumps({"rounds": rounds}).encode())
        return 200

    async def switch(self, asked: Asked, receive: Receive, send: Send) -> int:
        """Give every round one arm, or let the policy play again."""
        self._require("change", asked)
        wanted = bodies.read_switch(await self.patience.read_body(receive, asked))
        arm = switch.checked_arm(wanted, self.owner.terms)
        await self.owner.switch(arm)
        await send_answer(send, json.dumps({"arm": arm}).encode())
        return 200

    async def change_arms(self, asked: Asked, receive: Receive, send: Send) -> int:
        """Add or remove an arm."""
        self._require("change", asked)
        change = bodies.read_arm_change(await self.patience.read_body(receive, asked))
        arms = await self.owner.submit(functools.partial(play.change_arms, change))
        await send_answer(send, json.dumps({"arms": arms}).encode())
        return 200

    # Addresses that read

    async def arms(self, asked: Asked, receive: Receive, send: Send) -> int:
        """Show the arms that are played now, and the number of each there ever was."""
        self._public()
        terms = self.owner.terms
        if terms.arms is None:
            raise Refusal(
                404, "no arms", "every round of this policy brings its arms: there is no list of them"
            )
        await send_answer(send, json.dumps({"arms": terms.arms, "numbers": terms.ids}).encode())
        return 200

    async def estimate(self, asked: Asked, receive: Receive, send: Send) -> int:
        """Show the released estimate."""
        public = self._public()
        before, body = self._shown
        if before is not public.shown:
            body = json.dumps(public.shown).encode()
            self._shown = (public.shown, body)
        await send_answer(send, body)
        return 200

    async def guarantee(self, asked: Asked, receive: Receive, send: Send) -> int:
        """Show the privacy claim."""
        claim = self._public().guarantee
        await send_answer(send, json.dumps(claim.to_dict() | {"text": str(claim)}).encode())
        return 200

    async def livez(self, asked: Asked, receive: Receive, send: Send) -> int:
        """Say whether this process works: started again, it would not be better off."""
        status = 200 if self.owner.alive else 503
        await send_answer(send, b'{"status":"%s"}' % (b"alive" if status == 200 else b"dead"), status=status)
        return status

    async def readyz(self, asked: Asked, receive: Receive, send: Send) -> int:
        """Say whether a round could be played now, as tried a moment ago."""
        ready = await self.owner.ready()
        status = 200 if ready.ready else 503
        told = {"status": "ready" if ready.ready else "unavailable", "detail": ready.words}
        await send_answer(send, json.dumps(told).encode(), status=status)
        return status

    async def status(self, asked: Asked, receive: Receive, send: Send) -> int:
        """Show what the policy is and where it is: everything here is public."""
        told = page.overview(
            self._public(), self.owner.terms, await self.owner.ready(), self.owner.switched_off
        )
        await send_answer(send, json.dumps(told).encode())
        return 200

    async def metrics(self, asked: Asked, receive: Receive, send: Send) -> int:
        """Show numbers: public ones, and an operator's to whoever has the token."""
        operator = self.rules.tokens.allows("operator", asked.authorization)
        if asked.authorization and not operator:
            raise Refusal(
                401, "token", "the operator's token is not right; without one, public numbers are shown"
            )
        await send_answer(send, self.numbers.text(operator=operator), CONTENT_TYPE)
        return 200

    async def openapi(self, asked: Asked, receive: Receive, send: Send) -> int:
        """Describe the addresses for programs."""
        await send_answer(send, json.dumps(openapi.document(self.rules.limits, self.owner.terms)).encode())
        return 200

    async def page(self, asked: Asked, receive: Receive, send: Send) -> int:
        """Show the operator's page."""
        body, policy = page.shown()
        await send_answer(send, body, b"text/html; charset=utf-8", more=(policy,))
        return 200

    def _require(self, what: str, asked: Asked) -> None:
        if not self.rules.tokens.allows(what, asked.authorization):
            raise Refusal(401, "token", "this address needs its token: Authorization: Bearer ...")

    def _public(self) -> Any:
        public = self.owner.public
        if public is None:
            raise Refusal(503, "starting", "the policy is not open yet")
        return public


def _invalid(decided: Decision | list[Decisions | Decision]) -> int:
    if isinstance(decided, Decision):
        return int(not decided.valid)
    return sum(
        int((~part.valid).sum()) if isinstance(part, Decisions) else int(not part.valid) for part in decided
    )
