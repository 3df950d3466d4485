import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fliphat import _native, kernels, reference
from fliphat.kernels import _niht
from fliphat.privacy.calibration import calibrate
from matrices import csr, problem

PUBLIC = {"sparsity": 5, "iterations": 3, "step_size": 0.5, "l1_radius": 4.0, "clip": 2.0}
NOISE = {"pick_scale": 500_000, "value_scale": 400_000}


def truth(seed, n=2048, d=60, dtype=np.float64, sigma=0.1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(dtype)
    beta = np.zeros(d)
    beta[:5] = rng.choice([-1, 1], 5) * rng.uniform(0.5, 1, 5)
    return X, X @ beta + sigma * rng.standard_normal(n), beta


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(20, 200),
    d=st.integers(1, 30),
    step_size=st.sampled_from([0.1, 0.5]),
    l1_radius=st.sampled_from([0.5, 4.0, 100.0]),
    data=st.data(),
)
def test_without_noise_and_clipping_it_is_the_textbooks_algorithm(seed, n, d, step_size, l1_radius, data):
    # Rounding to the lattice moves a coordinate by at most half a step for each row, on average
    # step_size * clip * 2**-16 an iteration. That moves the residuals of the next one, and by that much a
    # coordinate near the threshold may be swapped: so each iterate is compared with the textbook's step from
    # the kernel's own previous iterate.
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = X[:, 0] + 0.1 * rng.standard_normal(n)
    sparsity = data.draw(st.integers(1, d))
    clip = 1e3
    public = {"sparsity": sparsity, "iterations": 4, "step_size": step_size, "l1_radius": l1_radius}
    iterates = _niht.fit(X, y, **public, clip=clip, pick_scale=1, value_scale=1, noiseless=True)
    tolerance = step_size * clip * 2**-16
    theta = np.zeros(d)
    for iterate in iterates:
        v = theta - step_size * X.T @ (X @ theta - y) / n
        kept = np.flatnonzero(iterate)
        threshold = np.sort(np.abs(v))[::-1][sparsity - 1]
        # Kept coordinates are among the largest, up to the tolerance.
        assert (np.abs(v[kept]) >= threshold - 2 * tolerance).all()
        unprojected = np.zeros(d)
        chosen = kept if len(kept) == sparsity else np.argsort(-np.abs(v), kind="stable")[:sparsity]
        unprojected[chosen] = v[chosen]
        expected = reference.project_l1(unprojected, l1_radius)
        # The projection moves by at most as much as what is projected, in each coordinate twice over.
        assert np.abs(iterate - expected).max() <= 2 * tolerance * (1 + 1e-9)
        theta = iterate


def test_without_noise_the_whole_path_follows_the_textbook():
    X, y, _ = truth(0)
    public = {"sparsity": 5, "iterations": 6, "step_size": 0.5, "l1_radius": 100.0}
    clip = 64.0
    iterates = _niht.fit(X, y, **public, clip=clip, pick_scale=1, value_scale=1, noiseless=True)
    for m, (ours, textbook) in enumerate(
        zip(iterates, reference.iterative_hard_thresholding(X, y, **public), strict=True), 1
    ):
        assert np.abs(ours - textbook).max() <= m * 0.5 * clip * 2**-16


def test_clipping_is_noticed():
    # The control: with an active clip the path is another one.
    X, y, _ = truth(0)
    public = {"sparsity": 5, "iterations": 6, "step_size": 0.5, "l1_radius": 100.0}
    ours = _niht.fit(X, y, **public, clip=0.5, pick_scale=1, value_scale=1, noiseless=True)[-1]
    textbook = reference.iterative_hard_thresholding(X, y, **public)[-1]
    assert np.abs(ours - textbook).max() > 0.01


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("mechanism", ["exponential", "laplace"])
@pytest.mark.parametrize("value_noise", ["gaussian", "laplace"])
def test_dense_sparse_threads_and_row_order_change_no_bit(loss, mechanism, value_noise):
    X, y, theta = problem(3, 700, 40, labels=loss == "logistic")
    options = PUBLIC | NOISE | {"loss": loss, "mechanism": mechanism, "value_noise": value_noise}
    options |= {"start": theta, "noise": _native.SeededNoise(7, 1)}
    expected = _niht.fit(X, y, **options)
    assert len(expected) == 3
    order = np.random.default_rng(0).permutation(len(y))
    others = [
        _niht.fit(X, y, **options, threads=2),
        _niht.fit(csr(X), y, **options),
        _niht.fit(csr(X, np.int64), y, **options, threads=3),
        _niht.fit(X[order], y[order], **options),
    ]
    for other in others:
        np.testing.assert_array_equal(other, expected)
    for iterate in expected:
        assert np.count_nonzero(iterate) <= 5
        assert np.abs(iterate).sum() <= 4.0 * (1 + 1e-12)


