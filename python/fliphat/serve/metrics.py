"""Numbers for Prometheus: public ones for everybody, an operator's behind a token.

Counts of rewards, of late ones and of invalid rounds depend on what people brought and are protected by no
noise. So do counts of requests by address and status, which contain them. With several workers the operator's
numbers are those of all of them (``PROMETHEUS_MULTIPROC_DIR``).
"""

from __future__ import annotations

import os
from typing import Any, Final

from fliphat.serve.owner import Owner
from fliphat.serve.settings import Rules

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"

_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_GAUGES: Final = {
    "waiting_requests": "Requests that have no answer yet.",
    "connections": "Connections of clients.",
}
_COUNTS: Final = {
    "invalid_rounds": "Rounds whose contexts could not be used.",
    "rewards": "Rewards that were taken.",
    "rewards_not_taken": "Rewards that were late, repeated or not usable.",
    "syncs": "Groups of requests made durable together.",
    "synced_requests": "Requests made durable in them.",
}


class Metrics:
    """What one server counts."""

    def __init__(self, owner: Owner, rules: Rules) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self._owner, self._rules = owner, rules
        self._own = CollectorRegistry()
        made = {"registry": self._own}
        self._requests = Counter(
            "fliphat_requests", "Requests by address and status.", ["route", "status"], **made
        )
        self._seconds = Histogram(
            "fliphat_request_seconds", "Time of a request.", ["route"], buckets=_SECONDS, **made
        )
        self._refusals = Counter("fliphat_refusals", "Requests that were refused, by code.", ["code"], **made)
        fits = "Time of a group of requests that released an estimate, which is mostly its fit."
        self._fits = Histogram("fliphat_release_seconds", fits, buckets=_SECONDS, **made)
        self._gauges = {
            name: Gauge(f"fliphat_{name}", text, multiprocess_mode="livesum", **made)
            for name, text in _GAUGES.items()
        }
        self._counts = {name: Counter(f"fliphat_{name}", text, **made) for name, text in _COUNTS.items()}
        self._children: dict[tuple[str, int], tuple[Any, Any]] = {}
        owner.on_group, owner.on_release, owner.on_tick = self._group, self._fits.observe, self._tick

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        found = self._children.get((route, status))
        if found is None:
            found = (self._requests.labels(route, str(status)), self._seconds.labels(route))
            self._children[route, status] = found
        found[0].inc()
        found[1].observe(seconds)

    def refused(self, code: str) -> None:
        """Count one refusal."""
        self._refusals.labels(code).inc()

    def _tick(self) -> None:
        self._gauges["waiting_requests"].set(self._owner.waiting)
        self._gauges["connections"].set(self._rules.open_connections)

    def _group(self, jobs: int) -> None:
        self._counts["syncs"].inc()
        self._counts["synced_requests"].inc(jobs)

    def add(self, name: str, count: int) -> None:
        """Add to one of an operator's counts."""
        if count:
            self._counts[name].inc(count)

    def text(self, *, operator: bool) -> bytes:
        """Return what Prometheus reads; without `operator` only what is public."""
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.multiprocess import MultiProcessCollector

        public = CollectorRegistry()
        public.register(_PublicNumbers(self._owner))
        shown = generate_latest(public)
        if not operator:
            return bytes(shown)
        self._tick()
        registry = self._own
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call, unused-ignore]
        return bytes(shown + generate_latest(registry))


class _PublicNumbers:
    """Gauges of what everybody may see, read when they are asked for."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def collect(self) -> Any:
        """Yield the gauges."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        def gauge(name: str, text: str, value: float) -> Any:
            return GaugeMetricFamily(f"fliphat_{name}", text, value=value)

        public = self._owner.public
        yield gauge("up", "Whether the store is open, /readyz tries it.", int(self._owner.open))
        if public is None:
            return
        yield CounterMetricFamily("fliphat_rounds", "Rounds played.", value=public.rounds)
        yield CounterMetricFamily("fliphat_releases", "Estimates released.", value=public.releases)
        yield gauge("episode", "The open episode.", public.episode)
        yield gauge("remaining_rounds", "Rounds until the estimate changes.", public.remaining)
        coordinates = len(public.known.estimate.indices)
        yield gauge("estimate_coordinates", "Coordinates of the released estimate.", coordinates)
        yield gauge("health_findings", "Signs of trouble in what was released.", len(public.health.findings))
        unknown = int(bool(public.health.unknown))
        yield gauge("health_unknown", "Whether what shows trouble was not all measured yet.", unknown)
        board = public.scoreboard
        named = {"policy": board.recent, "uniform": board.uniform, "constant_arm": board.constant}
        means = GaugeMetricFamily(
            "fliphat_mean_reward",
            "Mean reward of a round, as released; of the constant arm by a linear model.",
            labels=["played"],
        )
        errors = GaugeMetricFamily(
            "fliphat_mean_reward_error", "Standard error of fliphat_mean_reward.", labels=["played"]
        )
        for played, interval in named.items():
            if interval is not None:
                means.add_metric([played], interval.mean)
                errors.add_metric([played], interval.error)
        yield means
        yield errors
