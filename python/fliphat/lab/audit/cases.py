"""What is audited: the package's mechanisms on inputs chosen to hurt, and broken ones that must be caught.

Neighbouring inputs differ in one row, and as much as a row can differ: on one side it pushes the first
coordinate up and the others down, on the other side the reverse. The other rows hold all coordinates away
from zero, where a push shows in the magnitudes too. Outputs are looked at through linear scores close to
the log-likelihood ratio.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fliphat import _native, paper
from fliphat.kernels import _niht
from fliphat.lab.audit.bounds import Counts
from fliphat.privacy.accounting import compose, epsilon_from_rho, exponential_pick_zcdp
from fliphat.privacy.calibration import ROW_SENSITIVITY, NoiseScales, calibrate
from fliphat.privacy.priced import Part, PickNoise, VectorNoise, fit_scales

_BINS = 256
ROWS, DIM, SPARSITY = 8, 4, 2
#: Of every fit: steps and a radius that hide nothing.
_FIT: Final[dict[str, Any]] = {"step_size": 1.0, "l1_radius": 1e6, "clip": 1.0}
PUSH = ROW_SENSITIVITY // 2

#: A view: weights of picks (slot, rank, column), weights of values (slot, column), range and number of bins.
View = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float, float, int]

#: Runs a mechanism some times on each side, on some threads, and counts what each view shows.
Counter = Callable[[int, int, int | None], list[Counts]]


@dataclass(frozen=True)
class Case:
    """A mechanism, its neighbouring inputs and the claim that is put to the test."""

    name: str
    claimed_epsilon: float
    delta: float
    count: Counter
    #: Why an audit must refute the claim; None for the package's own mechanisms.
    broken: str | None = None
    #: How many times slower than the native cases a run is: it gets that many fewer.
    cost: int = 1


def mechanism_cases() -> list[Case]:
    """Return the package's mechanisms first, then the controls."""
    return [
        _peel("peel, exponential", 1.0, 0.01, mechanism="exponential"),
        _peel("peel, exponential, pure", 1.0, 0.0, mechanism="exponential"),
        _peel("peel, laplace", 1.0, 0.01, mechanism="laplace"),
        _peel("peel, laplace, pure", 1.0, 0.0, mechanism="laplace"),
        _priced("one pick and its value, exact price", 1.0),
        _fit("niht, M = 1", iterations=1),
        _fit("niht, M = 3, every iterate", iterations=3),
        _fit("niht, M = 3, logistic", iterations=3, loss="logistic"),
        _repeated("niht, M = 2, looking for repeated noise", reuse=False),
        _priced("one pick and its value, noise at 9/10", 0.9, "a tenth of the noise is missing"),
        _paper("the paper's constants, x_max = 3.46"),
        _fit("niht, M = 3, noise scale / 4", iterations=3, divide=4, broken="a quarter of the noise"),
        _repeated("niht, M = 2, the same noise reused", reuse=True),
        _permute_and_flip("50 permute-and-flip picks, charged as exponential"),
    ]


def _signs(d: int) -> npt.NDArray[np.float64]:
    signs = np.full(d, -1.0)
    signs[0] = 1.0
    return signs


def _noise(epsilon: float, delta: float, iterations: int, mechanism: str = "exponential") -> NoiseScales:
    shape: dict[str, Any] = {"rows": ROWS, "dim": DIM, "sparsity": SPARSITY, "iterations": iterations}
    return calibrate(epsilon=epsilon, delta=delta, **shape, **_FIT, mechanism=mechanism)


def _peel(name: str, epsilon: float, delta: float, mechanism: str) -> Case:
    noise = _noise(epsilon, delta, 1, mechanism)
    base = (ROWS - 1) * PUSH
    inputs = [(base + side * PUSH * _signs(DIM)).astype(np.int64) for side in (1, -1)]
    views = push_views(1, noise.pick_scale, noise.value_scale, unit=1.0, base=base)

    def count(runs: int, threads: int, seed: int | None) -> list[Counts]:
        scales = noise.pick_scale, noise.value_scale, mechanism, noise.value_noise
        return _native.audit_peel((inputs[0], inputs[1]), SPARSITY, *scales, views, runs, threads, seed)

    return Case(name, epsilon, delta, count)


