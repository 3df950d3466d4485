"""What a fit of pursuit costs beside one of hard thresholding, on the same rows: python benches/fit_cost.py.

A fit is everything from stored rows to what is known after the release, by the plan that `FLIPHAT` would make
for an episode of so many rows once it knows something: pursuit with the columns it found in rows of the same
world, hard thresholding warm. Making the plan is not part of it.

Times are processor time, that of all threads together, and not how long a caller waits: two threads that
share the work do not halve it. Both fits take turns in one process, so that each finds the caches as the
other left them, and the least of all turns counts. Other load on the machine is not in it, except through the
memory and the caches that all share, which it slows: a ratio from a busy machine may be off by a tenth.
"""

import argparse
import dataclasses
import os
import subprocess
import sys
import time
import warnings

import numpy as np

from fliphat import FLIPHAT, Iht, Pursuit

TOLD = {"sparsity": 10, "epsilon": 1.0, "delta": 0.01}
SIZES = ((200, 400), (1_000, 400), (4_000, 400), (20_000, 400), (100_000, 400))

#: Rows of the five episodes after the first, from which pursuit learns what it knows.
BEFORE = 4_000


def rows_of(n, d):
    """Return rows, rewards and flags of a published world."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.float32)
    y = X[:, :5].astype(np.float64) @ np.full(5, 0.7) + 0.5 * rng.standard_normal(n)
    return X, y, np.ones(n, bool)


def pursuit(X, y, present):
    """Return a fit of pursuit that knows a few columns, as most of a policy's fits do."""
    fit = FLIPHAT(dim=X.shape[1], fit=Pursuit(), **TOLD)._fit
    known, early = fit.begin(), rows_of(BEFORE, X.shape[1])
    for rows in (None, *[BEFORE] * 5):
        known = known if rows is None else dataclasses.replace(known, rows=float(rows))
        plan = fit.plan(known.episodes, known)
        known = fit.run(plan, *(part[: plan.rows] for part in early), known)
    known = dataclasses.replace(known, rows=float(len(X)))
    plan = fit.plan(known.episodes, known)
    return lambda: fit.run(plan, X, y, present, known)


def thresholding(X, y, present):
    """Return a warm fit of hard thresholding."""
    start = np.zeros(X.shape[1])
    start[:5] = 0.7
    fit = FLIPHAT(dim=X.shape[1], fit=Iht(start=start), first_episode=len(X), **TOLD)._fit
    known = fit.begin()
    plan = fit.plan(0, known)
    return lambda: fit.run(plan, X, y, present, known)


def measure(repeats):
    """Print times and their ratio, a line for each size."""
    cores = len(os.sched_getaffinity(0))
    for n, d in SIZES:
        given = rows_of(n, d)
        runs = {"pursuit": pursuit(*given), "hard thresholding": thresholding(*given)}
        best = dict.fromkeys(runs, np.inf)
        for _ in range(max(3, min(repeats, repeats * 20_000 // n))):
            for name, run in runs.items():
                start = time.process_time()
                run()
                best[name] = min(best[name], time.process_time() - start)
        times = ", ".join(f"{name} {1e3 * seconds:.2f} ms" for name, seconds in best.items())
        ratio = best["pursuit"] / best["hard thresholding"]
        print(f"{n:,} x {d} on {cores} core(s), processor time: {times}; {ratio:.2f} times", flush=True)


def main():
    """Measure on one core, then on all of them: without a number of threads, kernels take what there is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked.here:
        return measure(asked.repeats)
    again = [sys.executable, __file__, "--here", "--repeats", str(asked.repeats)]
    core = min(os.sched_getaffinity(0))
    subprocess.run(again, check=True, preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    subprocess.run(again, check=True)


if __name__ == "__main__":
    main()
