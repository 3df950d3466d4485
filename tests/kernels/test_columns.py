"""Picks of columns outside a public set: exactly the enumerated probabilities, signs included."""

import itertools
import math

import numpy as np
import pytest

from exactness import ALPHA, picks_goodness
from fliphat import _native
from fliphat.kernels import _fits as fit_kernels
from fliphat.reference import _fits as fit_twins


def pick_many(scores, picks, scale, excluded=(), signed=False, count=10**5, seed=1):
    """Picks of many runs, coded as ``2 * column + (sign is -1)``."""
    columns, signs = np.empty((2, count, picks), np.int64)
    _native.seeded_picks(np.array(scores), scale, np.array(excluded, np.int64), signed, seed, columns, signs)
    return 2 * columns + (signs < 0)


def enumerated(scores, picks, scale, excluded=(), signed=False):
    """The probability of every ordered sequence of picks, by the definition."""
    free = [j for j in range(len(scores)) if j not in excluded]
    weight = {
        2 * j + (sign < 0): math.exp((sign * scores[j] if signed else abs(scores[j])) / scale)
        for j in free
        for sign in ((1, -1) if signed else (1,))
    }
    chances = {}
    for sequence in itertools.permutations(weight, picks):
        if len({code // 2 for code in sequence}) < picks:
            continue
        chance, left = 1.0, dict(weight)
        for code in sequence:
            chance *= left[code] / sum(left.values())
            left = {other: w for other, w in left.items() if other // 2 != code // 2}
        chances[sequence] = chance
    return chances


CASES = [
    ([0, 0, 0], 2, 1, ()),
    ([3, -3, 3, 0], 2, 2, (2,)),
    ([10, 8, -9, 4, 0], 3, 5, (1, 3)),
    ([40, -1, 0, 2], 2, 10, ()),
    ([-300, 200, 100, 0, -50], 2, 97, (1,)),
    ([5, -4], 2, 3, ()),
]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_ordered_picks_have_exactly_the_enumerated_probabilities(case, signed):
    scores, picks, scale, excluded = case
    chances = enumerated(scores, picks, scale, excluded, signed)
    assert sum(chances.values()) == pytest.approx(1)
    assert picks_goodness(pick_many(scores, picks, scale, excluded, signed), chances) > ALPHA


class TestControls:
    """What the enumeration must reject."""

    SCORES, SCALE = [10, -8, 9, 4], 5

    def test_a_scale_off_by_five_percent(self):
        chances = enumerated([100 * x for x in self.SCORES], 2, 500, (), True)
        scores = [100 * x for x in self.SCORES]
        assert picks_goodness(pick_many(scores, 2, 500, (), True, 3 * 10**5), chances) > ALPHA
        assert picks_goodness(pick_many(scores, 2, 525, (), True, 3 * 10**5), chances) < ALPHA

    def test_a_sign_that_stays_a_candidate(self):
        # Both signs drawn as if they were columns of their own: a second pick may meet the first's column.
        doubled = [x for score in self.SCORES for x in (score, -score)]
        shift = max(doubled)
        columns = pick_many([x + shift for x in doubled], 2, self.SCALE)[..., :] // 2
        again = columns[:, 0] // 2 == columns[:, 1] // 2
        assert again.any()
        kept = columns[~again]
        chances = enumerated(self.SCORES, 2, self.SCALE, (), True)
        # Dropping such runs is not the same distribution either.
        assert picks_goodness(kept, chances) < ALPHA

    def test_magnitudes_are_not_signed_scores(self):
        picks = pick_many(self.SCORES, 1, self.SCALE)
        chances = enumerated(self.SCORES, 1, self.SCALE, (), True)
        assert picks_goodness(picks, chances) < ALPHA

    def test_an_excluded_column_still_weighing_in(self):
        chances = enumerated(self.SCORES, 1, self.SCALE, (0,))
        everyone = pick_many(self.SCORES, 1, self.SCALE)
        instead = np.where(everyone == 0, 2, everyone)  # whoever was excluded gives to the next column
        assert picks_goodness(pick_many(self.SCORES, 1, self.SCALE, (0,)), chances) > ALPHA
        assert picks_goodness(instead, chances) < ALPHA


@pytest.mark.parametrize("signed", [False, True])
def test_the_twin_has_the_same_distribution(signed):
    rng = np.random.default_rng(1)
    scores = np.array([10, -8, 9, 4, 0])
    chances = enumerated(scores.tolist(), 2, 5, (2,), signed)
    twin = []
    for _ in range(20_000):
        columns, signs = fit_twins.pick_columns(scores, 2, scale=5, rng=rng, excluded=[2], signed=signed)
        twin.append(2 * columns + (signs < 0))
    assert picks_goodness(np.array(twin), chances) > ALPHA


def test_results_of_the_public_kernel():
    scores = np.arange(6) * 10**9
    assert fit_kernels.pick_columns(scores, 3, scale=1, excluded=[5, 3])[0].tolist() == [4, 2, 1]
    columns, signs = fit_kernels.pick_columns(-scores, 2, scale=1, signed=True)
    assert (columns.tolist(), signs.tolist()) == ([5, 4], [-1, -1])
    assert sorted(fit_kernels.pick_columns(np.zeros(50, int), 50, scale=9)[0]) == list(range(50))
    columns, signs = fit_kernels.pick_columns(np.zeros(50, int), 49, scale=9, excluded=[7, 7], signed=True)
    assert sorted(columns) == [j for j in range(50) if j != 7]
    assert set(signs) == {1, -1}
    assert fit_kernels.pick_columns(np.empty(0, int), 0, scale=1)[0].shape == (0,)
    two = [fit_kernels.pick_columns(np.zeros(1000, int), 5, scale=9)[0].tolist() for _ in range(2)]
    assert two[0] != two[1]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"picks": 4}, ValueError, "picks must be an integer from 0 to 3, got 4"),
        ({"picks": 2, "excluded": [0, 1, 1]}, ValueError, "picks must be an integer from 0 to 1, got 2"),
        ({"scale": 0}, ValueError, "scale must be an integer from 1"),
        ({"scale": 2**40}, ValueError, "scale must be an integer from 1"),
        ({"scale": 1.5}, TypeError, "scale must be an integer"),
        ({"excluded": [3]}, ValueError, "excluded must be columns of scores, from 0 to 2"),
        ({"excluded": [-1]}, ValueError, "excluded must be columns of scores"),
        ({"excluded": [0.5]}, TypeError, "excluded must be an array of integers"),
        ({"signed": 1}, TypeError, "signed must be True or False"),
        ({"scores": [1.0, 2.0, 3.0]}, TypeError, "scores must be an array of integers"),
        ({"scores": [[1, 2, 3]]}, ValueError, "scores must have one dimension"),
        ({"scores": [2**62, 0, 0]}, ValueError, "scores must lie strictly between"),
        ({"scores": [2**61, 0, 0], "signed": True}, ValueError, "scores must lie strictly between"),
    ],
)
def test_bad_input(arguments, error, message):
    call = {"scores": [4711, 4812, 4913], "picks": 1, "scale": 5} | arguments
    with pytest.raises(error, match=message) as caught:
        fit_kernels.pick_columns(call.pop("scores"), call.pop("picks"), **call)
    assert not any(secret in str(caught.value) for secret in ("4711", "4812", "4913"))
