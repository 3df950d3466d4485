"""A labelled data set as a bandit: one arm a class, reward 1 for the right one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fliphat import _native, arguments, kernels
from fliphat.environments.environment import NativeEnvironment, Outcome, Pairs, Rounds, row_buffer


class ClassificationBandit(NativeEnvironment):
    """Rounds drawn from a labelled data set; made by :func:`from_classification`.

    Attributes
    ----------
    classes : ndarray
        The labels, in the order of the arms.
    features : int
        p, real features of an example.

    Examples
    --------
    >>> import numpy as np
    >>> env = from_classification(np.eye(4), [0, 1, 0, 1], dim=20)
    >>> env.arms, env.features, env.play(8).rows.shape
    (2, 4, (8, 20))
    """

    def __init__(
        self, examples: npt.NDArray[np.float32], labels: npt.NDArray[Any], dim: int | None, seed: int
    ) -> None:
        self.classes, self._labels = np.unique(labels, return_inverse=True)
        self.features = examples.shape[1]
        encoded = self.features * len(self.classes)
        super().__init__(encoded if dim is None else dim, len(self.classes), seed)
        if self.dim < encoded:
            raise ValueError(
                f"dim must be at least {encoded} = {len(self.classes)} classes x {self.features} features, "
                f"got {self.dim}"
            )
        self._examples = examples
        self._padding = self.dim - encoded
        self._simulator = self._make_simulator()

    _simulator: _native.LinearWorld

    def _make_simulator(self) -> _native.LinearWorld:
        # It draws a round's noise features and nothing else: all its coefficients are zero.
        return _native.LinearWorld(
            dim=max(self._padding, 1),
            arms=self.arms,
            truth=(np.empty(0, np.int64), np.empty(0)),
            contexts="independent",
            shape=0.0,
            scale=1.0,
            reward="gaussian",
            noise_scale=0.0,
            seed=self.seed,
        )

    @property
    def truth(self) -> Pairs | None:
        """None: labels are what they are, not a linear function of the features."""
        return None

    def _people(self, first: int, rounds: int) -> npt.NDArray[np.int64]:
        """Numbers of the examples met, uniform with replacement."""
        words = _native.round_words(self.seed, first, rounds) >> np.uint64(32)
        return ((words * np.uint64(len(self._examples))) >> np.uint64(32)).astype(np.int64)

    def _means(self, people: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return np.eye(self.arms)[self._labels[people]]

    def _play(self, first: int, rounds: int, estimate: Pairs, rows: bool, out: Any) -> Outcome:
        people = self._people(first, rounds)
        columns, values = estimate
        encoded = self.dim - self._padding
        real = columns < encoded
        weights = np.zeros((self.arms, self.features))
        weights.ravel()[columns[real]] = values[real]
        # The kernel's scores are a function of the row alone, which a matrix product's are not: how rounds
        # are cut into calls must change nothing. Whichever is fewer is scored: people met, or examples.
        met = rounds < len(self._examples)
        examples = self._examples[people] if met else self._examples
        scores = np.zeros((len(examples), self.arms))
        for arm in range(self.arms if len(examples) else 0):
            scores[:, arm] = kernels.score(examples, weights[arm])
        offsets = ((scores if met else scores[people]).ravel(), self._means(people).ravel())
        noise = np.empty((rounds, max(self._padding, 1)), np.float32) if rows else None
        rest = (np.ascontiguousarray(columns[~real] - encoded), np.ascontiguousarray(values[~real]))
        arms, rewards, regret = self._simulator.play(first, rounds, rest, noise, offsets)
        if noise is None:
            return Outcome(arms, rewards, regret, None)
        kept = row_buffer(out, rounds, self.dim)
        kept[:, :encoded] = 0
        blocks = kept[:, :encoded].reshape(rounds, self.arms, self.features)
        blocks[np.arange(rounds), arms] = self._examples[people]
        kept[:, :encoded] = blocks.reshape(rounds, encoded)
        kept[:, encoded:] = noise[:, : self._padding]
        return Outcome(arms, rewards, regret, kept)

    def _draw(self, first: int, rounds: int) -> Rounds:
        people = self._people(first, rounds)
        noise = np.empty((rounds, self.arms, max(self._padding, 1)), np.float32)
        self._simulator.draw(first, noise)
        contexts = np.zeros((rounds, self.arms, self.dim), np.float32)
        for arm in range(self.arms):
            start = arm * self.features
            contexts[:, arm, start : start + self.features] = self._examples[people]
        contexts[:, :, self.dim - self._padding :] = noise[:, :, : self._padding]
        return Rounds(contexts, self._means(people), np.zeros(rounds), False)


def from_classification(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    dim: int | None = None,
    standardize: bool = True,
    seed: int = 0,
) -> ClassificationBandit:
    """Turn a labelled data set into a bandit: one arm a class, reward 1 for the right class and else 0.

    A round meets an example, uniformly with replacement. The context of arm k is the block encoding: the
    example's p features in columns ``k p .. (k+1) p``, zeros in the other classes' blocks, and from column
    ``K p`` on independent standard normal noise features, which no good policy uses.

    Parameters
    ----------
    X : array_like, shape (examples, p)
        Finite.
    y : array_like, shape (examples,)
        Labels; at least two classes.
    dim : int, optional
        d, at least K p; noise features make up the difference. By default there are none.
    standardize : bool, default True
        Give every feature of X mean 0 and variance 1 (constant features become 0).
    seed : int, default 0

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> env = from_classification(*load_digits(return_X_y=True), dim=1000)
    >>> env.arms, env.features, round(float(env.play(20_000, rows=False).rewards.mean()), 1)
    (10, 64, 0.1)
    """
    examples, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
    if examples.ndim != 2 or 0 in examples.shape:
        raise ValueError(f"X must have two dimensions, none of them empty, got shape {examples.shape}")
    if labels.shape != examples.shape[:1]:
        raise ValueError(f"y must have one label for each row of X, got shape {labels.shape}")
    if not np.all(np.isfinite(examples)):
        raise ValueError("X must be finite")
    if len(np.unique(labels)) < 2:
        raise ValueError("y must have at least two classes")
    if standardize:
        spread = examples.std(axis=0)
        examples = (examples - examples.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    if dim is not None:
        dim = arguments.integer("dim", dim, 1, 2**31 - 1)
    return ClassificationBandit(examples.astype(np.float32), labels, dim, seed)
