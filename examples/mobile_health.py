"""A mobile-health study: learn which prompt, if any, a phone should show now.

Participants come back several times, answers arrive hours later or never, and what a phone knows (60 numbers
about sleep, steps, mood, place) is sensitive. Every participant is protected as a whole: nobody else's
prompts, and nothing the study publishes, says much about what they brought in all of their rounds.

    python examples/mobile_health.py
"""

import heapq
import itertools

import numpy as np

from fliphat import FLIPHAT

PROMPTS = ("nothing", "take a walk", "breathe", "go to bed")
FACTS = 15  # what the phone knows; each prompt weighs them in its own way
ROUNDS_EACH = 3
ROUNDS = 20_000

# What helps, unknown to the policy: few of the 60 coordinates matter.
EFFECT = np.zeros(len(PROMPTS) * FACTS)
EFFECT[[15 + 2, 15 + 7, 30 + 4, 45 + 0, 45 + 9]] = 0.9, -0.8, 0.8, 0.9, -0.7


def contexts_of(facts: np.ndarray) -> np.ndarray:
    """One row a prompt: the facts, in that prompt's block of columns."""
    contexts = np.zeros((len(PROMPTS), len(PROMPTS) * FACTS), dtype=np.float32)
    for arm in range(len(PROMPTS)):
        contexts[arm, arm * FACTS : (arm + 1) * FACTS] = facts
    return contexts


def main() -> None:
    """Run the study and print what came out."""
    rng = np.random.default_rng(2024)
    # A coordinate is of size 1 under its own prompt and 0 under the three others: 0.5 on average (root mean
    # square). The guess is public, made before anybody is asked.
    policy = FLIPHAT(
        dim=len(EFFECT), sparsity=6, epsilon=4.0, delta=1e-4, rounds_per_user=ROUNDS_EACH, context_scale=0.5
    )
    answers: list[tuple[int, int, float]] = []  # when, which decision, what
    gained, possible = np.zeros(ROUNDS), np.zeros(ROUNDS)
    for now in range(ROUNDS):
        facts = rng.standard_normal(FACTS)
        if rng.random() < 0.01:
            facts[3] = np.nan  # a sensor failed: the round is played at random and not learned from
        contexts = contexts_of(facts)
        participant = f"participant {rng.integers(ROUNDS // ROUNDS_EACH)}"
        decision = policy.select(contexts, user=participant)
        effects = np.nan_to_num(contexts) @ EFFECT
        gained[now], possible[now] = effects[decision.arm], effects.max()
        if rng.random() < 0.8:  # the others never answer
            delay = int(rng.exponential(30))
            answer = effects[decision.arm] + 0.3 * rng.standard_normal()
            heapq.heappush(answers, (now + delay, decision.id, float(answer)))
        while answers and answers[0][0] <= now:
            _, identity, reward = heapq.heappop(answers)
            policy.update(identity, reward)

    print(policy.guarantee, end="\n\n")
    print("episode   rounds   smallest effect seen   mean benefit   of the best possible")
    edges = [0, *np.cumsum([facts.rounds for facts in policy.history]), ROUNDS]
    for episode, (begin, end) in enumerate(itertools.pairwise(edges)):
        seen = f"{policy.history[episode - 1].smallest_coefficient:.2f}" if episode else "none yet"
        share = gained[begin:end].sum() / possible[begin:end].sum()
        print(f"{episode:7d} {end - begin:8d} {seen:>22s} {gained[begin:end].mean():14.2f} {share:21.0%}")
    print(f"\n{policy.late} answers came too late and were dropped; {len(policy.pending)} are awaited.")
    print("What the study may publish, and what is true:")
    for index, value in zip(policy.estimate.indices, policy.estimate.values, strict=True):
        prompt, fact = divmod(int(index), FACTS)
        print(f"  fact {fact:2d} makes {PROMPTS[prompt]!r:14s} {value:+.2f}   ({EFFECT[index]:+.2f})")


if __name__ == "__main__":
    main()
