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
    Answer,
    Asked,
    Disconnected,
    Receive,
    Scope,
    Send,
    read_body,
    refuse_foreign,
    refused,
    send_answer,
)

__all__ = ["make_app"]


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
        starts, and again after its store failed. Of a directory give ``Store(..., durability="group")``: the
        server syncs each group of requests before it answers any of them.
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
    >>> from fliphat import FLIPHAT, Store
    >>> from fliphat.serve import Tokens, make_app
    >>> store = Store("store", durability="group")
    >>> app = make_app(
    ...     lambda: FLIPHAT(dim=20, sparsity=2, epsilon=1.0, delta=1e-2, store=store),
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
        logs.event("started")
        try:
            yield
        finally:
            await service.owner.stop()
            logs.event("stopped")

    direct = {
        (method, path): _Address(service, path, do, token)
        for method, path, do, token in (
            ("POST", "/select", service.select, "write"),
            ("POST", "/update", service.update, "write"),
            ("POST", "/cancel", service.cancel, "write"),
            ("POST", "/forget", service.forget, "operator"),
            ("POST", "/switch", service.switch, "operator"),
            ("POST", "/arms", service.change_arms, "operator"),
            ("GET", "/arms", service.arms, None),
            ("GET", "/estimate", service.estimate, None),
            ("GET", "/guarantee", service.guarantee, None),
            ("GET", "/livez", service.livez, None),
            ("GET", "/readyz", service.readyz, None),
            ("GET", "/status", service.status, None),
            ("GET", "/metrics", service.metrics, None),
            ("GET", "/openapi.json", service.openapi, None),
            ("GET", "/", service.page, None),
        )
    }

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
    """One address: what it does, for whom, and what becomes of whatever is raised there.

    It is given the head of a request and, where it writes (that needs a `token`), its body.
    """

    def __init__(
        self,
        service: _Service,
        path: str,
        do: Callable[[Asked, bytes], Awaitable[Answer | dict[str, Any]]],
        token: str | None,
    ) -> None:
        self._service, self._path, self._do, self._token = service, path, do, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        started = time.perf_counter()
        service, code, request = self._service, None, ""
        try:
            asked, body, tokens = Asked.of(scope), b"", service.rules.tokens
            if self._token is not None:
                if tokens.write is None:
                    refuse_foreign(scope)
                if not tokens.allows(self._token, asked.authorization):
                    raise Refusal(401, "token", "this address needs its token: Authorization: Bearer ...")
                body = await read_body(scope, receive, asked, service.rules.limits)
            answer: Any = await self._do(asked, body)
        except Disconnected:
            return
        except Refusal as refusal:
            code, request = refusal.code, service.next_request()
            answer = refused(refusal, request)
        except Exception as error:  # its words may hold contents
            code, request = type(error).__name__, service.next_request()
            answer = refused(Refusal(500, "internal", "an unexpected error"), request)
        if isinstance(answer, dict):
            answer = Answer(json.dumps(answer).encode())
        await send_answer(scope, send, answer)
        seconds = time.perf_counter() - started
        service.numbers.request(self._path, answer.status, seconds)
        if code is not None:
            service.numbers.refused(code)
        if code is not None or service.log_requests:
            facts = {"route": self._path, "status": answer.status, "code": code}
            request = request or service.next_request()
            logs.event("request", request=request, **facts, ms=round(1000 * seconds, 2))


class _Service:
    """What the addresses do."""

    def __init__(self, open_policy: Callable[[], LivePolicy], rules: Rules, log_requests: bool) -> None:
        self.rules, self.log_requests = rules, log_requests
        self.owner = Owner(open_policy, rules)
        self.numbers = Metrics(self.owner, rules)
        self.decisions: DecisionLog | None = None
        self._shown: tuple[Any, bytes] = (None, b"")
        self._requests = 0

    def next_request(self) -> str:
        """Return an id for a request that has a line in the log; unlike other workers' ones."""
        self._requests += 1
        return f"{os.getpid()}-{self._requests}"

    # Addresses that write

    async def select(self, asked: Asked, body: bytes) -> Answer:
        """Play one round, or a batch."""
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
        return Answer(bodies.json_answer(decided, self.owner.receipts))

    async def update(self, asked: Asked, body: bytes) -> Answer:
        """Hand in one reward, or several."""
        rewards = bodies.read_rewards(body, self.rules.limits.rounds)
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
        return Answer(b'{"taken":%s}' % json.dumps(taken).encode())

    async def cancel(self, asked: Asked, body: bytes) -> dict[str, Any]:
        """Take a round back."""
        identity, receipt = bodies.read_cancelled(body)
        self.owner.receipts.require([identity], [receipt])
        cancelled = await self.owner.submit(lambda policy: policy.cancel(identity))
        if self.decisions is not None:
            self.decisions.cancelled(identity)
        return {"cancelled": cancelled}

    async def forget(self, asked: Asked, body: bytes) -> dict[str, Any]:
        """Erase what is kept of a user."""
        user = bodies.read_forgotten(body)
        rounds = await self.owner.submit(lambda policy: policy.forget(user))
        if self.decisions is not None:
            await asyncio.to_thread(self.decisions.forget, user)
        return {"rounds": rounds}

    async def switch(self, asked: Asked, body: bytes) -> dict[str, Any]:
        """Give every round one arm, or let the policy play again."""
        arm = switch.checked_arm(bodies.read_switch(body), self.owner.terms)
        await self.owner.switch(arm)
        return {"arm": arm}

    async def change_arms(self, asked: Asked, body: bytes) -> dict[str, Any]:
        """Add or remove an arm."""
        change = bodies.read_arm_change(body)
        return {"arms": await self.owner.submit(functools.partial(play.change_arms, change))}

    # Addresses that read

    async def arms(self, asked: Asked, body: bytes) -> dict[str, Any]:
        """Show the arms that are played now."""
        self._public()
        if self.owner.terms.arms is None:
            raise play.no_arms()
        return {"arms": self.owner.terms.arms}

    async def estimate(self, asked: Asked, body: bytes) -> Answer:
        """Show the released estimate."""
        public = self._public()
        before, shown = self._shown
        if before is not public.shown:
            shown = json.dumps(public.shown).encode()
            self._shown = (public.shown, shown)
        return Answer(shown)

    async def guarantee(self, asked: Asked, body: bytes) -> dict[str, Any]:
        """Show the privacy claim."""
        claim = self._public().guarantee
        return {**claim.to_dict(), "text": str(claim)}

    async def livez(self, asked: Asked, body: bytes) -> Answer:
        """Say whether this process works: started again, it would not be better off."""
        if self.owner.alive:
            return Answer(b'{"status":"alive"}')
        return Answer(b'{"status":"dead"}', status=503)

    async def readyz(self, asked: Asked, body: bytes) -> Answer:
        """Say whether a round could be played now, as tried a moment ago."""
        ready = await self.owner.ready()
        told = {"status": "ready" if ready.ready else "unavailable", "detail": ready.words}
        return Answer(json.dumps(told).encode(), status=200 if ready.ready else 503)

    async def status(self, asked: Asked, body: bytes) -> dict[str, Any]:
        """Show what the policy is and where it is: everything here is public."""
        owner, ready = self.owner, await self.owner.ready()
        return page.overview(self._public(), owner.terms, ready, owner.switched_off)

    async def metrics(self, asked: Asked, body: bytes) -> Answer:
        """Show numbers: public ones, and an operator's to whoever has the token."""
        operator = self.rules.tokens.allows("operator", asked.authorization)
        if asked.authorization and not operator:
            raise Refusal(
                401, "token", "the operator's token is not right; without one, public numbers are shown"
            )
        return Answer(self.numbers.text(operator=operator), CONTENT_TYPE)

    async def openapi(self, asked: Asked, body: bytes) -> dict[str, Any]:
        """Describe the addresses for programs."""
        return openapi.document(self.rules.limits, self.owner.terms)

    async def page(self, asked: Asked, body: bytes) -> Answer:
        """Show the operator's page."""
        return page.shown()

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
