"""How the cost of a fit grows, and how close it is to what the machine can read.

    python benches/scale_growth.py [--figures docs/figures]

Times one iteration of a private fit (sums, noise, picks, projection) over two decades of each size, the best
of several in turns, and prints the slope of log time on log size. Resident memory and the bytes that an
iteration reads are printed beside it. With `--figures` the measurements are drawn there.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fliphat import FLIPHAT, Iht, _native
from fliphat.environments import SparseClicks
from fliphat.kernels import _niht
from fliphat.policies.engine.rows.spill import SpillFile

SPARSITY, NONZEROS = 20, 50
FIT = {"step_size": 4.0, "l1_radius": 50.0, "clip": 0.5, "pick_scale": 2**22, "value_scale": 2**22}


def sparse_rows(rows, dim, nonzeros, rng):
    """One-hot fields of equal size: canonical rows without a sort."""
    field = dim // nonzeros
    within = (field * rng.random((rows, nonzeros), dtype=np.float32) ** 4).astype(np.int32)
    columns = np.minimum(within, field - 1) + np.arange(nonzeros, dtype=np.int32) * field
    offsets = np.arange(rows + 1, dtype=np.int32) * nonzeros
    matrix = sp.csr_array((rows, dim), dtype=np.float32)
    matrix.indptr, matrix.indices = offsets, columns.ravel()
    matrix.data = np.ones(rows * nonzeros, np.float32)
    return matrix


def dense_rows(rows, dim, rng):
    return rng.standard_normal((rows, dim), dtype=np.float32)


def fitter(X, sparsity=SPARSITY):
    """A fit of one iteration from an estimate that is not zero, as most are."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, X.shape[0]).astype(np.float64)
    start = np.zeros(X.shape[1])
    start[rng.choice(X.shape[1], sparsity, replace=False)] = 0.1

    def fit():
        _niht.fit(
            X,
            y,
            sparsity=sparsity,
            iterations=1,
            start=start,
            loss="logistic",
            noise=_native.SeededNoise(1, 1),
            **FIT,
        )

    return fit


def best(actions, repeats=7):
    """Least seconds of each action, in turns, so that whatever else the machine does meets all of them."""
    least = [np.inf] * len(actions)
    for _ in range(repeats):
        for i, action in enumerate(actions):
            began = time.perf_counter()
            action()
            least[i] = min(least[i], time.perf_counter() - began)
    return np.array(least)


def slope(sizes, seconds):
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def bytes_read(X):
    """Bytes of rows that an iteration reads."""
    if isinstance(X, np.ndarray):
        return X.nbytes
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes


def measure(name, sizes, make):
    matrices = [make(size) for size in sizes]
    seconds = best([fitter(X) for X in matrices])
    found = slope(sizes, seconds)
    print(f"\n{name}: slope {found:.2f}")
    for size, X, each in zip(sizes, matrices, seconds, strict=True):
        speed = bytes_read(X) / each / 1e9
        print(f"  {size:>12,}  {1e3 * each:9.3f} ms  {bytes_read(X) / 1e6:9.1f} MB  {speed:6.2f} GB/s")
    return {"name": name, "sizes": sizes, "seconds": seconds, "slope": found}


def draw(found, directory):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "scale"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(3.4 * len(found), 3.2), sharey=True)
    for axis, one in zip(axes, found, strict=True):
        sizes, seconds = np.array(one["sizes"], float), one["seconds"]
        axis.loglog(sizes, 1e3 * seconds, "o-", color="#1f5a96", label=f"measured, slope {one['slope']:.2f}")
        linear = 1e3 * seconds[-1] * sizes / sizes[-1]
        axis.loglog(sizes, linear, "--", color="#888888", label="slope 1")
        axis.set_xlabel(one["name"])
        axis.grid(True, which="major", alpha=0.3)
        axis.legend(frameon=False, fontsize=8)
    axes[0].set_ylabel("one iteration, ms")
    figure.tight_layout()
    directory.mkdir(parents=True, exist_ok=True)
    figure.savefig(directory / "scale-growth.svg", metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figures", type=Path)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    found = [
        measure(
            "non-zeros (sparse, d = 509 256)",
            [50 * rows for rows in (20_000, 63_000, 200_000, 632_000, 2_000_000)],
            lambda size: sparse_rows(size // NONZEROS, 509_256, NONZEROS, rng),
        ),
        measure(
            "d (sparse, 1000 rows of 50)",
            [50_000, 158_000, 500_000, 1_580_000, 5_000_000],
            lambda size: sparse_rows(1000, size, NONZEROS, rng),
        ),
        measure(
            "n (dense, d = 1000)",
            [5_000, 15_800, 50_000, 158_000, 500_000],
            lambda size: dense_rows(size, 1000, rng),
        ),
        measure(
            "d (dense, n = 20 000)",
            [200, 632, 2_000, 6_320, 20_000],
            lambda size: dense_rows(20_000, size, rng),
        ),
    ]
    X = sparse_rows(1000, 509_256, NONZEROS, rng)
    print("\npicks s (sparse, 1000 rows, d = 509 256)")
    for s, seconds in zip((5, 20, 80, 320), best([fitter(X, s) for s in (5, 20, 80, 320)]), strict=True):
        print(f"  {s:>5}  {1e3 * seconds:.3f} ms")
    rounds()
    from_file(rng)
    print(f"\nplain reads of memory, two threads: {read_bandwidth():.2f} GB/s")
    if options.figures is not None:
        draw(found, options.figures)


def rounds():
    """Time of one `select` and `update` on half a hundred non-zeros, which d should not touch."""
    print("\na round through select and update, 5 arms of 50 non-zeros")
    for dim in (5_000, 50_000, 509_256, 5_000_000):
        policy = FLIPHAT(dim, 30, 1.0, 1e-6, loss="logistic", first_episode=500, fit=Iht(growth=16))
        contexts = SparseClicks(dim, 5, nonzeros=50, seed=0).draw(1000).contexts
        each = [contexts[5 * i : 5 * i + 5] for i in range(1000)]

        def play(some, policy=policy):
            for one in some:
                policy.update(policy.select(one), 1.0)

        play(each[:501])  # past a release
        (seconds,) = best([lambda play=play, each=each: play(each[501:])])
        print(f"  {dim:>12,}  {1e6 * seconds / 499:.1f} us")


def from_file(rng):
    """The same fit from memory, from a file that the page cache holds, and from one that it does not."""
    X = dense_rows(100_000, 4000, rng)
    file = SpillFile(X.dtype)
    file.write(0, X)
    os.fsync(file._file.fileno())
    mapped = file.mapped(X.shape)
    memory, warm = best([fitter(X), fitter(mapped)])
    del X, mapped
    os.posix_fadvise(file._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    (cold,) = best([fitter(file.mapped((100_000, 4000)))], repeats=1)
    print("\ndense, 100 000 x 4 000, 1.6 GB")
    for name, seconds in (("memory", memory), ("file, cached", warm), ("file, not cached", cold)):
        print(f"  {name:>16}  {1e3 * seconds:9.1f} ms  {1.6 / seconds:6.2f} GB/s")


def read_bandwidth():
    """GB a second of plain reads on two threads, from an array far larger than any cache."""
    words = np.ones(2**27, np.uint64)
    return words.nbytes / best([lambda: _native.read_all(words, 2)])[0] / 1e9


if __name__ == "__main__":
    main()
