"""Time of a fit on two Dask workers of this machine over that of the local fit on two threads.

    python benches/dask_ratio.py [--rows 250000] [--columns 4000] [--block-rows 31250] [--iterations 8]

Both fit the same rows (4 GB of float32 by default) with the same seed, and must return the same bits. Rows
are made before any clock starts: in this process for the local fit, in the workers' memory for the other, so
twice their size is needed.
"""

import argparse
import statistics
import time

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

from fliphat import Iht, PrivateSparseRegressor


def make_block(first, rows, columns):
    """Rows that depend on their position alone: cuttings of one long row, which is fast to make."""
    base = np.random.default_rng(0).standard_normal(columns + 4096, dtype=np.float32)
    shifts = np.random.default_rng([1, first]).integers(0, 4096, rows)
    block = np.empty((rows, columns), np.float32)
    for row, shift in zip(block, shifts, strict=True):
        row[:] = base[shift : shift + columns]
    return block


def make_target(block):
    return (block[:, 0] - block[:, 1]).astype(np.float64)


def timed(model, X, y):
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start, model.coef_.copy()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=250_000)
    parser.add_argument("--columns", type=int, default=4_000)
    parser.add_argument("--block-rows", type=int, default=31_250)
    parser.add_argument("--iterations", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    model = PrivateSparseRegressor(
        1.0, 1e-6, sparsity=10, solver=Iht(iterations=options.iterations), random_state=1
    )
    firsts = list(range(0, options.rows, options.block_rows))
    lengths = [min(options.block_rows, options.rows - first) for first in firsts]

    X = np.empty((options.rows, options.columns), np.float32)
    for first, length in zip(firsts, lengths, strict=True):
        X[first : first + length] = make_block(first, length, options.columns)
    y = make_target(X)

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        blocks = client.map(make_block, firsts, lengths, columns=options.columns)
        targets = client.map(make_target, blocks)
        wait(targets)
        sized = [list(zip(parts, lengths, strict=True)) for parts in (blocks, targets)]
        spread_X = da.concatenate(
            [da.from_delayed(part, (rows, options.columns), dtype=np.float32) for part, rows in sized[0]]
        )
        spread_y = da.concatenate(
            [da.from_delayed(part, (rows,), dtype=np.float64) for part, rows in sized[1]]
        )
        # In turns, so that whatever else the machine does meets both; the best is the least disturbed.
        local, spread = [], []
        for _ in range(options.repeats):
            seconds, expected = timed(model, X, y)
            local.append(seconds)
            seconds, found = timed(model, spread_X, spread_y)
            spread.append(seconds)
            assert np.array_equal(found, expected), "the two fits must have the same bits"
    for name, times in (("local, two threads", local), ("two Dask workers", spread)):
        print(f"{name}: best {min(times):.2f} s, median {statistics.median(times):.2f} s")
    medians = statistics.median(spread) / statistics.median(local)
    print(
        f"{X.nbytes / 1e9:.1f} GB, {len(blocks)} blocks, {options.iterations} iterations: ratio of the best "
        f"{min(spread) / min(local):.2f}, of the medians {medians:.2f}"
    )


if __name__ == "__main__":
    main()
