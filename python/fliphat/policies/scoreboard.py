"""What a policy earns, told from public numbers alone: rewards that episodes released, with their noise."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fliphat import html
from fliphat.fit.board import UNIFORM, Earned, Interval
from fliphat.fit.dense import DenseSettings, KnownLinear
from fliphat.fit.dense.learning import arm_values, best_constant, possible_values
from fliphat.fit.known import Known
from fliphat.policies.types import EpisodeFacts

__all__ = ["EpisodeScore", "Scoreboard", "scoreboard"]


class EpisodeScore(NamedTuple):
    """What one episode earned.

    Attributes
    ----------
    episode, rounds : int
    reward : Interval
        Mean reward of a round.
    """

    episode: int
    rounds: int
    reward: Interval


@dataclass(frozen=True)
class Scoreboard:
    """What a policy earns. Every number is public: it was released with noise, and its error says how much.

    Attributes
    ----------
    episodes : tuple of EpisodeScore
        Each episode whose rewards were released.
    uniform : Interval, optional
        Mean reward of rounds that were played uniformly: those of the first episode, and of the guard.
    recent : Interval, optional
        Mean reward of the policy's own choices; older rounds count less.
    arms : dict of Interval
        What each named arm would earn if everybody was shown it: from what it earned with those who were
        shown it, and nothing from all others, to what a linear model says.
    best_arm : hashable, optional
        The best of them, and `constant` what it earns, as far as rewards are linear: a little less than in
        `arms`, as the best of several looks better than it is.
    constant_at_least : float, optional
        What that arm would earn at least, whatever rewards are: the policy shows an arm to people whom it
        suits, and what it would earn with all others is known from a linear model alone.
    clipped, cut : Interval, optional
        Share of rewards outside their range, and of the last episode's contexts that were cut to less than a
        quarter of their length.
    fallback : hashable, optional
        What the guard plays now instead of the policy's choice: an arm, or "uniform".
    """

    episodes: tuple[EpisodeScore, ...] = ()
    uniform: Interval | None = None
    recent: Interval | None = None
    arms: Mapping[Hashable, Interval] = field(default_factory=dict)
    best_arm: Hashable | None = None
    constant: Interval | None = None
    constant_at_least: float | None = None
    clipped: Interval | None = None
    cut: Interval | None = None
    fallback: Hashable | None = None

    @property
    def lift(self) -> Interval | None:
        """How much more than uniform play the policy earns, a round."""
        if self.recent is None or self.uniform is None:
            return None
        return self.recent.less(self.uniform)

    @property
    def lift_over_arm(self) -> Interval | None:
        """How much more than the best constant arm the policy earns, as far as rewards are linear."""
        return None if self.recent is None or self.constant is None else self.recent.less(self.constant)

    def to_dict(self) -> dict[str, Any]:
        """Return a record for JSON; intervals are a mean and a standard error."""

        def pair(interval: Interval | None) -> list[float] | None:
            return None if interval is None else list(interval)

        return {
            "episodes": [[one.episode, one.rounds, *one.reward] for one in self.episodes],
            "uniform": pair(self.uniform),
            "recent": pair(self.recent),
            "lift": pair(self.lift),
            "arms": [[str(arm), *interval] for arm, interval in self.arms.items()],
            "best_arm": None if self.best_arm is None else str(self.best_arm),
            "constant": pair(self.constant),
            "constant_at_least": self.constant_at_least,
            "lift_over_arm": pair(self.lift_over_arm),
            "clipped": pair(self.clipped),
            "cut": pair(self.cut),
            "fallback": None if self.fallback is None else str(self.fallback),
        }

    def _lines(self) -> list[tuple[str, str]]:
        best = "" if self.best_arm is None else f" ({self.best_arm!s})"
        constant = ""
        if self.constant is not None and self.constant_at_least is not None:
            whole = self.constant.down_to(self.constant_at_least)
            constant = f"{whole.low:.2g} to {whole.high:.2g}"
        rows = [
            ("the policy, recently", self.recent),
            ("uniform play", self.uniform),
            ("lift over uniform play", self.lift),
            (f"best constant arm{best}", constant or None),
            ("lift over that arm, if rewards are linear", self.lift_over_arm),
            ("rewards outside their range", self.clipped),
            ("contexts cut to less than a quarter", self.cut),
        ]
        found = [(name, str(value)) for name, value in rows if value is not None]
        if self.fallback is not None:
            found.append(("the guard plays", str(self.fallback)))
        return found

    def __str__(self) -> str:
        lines = self._lines()
        if not lines:
            return "nothing was released yet"
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)

    def _repr_html_(self) -> str:
        body = html.table(("mean reward of a round", "95 %"), self._lines())
        return html.card("Scoreboard", body if self._lines() else html.paragraph(str(self)))


def scoreboard(
    settings: Any, history: Sequence[EpisodeFacts], known: Known | None, table: Any = None
) -> Scoreboard:
    """Return what released numbers say about what a policy earns; nothing, for a fit that releases none.

    Parameters
    ----------
    table : ArmTable, optional
        Of a policy with named arms.
    """
    earned = getattr(known, "earned", None)
    if not isinstance(earned, Earned) or earned.last is None:
        return Scoreboard()
    episodes = tuple(
        EpisodeScore(facts.episode, facts.rounds, facts.board.reward)
        for facts in history
        if facts.board is not None
    )
    if isinstance(known, KnownLinear) and known.fresh:  # rewards were cut, and are looked for elsewhere
        return Scoreboard(episodes)
    recent = earned.recent or earned.last
    arms: dict[Hashable, Interval] = {}
    best, constant, least, fallback = None, None, None, None
    if isinstance(known, KnownLinear) and isinstance(settings, DenseSettings) and settings.disjoint and table:
        values = arm_values(known, settings.exploration)
        active = [slot for slot in table.active if slot < len(values)]
        surely = possible_values(known)[0]
        arms = {table.ids[slot]: values[slot].down_to(float(surely[slot])) for slot in active}
        if active:  # arms that came after the last release have earned nothing yet
            slot, constant = best_constant(values, active)
            best, least = table.ids[slot], float(surely[slot])
        if earned.fallback in table.active:  # one that was removed is not played
            fallback = table.ids[earned.fallback]
    if earned.fallback == UNIFORM:
        fallback = "uniform"
    return Scoreboard(
        episodes=episodes,
        uniform=None if earned.uniform is None else earned.uniform.reward,
        recent=None if earned.recent is None else earned.recent.reward,
        arms=arms,
        best_arm=best,
        constant=constant,
        constant_at_least=least,
        clipped=recent.share("clipped"),
        cut=earned.last.share("cut"),
        fallback=fallback,
    )
