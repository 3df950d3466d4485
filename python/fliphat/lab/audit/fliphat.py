"""The policy's cases for the audit: one person's contents swapped, everyone else looking on.

In the sharp cases the policy plays for real: rounds, rewards, user ids, plan and calibration. The fits that
it hands to the kernel are recorded and made again, natively, hundreds of thousands of times; what is looked
at is every estimate that was fitted since the person came. The other case plays whole episodes in each run
and looks at estimates and at other people's arms: far fewer runs, and nothing left out.

The setting is the one in which a mistake shows best. There are two coordinates and one pick, so that a
person who pushes one up and the other down moves the odds of the pick, and the released value, by all that
the proof allows for. Delta is large: the most telling event is then a frequent one, which few runs bound
closely. Noise is calibrated for that delta, so noise that is too small by a factor shows as that factor.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat._native import RecordingNoise
from fliphat.fit.options import Iht
from fliphat.lab.audit.bounds import Counts
from fliphat.lab.audit.cases import Case, Counter, View
from fliphat.lab.audit.replay import FitCall, Recording, replaying
from fliphat.lab.audit.steps import record_by
from fliphat.policies.engine.each import Single
from fliphat.policies.fliphat import FLIPHAT

_EPSILON, _DELTA = 1.0, 0.2

#: Signs of the person's pushes.
_SIDES = (1, -1)

#: People who push both coordinates up, away from zero, where a push shows in the magnitudes too.
_OTHERS = 6

#: Episodes before the person comes: what holds in the first must hold later.
_EPISODES_BEFORE = 3

#: A saved policy is restored from a backup this often.
_RESTORES = 3

#: Gradients of these are clipped to a full push whatever the estimate is.
_CONTEXT, _REWARD = 1e9, 1e30

#: Scales of a pick relative to that of a value that scores are weighed for: the split of the budget is the
#: policy's affair, and the best score is chosen on one half of the runs.
_PICK_SCALES = (0.25, 0.5, 1.0)

_BINS = 256
_RUNS_OF_ONE_POLICY = 100

#: Native cases make about this many runs in the time of one that repeats recorded fits, or that plays whole
#: episodes.
_REPLAY_COST, _PLAY_COST = 3, 400


@dataclass(frozen=True)
class _Person:
    """What a person does, and what the policy knows of it."""

    #: Rounds of the person in each episode from the first one on.
    rounds: tuple[int, ...]
    #: The policy's rounds_per_user.
    covered: int = 1
    #: Whether rounds carry user ids: without them the limit is a promise, which the person may break.
    ids: bool = False
    delta: float = _DELTA
    #: People who push as one side of the person does. Uneven odds tell more of one pick, even ones of two.
    leaning: int = 1
    #: Whether rounds are played as the service plays those that wait together: singly, in a group.
    grouped: bool = False
    #: Returns an empty database for each policy that is played in one.
    database: Callable[[], str] | None = None

    @property
    def length(self) -> int:
        """Rounds of every episode."""
        return _OTHERS + self.leaning + max(self.rounds)


def policy_cases() -> list[Case]:
    """Return the policy's cases, and the controls.

    In two controls the policy is right and the person breaks the promise that it was calibrated for. What is
    released then has the law of a policy whose noise is too small, or that uses rows twice. With user ids the
    policy itself keeps the limit: the same rounds with ids are claims, and must stand.
    """
    return [
        _replayed("FLIPHAT, one round a person", _Person((1, 0))),
        _replayed("FLIPHAT, one round a person, pure", _Person((1, 0), delta=0.0)),
        _replayed("FLIPHAT, ids, a third round where k = 2", _Person((3, 0), covered=2, ids=True, leaning=2)),
        _replayed("FLIPHAT, ids, a second episode where k = 1", _Person((1, 1), ids=True, leaning=0)),
        Case(
            "FLIPHAT, estimates and others' arms", _EPSILON, _DELTA, _played(_Person((1, 0))), cost=_PLAY_COST
        ),
        _replayed(
            "FLIPHAT, noise at 2/3 of what is needed",
            _Person((3, 0), covered=2, leaning=2),
            "three rounds with noise for two",
        ),
        _replayed(
            "FLIPHAT, an episode's rows used twice",
            _Person((1, 1), leaning=0),
            "two fits see the same row, with noise for one",
        ),
        _restored("FLIPHAT, refitted after each restore"),
        _replayed("FLIPHAT, ids, two episodes where k = 2", _Person((1, 1), covered=2, ids=True)),
        _replayed(
            "FLIPHAT, eight rounds over four episodes where k = 2",
            _Person((2, 2, 2, 2), covered=2, leaning=0),
            "rows are spread over episodes, and nobody counts them",
        ),
        *_ways("in groups", _Person((3, 0), covered=2, leaning=2, grouped=True)),
    ]


def database_cases(database: Callable[[], str]) -> list[Case]:
    """Return the cases of a policy that is played in a database, of which `database` gives new ones."""
    return _ways("in a database", _Person((3, 0), covered=2, leaning=2, database=database))


def _ways(name: str, person: _Person) -> list[Case]:
    """Return a claim, that ids keep a person within the limit, and its control, a person who has none."""
    return [
        _replayed(f"FLIPHAT {name}, ids, a third round where k = 2", replace(person, ids=True)),
        _replayed(f"FLIPHAT {name}, a third round where k = 2", person, "three rounds with noise for two"),
    ]


def _replayed(name: str, person: _Person, broken: str | None = None) -> Case:
    def record() -> Recording:
        policies = [_policy(person), _policy(person)]
        fits = [_recorded(policy, person, side) for policy, side in zip(policies, _SIDES, strict=True)]
        return fits[0], fits[1], _views(policies[0], person, len(fits[0]))

    return Case(name, _EPSILON, person.delta, replaying(record), broken, cost=_REPLAY_COST)


def _restored(name: str) -> Case:
    person = _Person((1,))

    def record() -> Recording:
        fits = []
        with tempfile.TemporaryDirectory() as directory:
            for side in _SIDES:
                saved = Path(directory) / f"policy {side}"
                policy = _policy(person)
                _play(policy, person, 1, side)
                policy.save(saved)
                backup = saved.read_bytes()
                noise = RecordingNoise()
                for _ in range(_RESTORES):
                    saved.write_bytes(backup)
                    restored = FLIPHAT.load(saved)
                    record_by(restored, noise)
                    _play(restored, person, 0, side)
                fits.append(noise.fits)
        return fits[0], fits[1], _views(restored, person, _RESTORES)

    why = "every restore releases the same rows again"
    return Case(name, _EPSILON, person.delta, replaying(record), why, cost=_REPLAY_COST)


def _played(person: _Person) -> Counter:
    """Return what counts estimates and others' arms of policies that play whole episodes in every run."""

    def count(runs: int, threads: int, seed: int | None) -> list[Counts]:
        sides = [_watched(person, side, runs, seed) for side in _SIDES]
        counted = zip(*sides, strict=True)
        return [(first, second) for first, second in counted]

    return count


