"""A click-through service: sparse contexts, clicks, a store on disk, and a restart in the middle.

Each request shows one of four items. A context has 20 000 columns (crossed features of visitor and item), a
dozen of them set; values are +1 where visitor and item agree and -1 where they don't. After the restart
the service goes on where it was: same episode, same open requests, and no click is ever used twice.

    python examples/click_service.py
"""

import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fliphat import FLIPHAT, Iht, Store

COLUMNS, ITEMS, COMMON, RARE = 20_000, 4, 6, 6
BATCH, REQUESTS = 256, 60_000
TASTE = np.zeros(COLUMNS)
TASTE[:4] = 1.2, -1.0, 0.9, 0.8  # of the features everyone has, four move clicks


def open_service(directory: Path) -> FLIPHAT:
    """Open the policy, new or where it was left."""
    return FLIPHAT(
        dim=COLUMNS, sparsity=4, epsilon=2.0, delta=1e-5, loss="logistic", fit=Iht(gradient_clip=1.0),
        store=Store(directory, durability="batch"),
    )  # fmt: skip


def requests(rng: np.random.Generator, count: int) -> sp.csr_array:
    """Contexts of `count` requests, ITEMS rows each: a few features all have, and a few of the many."""
    rows = count * ITEMS
    common = np.tile(np.arange(COMMON), (rows, 1))
    rare = np.sort(COMMON + rng.integers(0, COLUMNS - COMMON - RARE, (rows, RARE)), axis=1) + np.arange(RARE)
    columns = np.hstack([common, rare]).astype(np.int32)
    values = rng.choice(np.array([-1, 1], np.float32), columns.shape)
    offsets = np.arange(rows + 1, dtype=np.int32) * (COMMON + RARE)
    return sp.csr_array((values.ravel(), columns.ravel(), offsets), shape=(rows, COLUMNS))


def serve(policy: FLIPHAT, rng: np.random.Generator, count: int, log: list[tuple[int, float, float]]) -> None:
    """Answer `count` requests; a click is known at once, or not at all."""
    while count > 0:
        size = min(BATCH, count, policy.remaining)
        contexts = requests(rng, size)
        decisions = policy.select_batch(contexts, arms=ITEMS)
        rates = 1 / (1 + np.exp(-(contexts @ TASTE).reshape(size, ITEMS)))
        rate = rates[np.arange(size), decisions.arms]
        reported = rng.random(size) < 0.9
        clicks = rng.random(size) < rate
        policy.update_batch(decisions.ids[reported], clicks[reported])
        log.append((decisions.episode, rate.sum(), size))
        count -= size


def main() -> None:
    """Serve, stop, start again, and print what came out."""
    rng, log = np.random.default_rng(7), []
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / "service"
        policy = open_service(directory)
        serve(policy, rng, REQUESTS // 2, log)
        before = (policy.rounds, policy.episode, len(policy.pending))
        policy.close()

        policy = open_service(directory)
        print(f"before the restart: {before[0]} requests, episode {before[1]}, {before[2]} clicks awaited")
        print(f"after the restart:  {policy.rounds} requests, episode {policy.episode}, "
              f"{len(policy.pending)} clicks awaited\n")  # fmt: skip
        serve(policy, rng, REQUESTS - REQUESTS // 2, log)

        print("episode   requests   click rate")
        for episode in range(policy.episode + 1):
            part = [(rate, size) for one, rate, size in log if one == episode]
            total = sum(size for _, size in part)
            print(f"{episode:7d} {total:10d} {sum(rate for rate, _ in part) / total:12.1%}")
        print("\nreleased coefficients (true ones are 0: 1.2, 1: -1.0, 2: 0.9, 3: 0.8)")
        for index, value in zip(policy.estimate.indices, policy.estimate.values, strict=True):
            print(f"  column {index:6d}  {value:+.2f}")
        sizes = {file.name: file.stat().st_size for file in sorted(directory.iterdir())}
        print("\non disk:", ", ".join(f"{name} {size / 1e6:.2f} MB" for name, size in sizes.items()))
        print("proven:", policy.guarantee.proven)
        policy.close()


if __name__ == "__main__":
    main()
