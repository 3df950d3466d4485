"""The audit's cases for the default fit: an episode of pursuit, one person's contents swapped.

The policy plays for real: episodes before the person comes, rounds, rewards, plan and price. The release of
the person's episode is then made by the policy itself from a saved copy, once for every outcome of its picks,
and drawn again many times by the kernels (:mod:`fliphat.lab.audit.steps`).

The person moves as much as a row can: all gradients from one end to the other, rows from the largest to the
smallest size, and with them the direction of the row in the second moments.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fliphat._native import RecordingNoise
from fliphat.fit.options import Pursuit
from fliphat.lab.audit.cases import Case
from fliphat.lab.audit.steps import StepsCall, counting, record_by, recorded_steps
from fliphat.policies.fliphat import FLIPHAT

#: A large delta, as in the other cases: the most telling event is then a frequent one.
_DELTA, _ROUNDS = 0.2, 12


class _Told(NamedTuple):
    """What the policy is told; with more budget and columns an episode picks twice."""

    dim: int
    sparsity: int
    epsilon: float


_ONE_PICK: Final = _Told(2, 1, 1.0)
_TWO_PICKS: Final = _Told(5, 5, 2.0)

#: Context and reward of the person, on the two sides. Rewards are so large that gradients are cut at both.
_SIDES: Final = ((1e9, 1e30), (1e-9, -1e30))

#: Native cases make about this many runs in the time of one here.
_COST = 20


def pursuit_cases() -> list[Case]:
    """Return the claims and the controls of pursuit."""

    def case(
        name: str, before: int, broken: str | None = None, of: _Told = _ONE_PICK, **changes: float
    ) -> Case:
        def record() -> tuple[list[StepsCall], list[StepsCall]]:
            return _recorded(of, before, **changes)

        return Case(name, of.epsilon, _DELTA, counting(record), broken, cost=_COST)

    return [
        case("FLIPHAT, pursuit, the first episode", 0),
        case("FLIPHAT, pursuit, a later episode", 2),
        case(
            "FLIPHAT, pursuit, noise at 2/3 of what is needed",
            2,
            "a third of the noise is missing",
            noise=2 / 3,
        ),
        case(
            "FLIPHAT, pursuit, an episode's rows used twice", 2, "a second release from the same rows", fits=2
        ),
        case("FLIPHAT, pursuit, a pick that follows another", 0, of=_TWO_PICKS),
        case(
            "FLIPHAT, pursuit, a pick that follows another, noise at 2/3",
            0,
            "a third of the noise is missing",
            of=_TWO_PICKS,
            noise=2 / 3,
        ),
    ]


def _recorded(
    told: _Told, before: int, noise: float = 1.0, fits: float = 1
) -> tuple[list[StepsCall], list[StepsCall]]:
    """Return the releases of the episode after `before` others, on both sides."""
    policy = FLIPHAT(**told._asdict(), delta=_DELTA, fit=Pursuit(), first_episode=_ROUNDS)
    nothing = np.zeros((1, told.dim), np.float32)
    sides: list[list[StepsCall]] = []
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "policy"
        for _ in range(before):
            _begin(policy, nothing)
            _end(policy, None, told.dim)
        # What was released before the person came is the same on both sides.
        _begin(policy, nothing)
        policy.save(file)
        opened = file.read_bytes()
        for side in _SIDES:
            file.write_bytes(opened)
            ended = FLIPHAT.load(file)
            _end(ended, side, told.dim)
            ended.save(file)
            backup = file.read_bytes()

            def release(noise: RecordingNoise, backup: bytes = backup) -> None:
                file.write_bytes(backup)
                restored = FLIPHAT.load(file)
                record_by(restored, noise)
                restored.select(nothing)

            sides.append([recorded_steps(release).noisier(noise) for _ in range(int(fits))])
            file.unlink(missing_ok=True)
    return sides[0], sides[1]


def _begin(policy: FLIPHAT, nothing: npt.NDArray[np.float32]) -> None:
    """Play the first round of an episode, which releases the one before."""
    policy.update(policy.select(nothing), 0.0)


def _end(policy: FLIPHAT, person: tuple[float, float] | None, dim: int) -> None:
    """Play the other rounds of an episode, one of them the person's."""
    rounds = policy.remaining
    contexts = np.zeros((rounds, 1, dim), np.float32)
    rewards = np.zeros(rounds)
    if person is not None:
        # One other row leans as the first side does: uneven odds tell more of a pick. Signs are picked with
        # columns at this budget, so that nothing has to hold the sums away from zero.
        for row, (size, rewards[row]) in enumerate((person, _SIDES[0])):
            contexts[row, 0] = size * (-1.0) ** np.arange(dim)
        if dim > 2:
            # Ordinary rows, of which a pick takes off what it may explain: the next one depends on it.
            contexts[2:6, 0, :2], rewards[2:6] = np.eye(2)[[0, 0, 1, 1]], (0.3, -0.2, 0.1, 0.2)
    policy.update_batch(policy.select_batch(contexts), rewards)
