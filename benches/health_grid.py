"""Whether health says so where a policy loses, is silent where it earns, and what the guard is worth.

    python benches/health_grid.py --first 0          # half of the worlds, to choose on
    python benches/health_grid.py --first 1          # the others, to report
    python benches/health_grid.py --first 0 --runs 2 --tell
    python benches/health_grid.py --changing --first 0   # 32 more, in which something changes or is rare

64 small worlds with named arms and known truth; about half can't be learned: nothing to learn, too few people
for so much noise, rewards or contexts cut, contexts that mislead, arms that change. Each run is played with
and without the guard. Counted is the expected reward of what was played in the second half of a run:

- *lost*: below .95 of the better of random play and the best constant arm, by more than three of the
  scoreboard's standard errors;
- *earned*: at least .9 of the best of what either policy, random play and the constant arm earn there.

Where what was told is wrong (the range of rewards) or hardly any reward comes, health should say so whatever
is earned: these runs are counted on their own.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from fliphat import FLIPHAT, PrivateLinear


class World(NamedTuple):
    """Contexts and each arm's mean reward of every round, and how a policy is made for it."""

    name: str
    rows: int
    arms: int
    dim: int
    epsilon: float
    make: Callable[[np.random.Generator, "World"], tuple[np.ndarray, np.ndarray]]
    told: Any = MappingProxyType({})
    #: Rewards are `shift`, or that and `paid`.
    paid: float = 1.0
    shift: float = 0.0
    missing: float = 0.0
    #: Whether what is told is wrong, or hardly any reward comes.
    faulty: bool = False


def _contexts(rng, world, kind):
    if kind == "ones":
        return np.ones((world.rows, world.dim))
    if kind == "answers":
        size = world.dim // 2
        answers = [rng.choice(size, world.rows, p=rng.dirichlet(np.full(size, 1.0))) for _ in range(2)]
        return np.concatenate([np.eye(size)[one] for one in answers], axis=1)
    numbers = rng.normal(size=(world.rows, world.dim)).clip(-2.5, 2.5) / 2
    return numbers * (np.abs(rng.standard_t(1.5, (world.rows, 1))) if kind == "tails" else 1.0)


