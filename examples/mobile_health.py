"""A mobile-health study: learn which prompt, if any, a phone should show now.

Participants come back several times, answers arrive hours later or never, and what a phone knows (15 numbers
about sleep, steps, mood, place) is sensitive. Every participant is protected as a whole: nobody else's
prompts, and nothing the study publishes, says much about what they brought in all of their rounds.

    python examples/mobile_health.py
"""

import heapq
import itertools
import warnings
from dataclasses import dataclass

import numpy as np

from fliphat import FLIPHAT, Iht
from fliphat.contexts import Crossed
from fliphat.policies import HealthWarning

PROMPTS = ("nothing", "take a walk", "breathe", "go to bed")
FACTS = 15  # what the phone knows; each prompt weighs them in its own way
ROUNDS_EACH = 3
ROUNDS = 40_000
AT_ONCE = 25

# What helps, unknown to the policy: few of the 60 coordinates matter.
EFFECT = np.zeros(len(PROMPTS) * FACTS)
EFFECT[[15 + 2, 15 + 7, 30 + 4, 45 + 0, 45 + 9]] = 0.9, -0.8, 0.8, 0.9, -0.7


@dataclass
class Study:
    """What a study ends with: the policy, and what every round gained and could have gained."""

    policy: FLIPHAT
    gained: np.ndarray
    possible: np.ndarray

    @property
    def published(self) -> np.ndarray:
        """The effects that the study may publish."""
        return self.policy.estimate.to_dense()


def run(seed: int, *, noise_seed: int | None = None) -> Study:
    """Run a study on simulated participants; `noise_seed` is for repeating a simulation, not for people."""
    rng = np.random.default_rng(seed)
    policy = FLIPHAT(
        dim=len(EFFECT),
        sparsity=6,
        epsilon=4.0,
        delta=1e-4,
        rounds_per_user=ROUNDS_EACH,
        # A coordinate is of size 1 under its own prompt and 0 under the three others: 0.5 on average (root
        # mean square). The guess is public, made before anybody is asked.
        context_scale=0.5,
        # What is to be published must not be cut: answers are about 1 in size, and so are facts.
        fit=Iht(growth=1.1, gradient_clip=1.5),
        # Every prompt is shown to enough people before the first estimate, and to a tenth of them after it:
        # a prompt that is never shown is never learned about.
        first_episode=2_000,
        exploration=0.1,
        seed=noise_seed,
    )
    answers: list[tuple[float, int, float]] = []  # when, which decision, what
    gained, possible = np.zeros(ROUNDS), np.zeros(ROUNDS)
    own_block = np.eye(len(PROMPTS))
    weights = EFFECT.reshape(len(PROMPTS), FACTS)
    now = 0
    while now < ROUNDS:
        # The phones that ask in these minutes. One estimate chooses for all, so no more than it has left.
        count = min(AT_ONCE, policy.remaining, ROUNDS - now)
        facts = rng.standard_normal((count, FACTS))
        facts[rng.random(count) < 0.01, 3] = np.nan  # a sensor failed: a prompt at random, nothing is learned
        participants = [f"participant {i}" for i in rng.integers(ROUNDS // ROUNDS_EACH, size=count)]
        decisions = policy.select_batch(Crossed(facts, own_block), participants, arms=PROMPTS)
        effects = np.nan_to_num(facts) @ weights.T
        benefits = effects[np.arange(count), [PROMPTS.index(prompt) for prompt in decisions.arms]]
        gained[now : now + count], possible[now : now + count] = benefits, effects.max(axis=1)
        delays, noise = rng.exponential(30, count), 0.3 * rng.standard_normal(count)
        for i in np.flatnonzero(rng.random(count) < 0.8):  # the others never answer
            answer = float(benefits[i] + noise[i])
            heapq.heappush(answers, (now + i + delays[i], int(decisions.ids[i]), answer))
        now += count
        while answers and answers[0][0] <= now:
            _, identity, reward = heapq.heappop(answers)
            policy.update(identity, reward)
    return Study(policy, gained, possible)


def main() -> None:
    """Run the study and print what came out."""
    # Failed sensors are part of the study: their rounds are played at random, and the policy says so once.
    warnings.filterwarnings("ignore", "contexts with a value that is NaN", HealthWarning)
    study = run(2024)
    policy = study.policy
    print(policy.guarantee, end="\n\n")
    print("episode   rounds   smallest effect seen   mean benefit   of the best possible")
    edges = [0, *np.cumsum([facts.rounds for facts in policy.history]), ROUNDS]
    for episode, (begin, end) in enumerate(itertools.pairwise(edges)):
        seen = f"{policy.history[episode - 1].smallest_coefficient:.2f}" if episode else "none yet"
        gained, possible = study.gained[begin:end], study.possible[begin:end]
        share = gained.sum() / possible.sum()
        print(f"{episode:7d} {end - begin:8d} {seen:>22s} {gained.mean():14.2f} {share:21.0%}")
    print(f"\n{policy.late} answers came too late and were dropped; {len(policy.pending)} are awaited.")
    print("What the study may publish, and what is true:")
    for index, value in zip(policy.estimate.indices, policy.estimate.values, strict=True):
        prompt, fact = divmod(int(index), FACTS)
        print(f"  fact {fact:2d} makes {PROMPTS[prompt]!r:14s} {value:+.2f}   ({EFFECT[index]:+.2f})")


if __name__ == "__main__":
    main()