def _priced(name: str, share: float, broken: str | None = None) -> Case:
    """One pick of two and its value, with a share of the noise that the exact price asks for.

    The price is that of the best adversary, and these inputs come close to it: the first score leads by about
    one scale, and the person moves the odds by all that is allowed.
    """
    epsilon, delta = 1.0, 0.2
    shift = ROW_SENSITIVITY
    template = (PickNoise(shift, 10**9), VectorNoise(Part(shift**2, 2 * 10**9)))
    pick, value = fit_scales(template, epsilon=epsilon, delta=delta).noise
    assert isinstance(pick, PickNoise)
    assert isinstance(value, VectorNoise)
    picks, values = int(pick.scale * share), int(value.parts[0].sigma * share)
    signs = np.array([1.0, -1.0])
    middle = 4 * shift + signs * (pick.scale // 2)
    inputs = [(middle + side * (shift // 2) * signs).astype(np.int64) for side in (1, -1)]
    spread = shift / picks + (6 + shift / values) * shift / values
    score = (signs * (shift / picks - shift * middle / values**2)).reshape(1, 1, 2)
    views: list[View] = [(score, (signs * shift / values**2).reshape(1, 2), -spread, spread, _BINS)]

    def count(runs: int, threads: int, seed: int | None) -> list[Counts]:
        pair = (inputs[0], inputs[1])
        return _native.audit_peel(
            pair, 1, picks, values, "exponential", "gaussian", views, runs, threads, seed
        )

    return Case(name, epsilon, delta, count, broken)


def push_views(slots: int, pick_scale: int, value_scale: int, unit: float, base: float) -> list[View]:
    """Scores of the picks alone, of the values alone, and of both weighed as the likelihood weighs them."""
    shape, signs = (slots, SPARSITY, DIM), _signs(DIM)
    picks_only = np.broadcast_to(signs, shape).copy()
    values_only = np.zeros((slots, DIM))
    values_only[-1] = signs / (unit * value_scale)
    # The log-likelihood ratio of a value is its distance from the middle of the two sides, times the shift,
    # by the variance; that of a pick is the shift by the scale.
    pick_part = np.zeros(shape)
    pick_part += signs * ROW_SENSITIVITY / pick_scale
    pick_part[-1] -= signs * ROW_SENSITIVITY * base * slots / value_scale**2
    value_part = np.zeros((slots, DIM))
    value_part[-1] = signs * ROW_SENSITIVITY / (unit * value_scale**2)
    reach = SPARSITY * (slots * (base + PUSH) / value_scale + 6 * slots**0.5)
    spread = SPARSITY * slots * ROW_SENSITIVITY * (1 / pick_scale + 6 / value_scale)
    count = slots * SPARSITY + 0.5
    return [
        (picks_only, np.zeros((slots, DIM)), -count, count, 2 * slots * SPARSITY + 1),
        (np.zeros(shape), values_only, -reach, reach, _BINS),
        (pick_part, value_part, -spread, spread, _BINS),
    ]


Side = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


def pushed_sides(loss: str) -> tuple[Side, Side]:
    """Rows whose gradients are clipped to full pushes whatever the estimate is."""
    size = 1e9 if loss == "squared" else 1e300
    X = np.full((ROWS, DIM), size)
    y = np.full(ROWS, 1e30 if loss == "squared" else 1.0)
    sides = []
    for sign in (1, -1):
        rows = X.copy()
        rows[0] = sign * size * _signs(DIM)
        sides.append((rows, y))
    return sides[0], sides[1]


def _fit(
    name: str, iterations: int, divide: int = 1, loss: str = "squared", broken: str | None = None
) -> Case:
    noise = _noise(1.0, 0.01, iterations)
    picks, values = noise.pick_scale // divide, noise.value_scale // divide
    scales: dict[str, Any] = {"pick_scale": picks, "value_scale": values}
    settings = _niht.fit_settings(DIM, sparsity=SPARSITY, iterations=iterations, loss=loss, **scales, **_FIT)
    views = push_views(iterations, picks, values, unit=1 / (2**15 * ROWS), base=(ROWS - 1) * PUSH)
    sides = pushed_sides(loss)

    def count(runs: int, threads: int, seed: int | None) -> list[Counts]:
        return _native.audit_niht(sides, settings, False, views, runs, threads, seed)

    return Case(name, 1.0, 0.01, count, broken)


def _repeated(name: str, reuse: bool) -> Case:
    # One coordinate, two iterations. A row that pushes in both, or only in the second: with fresh noise
    # that is hidden, with the same noise twice the second value less twice the first is free of noise.
    fit = {"sparsity": 1, "iterations": 2, **_FIT}
    noise = calibrate(epsilon=1.0, delta=0.01, rows=ROWS, dim=1, **fit)
    settings = _niht.fit_settings(1, pick_scale=noise.pick_scale, value_scale=noise.value_scale, **fit)
    X, y = np.full((ROWS, 1), 1e9), np.full(ROWS, 1e30)
    idle = y.copy()
    idle[0] = 0.0
    unit = 1 / (2**15 * ROWS)
    reach = 16 * noise.value_scale * unit
    views: list[View] = [
        (np.zeros((2, 1, 1)), np.array([[-2.0], [1.0]]), -reach, reach, 4001),
        (np.zeros((2, 1, 1)), np.array([[0.0], [1.0]]), -reach, reach, _BINS),
    ]

    def count(runs: int, threads: int, seed: int | None) -> list[Counts]:
        return _native.audit_niht(((X, y), (X, idle)), settings, reuse, views, runs, threads, seed)

    return Case(name, 1.0, 0.01, count, "noise that repeats cancels out" if reuse else None)


def _paper(name: str) -> Case:
    x_max, d, eta, R = 3.46, 10, 1e-4, 1.0
    B = 2 * R  # R + x_max b_max with b_max = R / x_max
    X, y = np.zeros((ROWS, d)), np.zeros(ROWS)
    X[0] = x_max  # within the bound that the paper asks for
    xi = eta * B / ROWS * 2 * math.sqrt(3 * d * math.log(100))
    push = 2 * eta * x_max * R / ROWS / xi  # of each coordinate, up or down, in noise scales
    edges = np.linspace(-d * push, d * push, _BINS + 1)

    def totals(reward: float, runs: int, rng: np.random.Generator | None) -> npt.NDArray[np.uint64]:
        y[0] = reward
        # A radius that does not bind: projecting would only hide what is released before it.
        public: Any = {"s": d, "epsilon": 1.0, "delta": 0.01, "M": 1, "R": R, "B": B, "eta": eta, "C": 1e6}
        released = np.array([paper.n_iht(X, y, rng=rng, **public) for _ in range(runs)]) / xi
        # Weighed as the likelihood of Laplace noise does: beyond the push, more of it tells nothing.
        sums = np.clip(released, -push, push).sum(axis=1).clip(edges[0], edges[-1])
        return np.histogram(sums, edges)[0].astype(np.uint64)

    def count(runs: int, threads: int, seed: int | None) -> list[Counts]:
        rng = None if seed is None else np.random.default_rng(seed)
        return [(totals(R, runs, rng), totals(-R, runs, rng))]

    return Case(name, 1.0, 0.01, count, "its noise is at least 13.8 times too small", cost=64)


def _permute_and_flip(name: str) -> Case:
    picks, delta, scale = 50, 0.01, 10 * ROW_SENSITIVITY
    charged = compose([exponential_pick_zcdp(ROW_SENSITIVITY, scale)] * picks)
    # The second score is level with the first, or two sensitivities below it.
    scores = [[0, 0], [ROW_SENSITIVITY, -ROW_SENSITIVITY]]
    views: list[View] = [(np.zeros((1, 1, 1)), np.ones((1, 1)), -0.5, picks + 0.5, picks + 1)]

    def count(runs: int, threads: int, seed: int | None) -> list[Counts]:
        return _native.audit_permute_and_flip(scores, scale, picks, views, runs, threads, seed)

    return Case(name, epsilon_from_rho(charged, delta), delta, count, "it is not bounded-range")
