"""What a fit of pursuit costs beside one of hard thresholding, on the same rows: python benches/fit_cost.py.

Both take turns in one process. Processor time is what counts: it does not see what else the machine does.
"""

import argparse
import dataclasses
import time
import warnings

import numpy as np

from fliphat import FLIPHAT

TOLD = {"sparsity": 10, "epsilon": 1.0, "delta": 0.01, "seed": 1}


def rows_of(n, d):
    """Return rows, rewards and flags of a published world."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.float32)
    y = X[:, :5].astype(np.float64) @ np.full(5, 0.7) + 0.5 * rng.standard_normal(n)
    return X, y, np.ones(n, bool)


def pursuit(X, y, present):
    """Return a fit of pursuit that knows a few columns, as most of a policy's fits do."""
    fit = FLIPHAT(dim=X.shape[1], fit="pursuit", **TOLD)._fit
    known = fit.begin()
    for rows in (None, *[min(4000, len(X))] * 5, len(X)):
        known = known if rows is None else dataclasses.replace(known, rows=float(rows))
        plan = fit.plan(known.episodes, known)
        if rows == len(X):
            return lambda: fit.run(plan, X, y, present, known)
        known = fit.run(plan, X[: plan.rows], y[: plan.rows], present[: plan.rows], known)


def thresholding(X, y, present):
    """Return the fit of the episode of hard thresholding that has about as many rows, cut to those."""
    fit = FLIPHAT(dim=X.shape[1], fit="iht", **TOLD)._fit
    episode = max(e for e in range(40) if fit.least_rows(e) <= len(X))
    plan = fit.plan(episode, fit.begin())
    known = dataclasses.replace(fit.begin(), episodes=episode)
    rows = plan.rows
    run = lambda: fit.run(plan, X[:rows], y[:rows], present[:rows], known)  # noqa: E731
    return run, rows


def main():
    """Print times and their ratio a row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")
    for n, d in ((8_192, 400), (100_000, 400)):
        X, y, present = rows_of(n, d)
        new, (old, rows) = pursuit(X, y, present), thresholding(X, y, present)
        best = {"pursuit": np.inf, "hard thresholding": np.inf}
        for _ in range(repeats):
            for name, run in (("pursuit", new), ("hard thresholding", old)):
                start = time.process_time()
                run()
                best[name] = min(best[name], time.process_time() - start)
        a_row = best["pursuit"] / n, best["hard thresholding"] / rows
        times = ", ".join(f"{name} {1e3 * seconds:.1f} ms" for name, seconds in best.items())
        print(f"{n:,} x {d} ({rows:,} rows thresholded): {times}; a row {a_row[0] / a_row[1]:.2f} times")


if __name__ == "__main__":
    main()