def _watched(person: _Person, side: int, runs: int, seed: int | None) -> list[npt.NDArray[np.uint64]]:
    """Play runs on one side: an episode with the person, then one of others; count what is seen of them."""
    # Others' first arm is good if the first coefficient was picked and is above zero, or the second below.
    others = np.zeros((person.length, 2, 2), np.float32)
    others[:, 0, 0] = others[:, 1, 1] = _CONTEXT
    estimates = np.zeros((runs, 2, 2))
    first_arms = np.zeros(runs, np.int64)
    for run in range(runs):
        at = run % _RUNS_OF_ONE_POLICY
        if at == 0:
            # In a seeded audit each policy has a seed of its own.
            mixed = None if seed is None else np.random.SeedSequence([seed, side % 3, run])
            policy = _policy(person, None if mixed is None else int(mixed.generate_state(1, np.uint64)[0]))
        _play(policy, person, person.rounds[0], side)
        if at > 0:
            estimates[run - 1, 1] = policy.estimate.to_dense()
        decisions = policy.select_batch(others)
        first_arms[run] = (decisions.arms == 0).sum()
        estimates[run, 0] = policy.estimate.to_dense()
        policy.update_batch(decisions, np.zeros(person.length))
        if at == _RUNS_OF_ONE_POLICY - 1 or run == runs - 1:
            _play(policy, person, 0, side)
            estimates[run, 1] = policy.estimate.to_dense()
    counts = [np.bincount(first_arms, minlength=person.length + 1).astype(np.uint64)]
    for picks, values, low, high, bins in _views(policy, person, 2):
        scores = ((estimates != 0) * picks[:, 0] + estimates * values).sum((1, 2))
        cuts = np.linspace(low, high, bins + 1)
        counts.append(np.histogram(np.clip(scores, low, high), cuts)[0].astype(np.uint64))
    return counts


