"""A size of contexts far from what was told is asked for twice before it is believed."""

import dataclasses

import numpy as np
import pytest

from fliphat.fit.pursuit.known import Given, KnownSparse, ReleasedMeans
from fliphat.fit.pursuit.learning import learn
from fliphat.fit.pursuit.plan import begin, open_episode

NOISE = (0.7, 0.1, 0.1)
GIVEN = Given(dim=50, sparsity=5, mu=0.5, context_scale=1.0, reward_scale=1.0)


def after(known, octaves, column=None, given=GIVEN):
    """Return what is known after an episode whose whole rows said `octaves`."""
    episode = open_episode(known, given)
    m = len(episode.whiten)
    asked = "rows" in episode.shares
    released = ReleasedMeans(
        columns=np.arange(episode.picks) + (len(known.columns) if column is None else column),
        units=np.ones(episode.picks),
        signs=np.ones(episode.picks, np.int64),
        gradient=np.full(m, 0.1),
        gradient_noise=0.05,
        moments=np.eye(m) * episode.constant**2,
        moment_noise=0.1 * episode.constant**2,
        size=0.5,
        size_noise=0.05,
        rows=(octaves, 0.0, 0.0) if asked else None,
        rows_noise=NOISE if asked else None,
    )
    return learn(known, given, episode, released), asked


def test_an_ordinary_size_is_asked_for_once():
    known, asked = after(begin(GIVEN), 0.4)
    assert asked
    assert not known.doubted
    assert 0.8 < known.context_size < 1.2
    assert not after(known, None)[1]


@pytest.mark.parametrize("sign", [-1, 1])
def test_what_the_second_measure_does_not_confirm_is_forgotten(sign):
    known, _ = after(begin(GIVEN), sign * 2.5)
    assert known.doubted
    assert known.context_size == 2.0 ** (2.5 * sign)
    known, asked = after(known, -sign * 2.5)
    assert asked
    assert not known.doubted
    assert known.context_size == 1.0
    assert len(known.columns) == 0
    assert known.episodes == known.fits == 2
    assert not after(known, None)[1]


def test_clicks_are_forgotten_as_well():
    given = Given(
        dim=50,
        sparsity=5,
        mu=0.5,
        context_scale=1.0,
        reward_scale=0.5,
        reward_range=(0.0, 1.0),
        loss="logistic",
    )
    known, _ = after(begin(given), 2.5, given=given)
    known, _ = after(known, -2.5, given=given)
    assert len(known.columns) == 0 and known.theta.shape == (1,) and known.covariance.shape == (1, 1)


@pytest.mark.parametrize("sign", [-1, 1])
def test_what_the_second_measure_confirms_stays(sign):
    known, _ = after(begin(GIVEN), sign * 3.2)
    known, asked = after(known, sign * 0.2)
    assert asked
    assert not known.doubted
    assert known.context_size == pytest.approx(2 ** (sign * 3.3))
    assert len(known.columns) > 0


def test_a_record_keeps_the_doubt():
    known, _ = after(begin(GIVEN), -2.0)
    again = KnownSparse.from_record(known.to_record())
    assert again.doubted
    assert again.octaves == known.octaves
    assert "rows" in open_episode(again, GIVEN).shares


def test_residuals_are_not_taken_for_larger_than_rewards_in_a_range_can_be():
    # Columns that arms no longer show are forgotten again; what is not known of them is no reason to expect
    # residuals beyond the range, which would make clips, noise and coefficients larger still.
    def residual_size(**changes):
        given = dataclasses.replace(GIVEN, reward_range=(0.0, 1.0), reward_scale=0.5)
        given = dataclasses.replace(given, constants=dataclasses.replace(given.tuning, **changes))
        known, _ = after(begin(given), 0.0, given=given)
        unsure = dataclasses.replace(known, covariance=known.covariance + 4 * np.eye(len(known.theta)))
        return after(unsure, None, given=given)[0].residual_size

    assert residual_size() == 0.5
    assert residual_size(most_residual=0.0) > 0.55
