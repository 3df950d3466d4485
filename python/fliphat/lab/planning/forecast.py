"""`plan`: from which round on a policy learns, worked out from public numbers alone."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from fliphat import arguments
from fliphat.fit import make_fit
from fliphat.fit.options import Pursuit
from fliphat.fit.settings import Settings
from fliphat.lab.planning import output
from fliphat.lab.planning.repeats import COURSES, Courses
from fliphat.lab.planning.world import World

_MOST_ROUNDS: Final = 2**40
_MOST_SPARSE_ARMS: Final = 1024


@dataclass(frozen=True, kw_only=True)
class PlannedEpisode:
    """One episode, and what the fit of its rounds will be able to see.

    Attributes
    ----------
    episode, first_round, rounds : int
        Number, t of the first round, and length.
    picks : int
        Columns that the fit picks.
    noise : float
        Standard deviation of the privacy noise in a released coefficient.
    smallest_coefficient : float
        The size from which a coefficient has been found at least three times in five; infinite if none is.
    regret_share : float
        Regret of a round that is played by this episode's estimate, over that of a round played at random.
    regret_band : (float, float)
        Eight runs in ten are between these.
    """

    episode: int
    first_round: int
    rounds: int
    picks: int
    noise: float
    smallest_coefficient: float
    regret_share: float
    regret_band: tuple[float, float]

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
        Those that begin within the rounds expected. All but the first follow what is found, so lengths, picks
        and noise are those of a middling course; what is found, and what it is worth, are means of all
        courses at these rounds.
    learning_starts : int or None
        About the round from which a round's regret is half of random play's; None if that is not within the
        rounds expected.
    with_half_epsilon : int or None
        The same with half the epsilon: twice the privacy.
    regret, random_regret : float
        Of all the rounds expected, and of playing them at random.
    regret_range : (float, float)
        Eight runs in ten are between these.
    assumptions : tuple of str
        What this rests on, in words.
    guarantee : str
        What a policy with these numbers guarantees, in words.
    """

    settings: dict[str, Any]
    episodes: tuple[PlannedEpisode, ...]
    learning_starts: int | None
    with_half_epsilon: int | None
    regret: float
    random_regret: float
    regret_range: tuple[float, float]
    assumptions: tuple[str, ...]
    guarantee: str

    def to_dict(self) -> dict[str, Any]:
        """Return a record for JSON; an infinite coefficient becomes None."""
        record = asdict(self)
        for episode in record["episodes"]:
            if math.isinf(episode["smallest_coefficient"]):
                episode["smallest_coefficient"] = None
        return record

    @property
    def answer(self) -> str:
        """From when on the policy is worth it, in one sentence."""
        return output.answer(self)

    def plot(self) -> Any:
        """Return a matplotlib figure: what a round loses, over time, with the range of eight runs in ten."""
        return output.draw(self)

    def _repr_html_(self) -> str:
        return output.card(self)

    def __str__(self) -> str:
        return output.text(self)


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
    fit: Pursuit | None = None,
    arms: int = 3,
    matter: int | None = None,
    correlation: float = 0.0,
    intercept: float = 0.0,
    nonzeros: int | None = None,
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
    fit : Pursuit, optional
        As for `fliphat.FLIPHAT`. Hard thresholding, which pure privacy needs, is not planned.
    arms : int
        Arms offered in a round.
    matter : int, optional
        Columns that matter, each with a coefficient of the size given; by default half of `sparsity`, and
        not more than explain the whole of a typical reward.
    correlation : float
        Of every two columns, at least 0 and below 1; for dense contexts.
    intercept : float
        Mean reward where all columns are 0; with the logistic loss, its log odds.
    nonzeros : int, optional
        Values of a context that are not zero, on columns that change from round to round; all by default.

    Returns
    -------
    Plan
        Printing it shows a table.

    Notes
    -----
    Nothing here looks at data, so planning costs no privacy. Of pursuit, a few dozen courses are drawn with
    the fit's own code in the world that `Plan.assumptions` describe (`planning/course.py`), always
    with the same seeds. Means of simulated policies in such worlds were within a third of the predicted
    regret (``docs/reproduction.md``); single runs differ more, and so do data that are not as assumed. One
    run in a few hundred learns nothing for long, because a size was measured wrongly; of the courses drawn,
    the worst counts as the second worst, so that is not in the numbers.

    Examples
    --------
    >>> import fliphat
    >>> numbers = {"dim": 400, "sparsity": 10, "delta": 0.01, "reward_scale": 1.5}
    >>> found = fliphat.plan(epsilon=1.0, **numbers)
    >>> found.learning_starts < found.with_half_epsilon, found.regret < 0.1 * found.random_regret
    (True, True)
    >>> print(found.assumptions[0])
    5 columns matter, each with a coefficient of 0.5 and a random sign.
    """
    rounds = arguments.integer("rounds", rounds, 1, _MOST_ROUNDS)
    coefficient = arguments.positive("coefficient", coefficient)
    numbers: dict[str, Any] = {
        "dim": dim,
        "sparsity": sparsity,
        "delta": delta,
        "context_scale": context_scale,
        "reward_scale": reward_scale,
        "rounds_per_user": rounds_per_user,
        "loss": loss,
        "fit": fit,
    }
    settings = Settings.checked(epsilon=epsilon, **numbers)
    if settings.fit != "pursuit":
        raise ValueError("fit must be Pursuit(): hard thresholding is not planned, simulate it instead")
    assumed: dict[str, Any] = {
        "coefficient": coefficient,
        "arms": arms,
        "matter": matter,
        "correlation": correlation,
        "intercept": intercept,
        "nonzeros": nonzeros,
    }
    world = _world(settings, **assumed)
    strict = dataclasses.replace(settings, epsilon=settings.epsilon / 2)
    courses = Courses(settings, world, rounds)
    start, later = courses.start(), None
    if start is not None:
        # Rounds long after the start say nothing about it, so they are drawn only if they are needed.
        later = Courses(strict, world, min(rounds, 4 * start), sizes=False).start()
        if later is None and rounds > 4 * start:
            later = Courses(strict, world, rounds, sizes=False).start()
    return Plan(
        settings={"epsilon": epsilon, **numbers, "fit": settings.fit, "rounds": rounds, **assumed},
        episodes=_episodes(courses),
        learning_starts=start,
        with_half_epsilon=later,
        regret=courses.regret,
        random_regret=world.random_regret * rounds,
        regret_range=courses.regret_range,
        assumptions=_assumptions(settings, world),
        guarantee=str(make_fit(settings).guarantee()),
    )


def _world(
    settings: Settings,
    coefficient: float,
    arms: int,
    matter: int | None,
    correlation: float,
    intercept: float,
    nonzeros: int | None,
) -> World:
    """Return what is assumed, checked."""
    dim = settings.dim
    density = arguments.integer("nonzeros", dim if nonzeros is None else nonzeros, 1, dim) / dim
    # Where contexts have zeros every arm is drawn.
    arms = arguments.integer("arms", arms, 2, 2**20 if density == 1 else _MOST_SPARSE_ARMS)
    correlation = arguments.real("correlation", correlation)
    if not 0 <= correlation < 1:
        raise ValueError(f"correlation must be at least 0 and below 1, got {correlation!r}")
    if correlation > 0 and density < 1:
        raise ValueError(f"correlation must be 0 for contexts with zeros, got {correlation!r}")
    logistic = settings.loss == "logistic"
    one = coefficient**2 * density * settings.context_scale**2
    whole = settings.reward_scale**2
    if matter is None:
        matter = max(1, settings.sparsity // 2)
        if not logistic:
            matter = min(matter, max(1, int(whole / one)))
    matter = arguments.integer("matter", matter, 1, dim)
    return World(
        dim=dim,
        arms=arms,
        matter=matter,
        coefficient=coefficient,
        context_scale=settings.context_scale,
        density=density,
        correlation=correlation,
        intercept=arguments.within("intercept", intercept, -1e300, 1e300),
        # A typical reward is what the columns explain, and noise.
        noise=math.sqrt(max(whole - matter * one, 0.01 * whole)),
        logistic=logistic,
    )


def _assumptions(settings: Settings, world: World) -> tuple[str, ...]:
    """Return what a plan rests on, a sentence each."""
    columns = "1 column matters," if world.matter == 1 else f"{world.matter:,} columns matter, each"
    told = f"{settings.context_scale:g} and {settings.reward_scale:g}"
    noise = "" if world.logistic else f", and noise of {world.noise:.2g} that no column explains"
    many = round(world.density * world.dim)
    values = "normal around 0" if world.density == 1 else f"0 but for {many:,} that are normal around 0"
    related = f"correlated by {world.correlation:g}" if world.correlation else "independent"
    mean = f"log odds of {world.intercept:g}" if world.logistic else f"a mean of {world.intercept:g}"
    return (
        f"{columns} with a coefficient of {world.coefficient:g} and a random sign.",
        f"Values of a context are {values}, of size {world.context_scale:g}; columns are {related}.",
        f"{world.arms:,} arms, alike before their contexts are seen.",
        f"Rewards have {mean} where all columns are 0{noise}.",
        f"The scales told ({told}) are right. Numbers are means of {COURSES} drawn courses.",
    )


def _episodes(courses: Courses) -> tuple[PlannedEpisode, ...]:
    found, first = [], 1
    for step in courses.middle:
        after = first + step.plan.rows
        found.append(
            PlannedEpisode(
                episode=step.plan.episode,
                first_round=first,
                rounds=step.plan.rows,
                picks=step.plan.steps.picks,
                noise=step.noise,
                smallest_coefficient=courses.smallest(after),
                regret_share=courses.share(after),
                regret_band=courses.band(after),
            )
        )
        first = after
    return tuple(found)
