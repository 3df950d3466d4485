"""What to expect before anyone is asked: the policy's episodes, worked out from public numbers alone."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from fliphat import _check
from fliphat.fit.iht import Iht
from fliphat.fit.plan import IhtPlan
from fliphat.fit.settings import Settings
from fliphat.planning.detection import Detection

__all__ = ["Plan", "PlannedEpisode", "plan"]

_MOST_ROUNDS: Final = 2**40


@dataclass(frozen=True, kw_only=True)
class PlannedEpisode:
    """One episode, and what the fit of its rounds will be able to see.

    Attributes
    ----------
    episode, first_round, rounds : int
        Number, t of the first round, and length.
    picks : int
        Coordinates that the fit picks.
    noise : float
        Standard deviation of the privacy noise in a released coefficient.
    smallest_coefficient : float
        The size from which the fit finds a coefficient at least three times in five; infinite if none is.
    """

    episode: int
    first_round: int
    rounds: int
    picks: int
    noise: float
    smallest_coefficient: float

    @property
    def released_before(self) -> int:
        """The first round that is played by this episode's estimate."""
        return self.first_round + self.rounds


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What :func:`plan` works out.

    Attributes
    ----------
    settings : dict
        The public numbers given.
    episodes : tuple of PlannedEpisode
        Those that begin within the rounds expected.
    learning_starts : int or None
        About the round from which a coefficient of the size given is found at least three times in five,
        read between episodes; None if that is not within the rounds expected.
    with_half_epsilon : int or None
        The same with half the epsilon: twice the privacy.
    guarantee : str
        What a policy with these numbers guarantees, in words.
    """

    settings: dict[str, Any]
    episodes: tuple[PlannedEpisode, ...]
    learning_starts: int | None
    with_half_epsilon: int | None
    guarantee: str

    def to_dict(self) -> dict[str, Any]:
        """Return a record for JSON; an infinite coefficient becomes None."""
        record = asdict(self)
        for episode in record["episodes"]:
            if math.isinf(episode["smallest_coefficient"]):
                episode["smallest_coefficient"] = None
        return record

    def __str__(self) -> str:
        from fliphat.planning.output import text

        return text(self)


def plan(
    *,
    dim: int,
    sparsity: int,
    epsilon: float,
    delta: float,
    rounds: int = 20_000,
    coefficient: float = 0.5,
    context_scale: float = 1.0,
    reward_scale: float = 1.0,
    rounds_per_user: int = 1,
    loss: Literal["squared", "logistic"] = "squared",
) -> Plan:
    """Work out what a policy with these public numbers will be able to learn, and when.

    Parameters
    ----------
    dim, sparsity : int
        As for `fliphat.FLIPHAT`.
    epsilon, delta : float
        As for `fliphat.FLIPHAT`.
    rounds : int
        Rounds expected.
    coefficient : float
        The size of a coefficient that would be worth knowing: a change of one unit in its context coordinate
        moves the mean reward (with the logistic loss, its log odds) by this much.
    context_scale, reward_scale : float
        Root mean square of one context coordinate, and the size of a typical reward.
    rounds_per_user : int
        Rounds of one user that are protected together.
    loss : {"squared", "logistic"}
        "logistic" for clicks.

    Returns
    -------
    Plan
        Printing it shows a table.

    Notes
    -----
    Nothing here looks at data, so planning costs no privacy. In simulations with several coefficients of one
    size the predicted round is within a factor of 2 of the one at which the regret of a round falls below
    half of that of playing at random; with the logistic loss, a factor of 3. `coefficient` is taken to stand
    alone: what the others explain of the reward is noise to it, throughout.

    Examples
    --------
    >>> import fliphat
    >>> found = fliphat.plan(dim=400, sparsity=10, epsilon=1.0, delta=0.01, reward_scale=1.5)
    >>> found.episodes[0].rounds, found.learning_starts < found.with_half_epsilon
    (241, True)
    """
    rounds = _check.integer("rounds", rounds, 1, _MOST_ROUNDS)
    coefficient = _check.positive("coefficient", coefficient)
    arguments: dict[str, Any] = {
        "dim": dim,
        "sparsity": sparsity,
        "delta": delta,
        "context_scale": context_scale,
        "reward_scale": reward_scale,
        "rounds_per_user": rounds_per_user,
        "loss": loss,
    }
    fit = Iht(Settings.checked(epsilon=epsilon, **arguments))
    strict = Iht(Settings.checked(epsilon=fit.settings.epsilon / 2, **arguments))
    episodes = _episodes(fit, rounds)
    return Plan(
        settings={"epsilon": epsilon, **arguments, "rounds": rounds, "coefficient": coefficient},
        episodes=episodes,
        learning_starts=_start(episodes, coefficient, rounds),
        with_half_epsilon=_start(_episodes(strict, rounds), coefficient, rounds),
        guarantee=str(fit.guarantee()),
    )


def _episodes(fit: Iht, rounds: int) -> tuple[PlannedEpisode, ...]:
    detection = Detection(fit.settings)
    found: list[PlannedEpisode] = []
    first = 1
    while first <= rounds:
        episode = fit.plan(len(found), fit.begin())
        assert isinstance(episode, IhtPlan)  # the default is one iteration and more
        smallest, noise = detection.after(episode)
        found.append(
            PlannedEpisode(
                episode=episode.episode,
                first_round=first,
                rounds=episode.rows,
                picks=episode.sparsity,
                noise=noise,
                smallest_coefficient=smallest,
            )
        )
        first += episode.rows
    return tuple(found)


def _start(episodes: tuple[PlannedEpisode, ...], coefficient: float, rounds: int) -> int | None:
    """Return where the steps, joined on logarithmic axes, come down to the coefficient.

    An estimate that just misses a size still finds it nearly as often; without joining the steps, a
    tiny difference in size would move the answer by a whole episode.
    """
    before: PlannedEpisode | None = None
    for episode in episodes:
        at, size = episode.released_before, episode.smallest_coefficient
        if size <= coefficient:
            if before is not None and math.isfinite(before.smallest_coefficient):
                fall = math.log(before.smallest_coefficient / size)
                share = math.log(before.smallest_coefficient / coefficient) / fall
                start = before.released_before * (at / before.released_before) ** share
                at = math.ceil(start)
            return at if at <= rounds else None
        before = episode
    return None