def test_missing_rewards_are_zero_rows_and_still_counted():
    X, y, _ = truth(1)
    present = np.arange(len(y)) % 2 == 0
    quiet = {"pick_scale": 1, "value_scale": 1, "noiseless": True}
    half = _niht.fit(X, y, **PUBLIC | quiet, present=present)
    zeroed = _niht.fit(X * present[:, None], y, **PUBLIC | quiet)
    np.testing.assert_array_equal(half, zeroed)
    # n is the public number of rows, so the first step is half as long as on the present rows alone.
    alone = _niht.fit(X[present], y[present], **PUBLIC | {"iterations": 1} | quiet)[0]
    np.testing.assert_allclose(half[0], alone / 2, atol=1e-4)


def test_a_fit_on_sums_that_python_brings_is_the_same_fit():
    X, y, start = problem(5, 300, 20)
    start /= np.abs(start).sum()
    settings_ = _niht.fit_settings(20, **PUBLIC | NOISE)
    expected = _niht.fit(X, y, **PUBLIC | NOISE, start=start, noise=_native.SeededNoise(3, 9))[-1]

    def sums_at(columns, values):
        theta = np.zeros(20)
        theta[columns] = values
        parts = (slice(100), slice(100, 300))
        total = sum(kernels.clipped_gradient(X[part], y[part], theta, PUBLIC["clip"])[0] for part in parts)
        return total.tobytes()

    found = _native.niht_fit_sums(sums_at, start, 300, settings_, _native.SeededNoise(3, 9))
    np.testing.assert_array_equal(found, expected)


def test_sums_that_rows_cannot_have_are_refused_and_exceptions_pass_through():
    settings_ = _niht.fit_settings(20, **PUBLIC | NOISE)

    def fit(sums_at):
        return _native.niht_fit_sums(sums_at, np.zeros(20), 300, settings_)

    assert fit(lambda columns, values: np.full(20, 2**15 * 300).tobytes()).shape == (20,)
    with pytest.raises(ValueError, match="sums must be sums of rows"):
        fit(lambda columns, values: np.full(20, 2**15 * 300 + 1).tobytes())
    with pytest.raises(ValueError, match="one value for each column"):
        fit(lambda columns, values: bytes(8 * 19))
    with pytest.raises(TypeError):
        fit(lambda columns, values: np.zeros(20))
    with pytest.raises(KeyboardInterrupt):
        fit(lambda columns, values: (_ for _ in ()).throw(KeyboardInterrupt))


def test_noise_is_fresh_in_every_call_and_every_iteration():
    X, y, _ = truth(2)
    first, second = (kernels.niht(X, y, **PUBLIC | NOISE) for _ in range(2))
    assert (first != second).any()
    # Two iterations on rows without rewards: values are pure noise, and must not repeat.
    absent = np.zeros(len(y), bool)
    one, two = _niht.fit(
        X, y, **PUBLIC | {"iterations": 2, "l1_radius": 1e6, "sparsity": 60} | NOISE, present=absent
    )
    unit = 0.5 * 2.0 / 2**15 / len(y)
    noise_one, noise_two = one / unit, two / unit - one / unit
    assert np.abs(np.corrcoef(noise_one, noise_two)[0, 1]) < 0.6
    assert (noise_one != noise_two).all()


