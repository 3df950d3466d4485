"""Every value that leaves a mechanism has noise, whatever its size, its rank and how many there are."""

import numpy as np
import pytest

from fliphat import kernels

SCALE = 1000

#: Gaps of at least 2**30 noise scales, so that the order of picks is certain: largest first.
SIZES = np.array([2**61, 2**57, 2**52, 2**47, 2**43, 2**40 + 1, 2**39, 2**35, 2**31, 2**26])


@pytest.mark.parametrize("mechanism", ["exponential", "laplace"])
@pytest.mark.parametrize("value_noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("count", [1, 5, 10])
def test_values_of_every_size_and_rank_have_the_same_noise(mechanism, value_noise, count):
    v = SIZES * np.where(np.arange(len(SIZES)) % 2, -1, 1)
    noise = np.zeros((600, count))
    for draw in noise:
        picked, values = kernels.peel(
            v, count, pick_scale=1, value_scale=SCALE, mechanism=mechanism, value_noise=value_noise
        )
        assert picked.tolist() == list(range(count))
        draw[:] = values - v[:count]
    spread = SCALE * (2**0.5 if value_noise == "laplace" else 1.0)
    # 600 draws: within 3 % of a Gaussian's spread and 5 % of a Laplace's, so five deviations are 25 %.
    np.testing.assert_allclose(noise.std(axis=0), spread, rtol=0.25)
    if count > 1:  # and each has its own draw: 600 of them correlate by 0.04 by chance
        correlations = np.corrcoef(noise.T)[~np.eye(count, dtype=bool)]
        assert np.abs(correlations).max() < 0.25