def _policy(person: _Person, seed: int | None = None) -> FLIPHAT:
    return FLIPHAT(
        dim=2,
        sparsity=1,
        epsilon=_EPSILON,
        delta=person.delta,
        first_episode=person.length,
        fit=Iht(warm_start=False, growth=1.0, gradient_clip=1.0, l1_radius=1e6, iterations=1, step_size=1.0),
        rounds_per_user=person.covered,
        seed=seed,
        store=None if person.database is None else person.database(),
    )


def _play(policy: FLIPHAT, person: _Person, rounds: int, side: int) -> None:
    """Play an episode in which the person has some rounds; the first call releases the one before."""
    first = _OTHERS + person.leaning
    contexts = np.zeros((person.length, 1, 2), np.float32)
    contexts[:_OTHERS] = _CONTEXT
    contexts[_OTHERS:first, 0] = (_CONTEXT, -_CONTEXT)
    contexts[first : first + rounds, 0] = (side * _CONTEXT, -side * _CONTEXT)
    users = None
    if person.ids:
        users = [f"{policy.episode} {i}" for i in range(policy.rounds, policy.rounds + person.length)]
        users[first : first + rounds] = ["the person"] * rounds
    decisions: Any
    if person.grouped:
        decisions = [None] * person.length
        policy._select_each(list(map(Single, contexts, users or decisions)), decisions)
    else:
        decisions = policy.select_batch(contexts, users)
    policy.update_batch(decisions, np.full(person.length, _REWARD))


def _recorded(policy: FLIPHAT, person: _Person, side: int) -> list[FitCall]:
    """Return the fits of all episodes from the person's first one on."""
    for _ in range(_EPISODES_BEFORE):
        _play(policy, person, 0, side)
    _play(policy, person, person.rounds[0], side)
    noise = RecordingNoise()
    record_by(policy, noise)
    for rounds in (*person.rounds[1:], 0):
        _play(policy, person, rounds, side)
    return noise.fits


def _views(policy: FLIPHAT, person: _Person, fits: int) -> list[View]:
    """Scores close to the log-likelihood ratio of the first estimates, from one of them to all."""
    noise, shift, middle = _numbers(policy, person)
    signs = np.array([1.0, -1.0])
    views = []
    for pick_scale in _PICK_SCALES:
        for seen in range(1, fits + 1):
            picks, values = np.zeros((fits, 1, 2)), np.zeros((fits, 2))
            values[:seen] = signs * shift / noise**2
            picks[:seen] = signs * (shift / (noise * pick_scale) - shift * middle / noise**2)
            reach = (
                seen * shift / (noise * pick_scale) + (seen**0.5 * 6 + seen * shift / noise) * shift / noise
            )
            views.append((picks, values, -reach, reach, _BINS))
    return views


def _numbers(policy: FLIPHAT, person: _Person) -> tuple[float, float, npt.NDArray[np.float64]]:
    """Return the noise of a value, how far the person moves it, and the middle of the two sides."""
    moved = 2 * max(person.rounds) / person.length
    middle = np.array([_OTHERS + person.leaning, _OTHERS - person.leaning]) / person.length
    return policy.history[-1].noise_scale, moved, middle
