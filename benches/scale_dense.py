"""Long dense episodes: anonymous memory of a run whose episodes are larger than its limit.

    python benches/scale_dense.py [--rounds 1000000] [--dim 4000] [--limit 3GB] [--compare]

Anonymous memory is what the process can't give back (`RssAnon`); rows in the nameless file are the page
cache's, and the system drops them when somebody needs the room. The peak is sampled ten times a second.
With `--compare` the run is repeated without a limit, and must release the same bits.
"""

import argparse
import threading
import time


def status():
    with open("/proc/self/status") as lines:
        fields = dict(line.split(":", 1) for line in lines)
    return {name: int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "RssFile", "VmRSS")}


class Peaks(threading.Thread):
    """The largest values seen so far."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most, self.over = {}, threading.Event()

    def run(self):
        while not self.over.wait(0.1):
            for name, value in status().items():
                self.most[name] = max(value, self.most.get(name, 0))


def run(rounds, dim, limit):
    from fliphat import FLIPHAT, Store
    from fliphat.environments import SparseLinear
    from fliphat.simulation import play

    kept = Store(memory_limit=limit)
    policy = FLIPHAT(dim, 10, epsilon=1.0, delta=1e-6, reward_scale=1.5, seed=1, store=kept)
    peaks = Peaks()
    peaks.start()
    began = time.perf_counter()
    played = play(policy, SparseLinear(dim, 3, sparsity=5, seed=1), rounds)
    seconds = time.perf_counter() - began
    peaks.over.set()
    peaks.join()
    lengths = [facts.rounds for facts in policy.history]
    print(
        f"d = {dim}, T = {rounds}, memory_limit = {limit}: {seconds:.0f} s, {len(lengths)} releases, the "
        f"last over {lengths[-1]} rounds ({lengths[-1] * dim * 4 / 1e9:.2f} GB of rows), open episode "
        f"{policy.rounds - sum(lengths)} of {policy.rounds - sum(lengths) + policy.remaining} rounds; peaks: "
        + ", ".join(f"{name} {value / 1e9:.2f} GB" for name, value in peaks.most.items())
        + f"; regret a round, last tenth: {played.regret[-rounds // 10 :].mean():.4f}",
        flush=True,
    )
    return [(facts.estimate.indices.tolist(), facts.estimate.values.tolist()) for facts in policy.history]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=4_000)
    parser.add_argument("--limit", default="3GB")
    parser.add_argument("--compare", action="store_true")
    options = parser.parse_args()
    released = run(options.rounds, options.dim, options.limit)
    if options.compare:
        assert released == run(options.rounds, options.dim, None), "the two runs must release the same bits"
        print("the same bits")


if __name__ == "__main__":
    main()