@pytest.mark.parametrize("mechanism", ["exponential", "laplace"])
@pytest.mark.parametrize("value_noise", ["gaussian", "laplace"])
def test_equal_in_distribution_to_the_twin(mechanism, value_noise):
    X, y, _ = truth(3, n=256, d=12)
    public = PUBLIC | {"iterations": 2, "sparsity": 3}
    scales = {"pick_scale": 700_000, "value_scale": 700_000}
    rng = np.random.default_rng(0)
    options = public | scales | {"mechanism": mechanism, "value_noise": value_noise}
    ours = np.array([_niht.fit(X, y, **options, noise=_native.SeededNoise(5, i))[-1] for i in range(1500)])
    twin = np.array([reference.niht(X, y, **options, rng=rng) for _ in range(1500)])
    for j in range(12):
        assert stats.ks_2samp(ours[:, j], twin[:, j]).pvalue > 1e-5
    # The control: a third less noise is noticed.
    less = options | {"pick_scale": 460_000, "value_scale": 460_000}
    quiet = np.array([_niht.fit(X, y, **less, noise=_native.SeededNoise(6, i))[-1] for i in range(1500)])
    assert min(stats.ks_2samp(quiet[:, j], twin[:, j]).pvalue for j in range(12)) < 1e-5


def per_round_regret(theta, beta, arms=3, rounds=4000, seed=0):
    contexts = np.random.default_rng(seed).standard_normal((rounds, arms, len(beta)), np.float32)
    means = contexts @ beta.astype(np.float32)
    chosen = kernels.select_arms(contexts, theta, np.random.default_rng(1))
    return float((means.max(1) - means[np.arange(rounds), chosen]).mean())


def test_the_estimate_is_good_at_the_designs_setting():
    # d = 400, n = 2048, epsilon = 1: mean regret a round at most 0.005, where random play has about 1.29.
    public = {"sparsity": 10, "iterations": 2, "step_size": 1.0, "l1_radius": 5.0, "clip": 2.0}
    noise = calibrate(epsilon=1.0, delta=0.01, rows=2048, dim=400, **public)
    regrets = []
    for seed in range(10):
        X, y, beta = truth(seed, d=400, dtype=np.float32)
        theta = _niht.fit(
            X,
            y,
            **public,
            pick_scale=noise.pick_scale,
            value_scale=noise.value_scale,
            noise=_native.SeededNoise(seed, 0),
        )[-1]
        regrets.append(per_round_regret(theta, beta))
    assert np.mean(regrets) <= 0.005
    assert per_round_regret(np.zeros(400), beta) > 1


X0, Y0, _ = problem(0, 8, 3)
GOOD = {"X": X0, "y": Y0} | PUBLIC | {"sparsity": 2} | NOISE


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"sparsity": 4}, ValueError, "sparsity must be an integer from 1 to 3, got 4"),
        ({"sparsity": 0}, ValueError, "sparsity must be an integer from 1 to 3, got 0"),
        ({"iterations": 0}, ValueError, "iterations must be an integer from 1 to 10000, got 0"),
        ({"step_size": 0.0}, ValueError, "step_size must be a finite number above 0, got 0.0"),
        ({"l1_radius": -1.0}, ValueError, "l1_radius must be a finite number above 0, got -1.0"),
        ({"clip": 0.0}, ValueError, "clip must be a number from"),
        ({"pick_scale": 0}, ValueError, r"pick_scale must be an integer from 1 to 1099511627775, got 0"),
        ({"value_scale": 2**40}, ValueError, "value_scale must be an integer from 1 to"),
        ({"pick_scale": 1.5}, TypeError, "pick_scale must be an integer, got float"),
        ({"mechanism": "flip"}, ValueError, "mechanism must be one of 'exponential', 'laplace', got 'flip'"),
        ({"value_noise": "none"}, ValueError, "value_noise must be one of"),
        ({"loss": "logistic"}, ValueError, "y must be 0 or 1 for the logistic loss"),
        ({"start": np.zeros(4)}, ValueError, r"start must have shape \(3,\)"),
        ({"start": [np.nan, 0, 0]}, ValueError, "theta must be finite"),
        ({"y": Y0[:7]}, ValueError, r"y must have shape \(8,\)"),
        ({"X": X0 * np.inf}, ValueError, "X must be finite"),
        ({"l1_radius": 1e15}, ValueError, r"l1_radius / unit \+ rows \* 2\*\*15 must be below 2\*\*62"),
        ({"step_size": 1e-300}, ValueError, r"l1_radius / unit \+ rows \* 2\*\*15 must be below 2\*\*62"),
    ],
)
def test_bad_input(change, error, message):
    with pytest.raises(error, match=message):
        kernels.niht(**GOOD | change)
