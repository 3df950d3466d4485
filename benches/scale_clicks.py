"""A million rounds of search advertising: d = 509 256, 50 non-zeros a row, 5 arms, epsilon = 1.

    python benches/scale_clicks.py [--rounds 1000000] [--seeds 5] [--fit iht] [--honest 100000]

Each seed is another environment and other noise, in a process of its own, so that its peak of memory is
its own too. Prints time and memory of the whole run, simulation included, and clicks beside those of random
choices and of the truth. `--honest` also plays that many rounds through `select_batch` and `update_batch`,
and some through `select` and `update`, without a seed: what a service would do.
"""

import argparse
import json
import math
import subprocess
import sys
import time

import numpy as np

from fliphat import Iht

DIM, NONZEROS, ARMS = 509_256, 50, 5
PUBLIC = {"epsilon": 1.0, "delta": 1e-6, "loss": "logistic", "sparsity": 30}
#: What else is told: see "What to set for sparse clicks" in docs/scale.md. Pursuit is told nothing.
TOLD = {"pursuit": {}, "iht": {"context_scale": 0.35, "fit": Iht(gradient_clip=0.5)}}

#: Student's t, two sided 95 %, by degrees of freedom.
T95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}


def status(field):
    """One line of the process's own accounting, in MB."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def one_seed(seed, rounds, fit):
    from fliphat import FLIPHAT
    from fliphat.environments import SparseClicks
    from fliphat.simulation import play

    began = time.perf_counter()
    world = SparseClicks(DIM, ARMS, nonzeros=NONZEROS, seed=seed)
    policy = FLIPHAT(DIM, **PUBLIC, **TOLD[fit], seed=seed)
    played = play(policy, world, rounds)
    seconds, peak = time.perf_counter() - began, status("VmHWM")
    world.reset()
    random = world.play(rounds, rows=False).rewards.mean()
    world.reset()
    best = world.play(rounds, world.truth, rows=False).rewards.mean()
    found = len(set(world.truth[0].tolist()) & set(policy.estimate.indices.tolist()))
    return {
        "seed": seed,
        "seconds": seconds,
        "peak_mb": peak,
        "clicks": played.rewards.mean(),
        "last_tenth": played.rewards[-rounds // 10 :].mean(),
        "random": random,
        "truth": best,
        "found": found,
        "releases": len(policy.history),
    }


def honest(rounds, fit):
    from fliphat import FLIPHAT
    from fliphat.environments import SparseClicks

    world = SparseClicks(DIM, ARMS, nonzeros=NONZEROS, seed=0)
    policy = FLIPHAT(DIM, **PUBLIC, **TOLD[fit], fit=fit)
    drawing = playing = clicks = done = 0.0
    while done < rounds:
        count = int(min(rounds - done, policy.remaining, 4096))
        began = time.perf_counter()
        drawn = world.draw(count)
        drawing += time.perf_counter() - began
        began = time.perf_counter()
        decisions = policy.select_batch(drawn.contexts, arms=ARMS)
        outcome = drawn.settle(decisions.arms, rows=False)
        policy.update_batch(decisions, outcome.rewards)
        playing += time.perf_counter() - began
        clicks += outcome.rewards.sum()
        done += count
    singles = world.draw(2000).contexts
    each = [singles[i * ARMS : (i + 1) * ARMS] for i in range(2000)]
    policy.select(each[0])  # may open an episode
    began = time.perf_counter()
    for contexts in each[1:]:
        policy.update(policy.select(contexts), 1.0)
    single = (time.perf_counter() - began) / 1999
    print(
        f"through the policy's own calls, no seed ({policy.guarantee.epsilon:g}, proven: "
        f"{policy.guarantee.proven}): {rounds} rounds, drawing {drawing:.1f} s, playing and fitting "
        f"{playing:.1f} s, clicks {clicks / rounds:.4f}; one select and update {1e6 * single:.0f} us; "
        f"peak {status('VmHWM'):.0f} MB"
    )


def interval(values):
    """Mean and half width of a 95 % interval."""
    half = T95.get(len(values) - 1, 1.96) * np.std(values, ddof=1) / math.sqrt(len(values))
    return f"{np.mean(values):.4f} +- {half:.4f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--fit", choices=tuple(TOLD), default="pursuit")
    parser.add_argument("--honest", type=int, default=0)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(one_seed(options.one, options.rounds, options.fit)))
        return
    runs = []
    for seed in range(options.seeds):
        command = [sys.executable, __file__, "--one", str(seed), "--rounds", str(options.rounds)]
        command += ["--fit", options.fit]
        runs.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print({name: round(value, 4) for name, value in runs[-1].items()}, flush=True)
    told = PUBLIC | TOLD[options.fit]
    print(f"d = {DIM}, {NONZEROS} non-zeros a row, K = {ARMS}, T = {options.rounds}, {options.fit}, {told}")
    slowest, largest = max(run["seconds"] for run in runs), max(run["peak_mb"] for run in runs)
    print(f"slowest {slowest:.1f} s, most memory {largest:.0f} MB")
    if len(runs) > 1:
        for name in ("clicks", "last_tenth", "random", "truth"):
            print(f"{name}: {interval([run[name] for run in runs])}")
        print(f"clicks above random: {interval([run['clicks'] - run['random'] for run in runs])}")
    if options.honest:
        honest(options.honest, options.fit)


if __name__ == "__main__":
    main()