def chances(base, contextual, kind="numbers", change=None, level=0.25):
    """Return a maker: arms' chances lie `base` apart and move with contexts by about `contextual`."""

    def make(rng, world):
        values = _contexts(rng, world, kind)
        levels = np.log(level / (1 - level)) + base * rng.permutation(np.linspace(-1, 1, world.arms))
        suits = rng.normal(size=(world.dim, world.arms)) / np.sqrt(max((values**2).sum(axis=1).mean(), 1e-9))
        moved = levels + contextual * values @ suits
        if change == "parity":  # no line separates it
            moved = levels + contextual * np.sign(values[:, :1] * values[:, 1:2]) * suits[:1] * 3
        elif change == "flips":
            moved[world.rows // 2 :] = moved[world.rows // 2 :, ::-1]
        elif change == "wanders":
            late = levels[::-1] + contextual * values @ suits[:, ::-1]
            moved += (late - moved) * np.linspace(0, 1, world.rows)[:, None]
        elif change in ("flips early", "best falls", "all fall", "contexts mislead"):
            later = slice(world.rows // 4, None)
            if change == "flips early":
                moved[later] = moved[later, ::-1]
            elif change == "best falls":
                moved[later, moved[later].mean(axis=0).argmax()] -= 4.0
            elif change == "all fall":  # the same arms stay the best
                moved[later] -= 0.7
            else:
                moved[later] = 2 * levels - moved[later]
        elif change == "sorted":
            order = np.argsort(values[:, 0], kind="stable")
            values, moved = values[order], moved[order]
        return values, 1 / (1 + np.exp(-moved))

    return make


def worlds():
    """Return all of them; learnable ones and others take turns in twos."""
    good, bad = [], []
    for arms, rows in ((2, 4_000), (3, 6_000), (5, 10_000), (10, 20_000)):
        for epsilon in (3.0, 10.0):
            good += [
                World("one arm is best", rows, arms, 1, epsilon, chances(1.2, 0.0, "ones")),
                World("numbers", rows, arms, 5, epsilon, chances(0.5, 2.0)),
                World("answers", rows, arms, 10, epsilon, chances(0.5, 2.0, "answers")),
            ]
    for epsilon in (1.0, 10.0):
        good += [
            World("one arm is best, 20 000", 20_000, 5, 1, epsilon, chances(1.2, 0.0, "ones")),
            World("two arms, 15 numbers", 20_000, 2, 15, epsilon, chances(0.3, 2.5)),
            World(
                "range learned", 20_000, 4, 4, epsilon, chances(1.0, 1.0), {"reward_range": None}, paid=40.0
            ),
            World("a third missing", 20_000, 3, 4, epsilon, chances(1.0, 1.0), missing=0.33),
        ]
    for epsilon in (1.0, 10.0):
        for arms in (3, 8):
            rows = 8_000
            bad += [
                World("arms alike", rows, arms, 4, epsilon, chances(0.0, 0.0)),
                World("contexts say nothing", rows, arms, 60, epsilon, chances(0.8, 0.0)),
                World(
                    "all rewards cut",
                    rows,
                    arms,
                    4,
                    epsilon,
                    chances(1.0, 1.0),
                    paid=9.0,
                    shift=1.5,
                    faulty=True,
                ),
                World("contexts cut", rows, arms, 6, epsilon, chances(0.5, 2.0), {"norm": 0.05}),
                World("arms flip", rows, arms, 4, epsilon, chances(1.5, 0.5, change="flips")),
                World("tails", rows, arms, 8, epsilon, chances(1.0, 1.5, "tails")),
                World("people sorted", rows, arms, 4, epsilon, chances(1.0, 2.0, change="sorted")),
                World("no rewards", rows, arms, 4, epsilon, chances(1.0, 1.0), missing=0.97, faulty=True),
            ]
    return [world for pair in zip(good, bad, strict=True) for world in pair]


def changing(first):
    """Return worlds in which something changes, or labels, people or budgets are rare; two sets of sizes."""
    found = []
    sizes = ((1.0, 3, 16_000), (10.0, 8, 12_000)), ((2.0, 5, 20_000), (5.0, 10, 16_000))
    for epsilon, arms, rows in sizes[first]:
        found += [
            World("flips early", rows, arms, 4, epsilon, chances(1.5, 0.5, change="flips early")),
            World("flips early, all alike", rows, arms, 2, epsilon, chances(2.0, 0.0, change="flips early")),
            World("best falls", rows, arms, 4, epsilon, chances(1.2, 0.5, change="best falls")),
            World("all fall", rows, arms, 4, epsilon, chances(1.2, 0.7, change="all fall")),
            World("contexts mislead", rows, arms, 5, epsilon, chances(0.7, 2.0, change="contexts mislead")),
            World("wanders", rows, arms, 4, epsilon, chances(1.5, 0.5, change="wanders")),
            World("parity", rows, arms, 4, epsilon, chances(0.7, 1.0, change="parity")),
            World("rare labels", rows, arms, 4, epsilon, chances(1.0, 0.5, level=0.04)),
            World("rare labels, two", rows, 2, 4, epsilon, chances(0.7, 0.0, "ones", level=0.05)),
            World("many arms", rows, 26, 1, epsilon, chances(1.0, 0.0, "ones")),
            World("few people", rows // 12, arms, 4, epsilon, chances(1.2, 0.5)),
            World("few people, many columns", rows // 8, arms, 40, epsilon, chances(1.2, 0.5)),
            World(
                "range far too wide",
                rows,
                arms,
                4,
                epsilon,
                chances(1.0, 1.0),
                {"reward_range": (0, 60)},
                faulty=True,
            ),
            World("answers", rows, arms, 20, epsilon, chances(0.7, 2.0, "answers")),
            World("numbers", rows, arms, 8, epsilon, chances(0.7, 2.0)),
        ]
    return found


def made(world, policy, seed, guard):
    """Return the policy, told public numbers alone."""
    told = {"reward_range": (0, 1), "norm": max(0.6 * np.sqrt(world.dim), 1.0)} | world.told
    common = {"epsilon": world.epsilon, "delta": 1e-5, "seed": seed, "guard": guard}
    if policy == "FLIPHAT" or told["reward_range"] is None:
        scale = told["norm"] / np.sqrt(world.dim) / 1.5
        given = {"sparsity": world.dim, "context_scale": scale, "reward_range": told["reward_range"]}
        return FLIPHAT(world.dim, arms=world.arms, **given, **common)
    return PrivateLinear(
        world.arms, world.dim, context_norm=told["norm"], reward_range=told["reward_range"], **common
    )


def play(world, number, policy, seed, guard):
    """Return what the second half earned, what random play and a constant arm do, and what was said."""
    rng = np.random.default_rng([number, seed])
    values, means = world.make(rng, world)
    learner = made(world, policy, seed, guard)
    chosen, at = np.zeros(world.rows, np.int64), 0
    while at < world.rows:
        part = slice(at, at + min(learner.remaining, world.rows - at))
        decisions = learner.select_batch(values[part])
        chosen[part] = np.asarray(decisions.arms, int)
        chance = means[np.arange(part.start, part.stop), chosen[part]]
        won = world.shift + world.paid * (rng.random(len(chance)) < chance)
        won[rng.random(len(won)) < world.missing] = np.nan
        learner.update_batch(decisions, won)
        at = part.stop
    half = np.arange(world.rows // 2, world.rows)
    means = world.shift + world.paid * means
    board = learner.scoreboard
    lifts = [one for one in (board.lift, board.lift_over_arm) if one is not None]
    # Where the policy's own choices are being measured anew, that of its last episode.
    last = board.episodes[-1].reward.error if board.episodes else np.inf
    error = min((one.error for one in lifts), default=last)
    return {
        "earned": means[half, chosen[half]].mean(),
        "random": means[half].mean(),
        "constant": means[half].mean(axis=0).max(),
        "error": error,
        "said": learner.health.findings,
    }


def main():
    """Print what health said, and what the guard was worth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--first", type=int, choices=[0, 1], default=0, help="worlds to choose on, or to report"
    )
    parser.add_argument(
        "--changing", action="store_true", help="worlds in which something changes or is rare"
    )
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tell", action="store_true", help="print a line for each world")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    # Eight kinds can't be learned, and come four times: twice in each half, once with either policy.
    numbered = [
        (number, (number // 4 + number // 32) % 2, world)
        for number, world in enumerate(worlds())
        if (number // 2 + number // 16) % 2 == asked.first
    ]
    if asked.changing:
        numbered = [(100 + at, at % 2, world) for at, world in enumerate(changing(asked.first))]
    began, lost, silent, faulty, worth, costs = time.process_time(), [], [], [], [], []
    for number, which, world in numbered:
        policy = ("PrivateLinear", "FLIPHAT")[which]
        runs = {
            guard: [play(world, number, policy, asked.seed + run, guard) for run in range(asked.runs)]
            for guard in (True, False)
        }
        earned = {guard: np.mean([one["earned"] for one in found]) for guard, found in runs.items()}
        floor = [max(one["random"], one["constant"]) for one in runs[True]]
        best, spoken = max(*earned.values(), np.mean(floor)), []
        for guard, found in runs.items():
            for one, other in zip(found, floor, strict=True):
                spoken.append(bool(one["said"]))
                if one["earned"] < 0.95 * other and other - one["earned"] > 3 * one["error"]:
                    lost.append((spoken[-1], number, guard))
                if world.faulty:
                    faulty.append(spoken[-1])
                elif one["earned"] > 0.9 * best:
                    silent.append((spoken[-1], number, one["said"]))
        error = np.mean([one["error"] for one in runs[True]])
        if abs(earned[False] - np.mean(floor)) > 3 * error:
            worth.append((earned[True] / np.mean(floor), number))
        if earned[False] >= np.mean(floor):
            costs.append((earned[True] / earned[False], number))
        if asked.tell:
            print(
                f"{number:2d} {world.name:24s} {policy:13s} {world.arms:2d} arms, eps {world.epsilon:<4g} "
                f"random {np.mean([one['random'] for one in runs[True]]):7.3f} better {np.mean(floor):7.3f} "
                f"guard {earned[True]:7.3f} none {earned[False]:7.3f} said {np.mean(spoken):.2f}",
                flush=True,
            )
    print(f"{len(numbered)} worlds, {asked.runs} runs each, with and without the guard")
    print(f"lost: health speaks in {sum(one[0] for one in lost)} of {len(lost)} runs")
    print(f"earned: health speaks in {sum(one[0] for one in silent)} of {len(silent)} runs")
    if faulty:
        print(f"told wrongly, or no rewards: health speaks in {sum(faulty)} of {len(faulty)} runs")
    for said, number, words in silent:
        if said and asked.tell:
            print(f"    {number}: {words}")
    worst = ", ".join(f"{value:.3f} ({number})" for value, number in sorted(worth) if value < 0.97)
    mean = np.mean([one[0] for one in worth])
    print(f"guard, over the better of both: mean of {len(worth)} worlds {mean:.3f}")
    print(f"    below .97: {worst or 'none'}")
    print(f"guard, where the policy is right: {np.mean([one[0] for one in costs]):.4f}, lowest {min(costs)}")
    print(f"{time.process_time() - began:.0f} s of processor time")


if __name__ == "__main__":
    main()
