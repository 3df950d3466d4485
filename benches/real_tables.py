"""Tables for `benches/dense_tables.py`: real ones inside other packages, and made ones to choose rules on.

Columns of a real table are put into the ranges listed here, which are round numbers and part of this
file; none was read off labels, and no rule was chosen on these tables. digits and breast cancer are in
scikit-learn, the others in river, so nothing is downloaded.
"""

import csv
import gzip
import io
import zipfile
from pathlib import Path

import numpy as np

#: (low, high) of each column; values outside are left outside.
RANGES = {
    "breast cancer": [
        *[(8, 25), (10, 35), (50, 200), (200, 2000), (0.065, 0.15), (0.03, 0.3), (0, 0.4), (0, 0.2)],
        *[(0.1, 0.3), (0.05, 0.09), (0.1, 1.5), (0.4, 3), (0.95, 10), (8.5, 200), (0.003, 0.02)],
        *[(0.0045, 0.09), (0, 0.15), (0, 0.035), (0.01, 0.055), (0.001, 0.015), (9, 35), (15, 45), (55, 250)],
        *[(250, 3000), (0.085, 0.2), (0.05, 0.8), (0, 0.95), (0, 0.3), (0.15, 0.5), (0.055, 0.15)],
    ],
    "digits": [(0, 16)] * 64,
    "image segments": [
        *[(4, 300), (15, 250), (0, 0.15), (0, 0.15), (0, 20), (0, 85), (0, 20), (0, 150), (0, 150), (0, 150)],
        *[(0, 150), (0, 150), (-45, 5.5), (-10, 75), (-30, 20), (0, 150), (0, 1), (-3, 3)],
    ],
    "phishing": [(0, 1)] * 9,
    "shuttle": [(35, 150), (-5, 5), (75, 150), (-7, 8), (-40, 70), (-30, 35), (1, 70), (20, 150), (0, 150)],
}

_IN_RIVER = {
    "image segments": "segment.csv.zip",
    "phishing": "phishing.csv.gz",
    "shuttle": "shuttle.csv.gz",
}


def real(name):
    """Return contexts with columns in about -1..1, and labels from 0."""
    if name in _IN_RIVER:
        import river.datasets

        path = Path(river.datasets.__file__).parent / _IN_RIVER[name]
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                text = archive.read(archive.namelist()[0]).decode()
        else:
            text = gzip.decompress(path.read_bytes()).decode()
        _, *rows = csv.reader(io.StringIO(text))
        values, labels = np.array([row[:-1] for row in rows], float), [row[-1] for row in rows]
    else:
        from sklearn import datasets

        load = {"breast cancer": datasets.load_breast_cancer, "digits": datasets.load_digits}[name]
        values, labels = load(return_X_y=True)
    low, high = np.array(RANGES[name], float).T
    return 2 * (values - low) / (high - low) - 1, np.unique(labels, return_inverse=True)[1]


#: Tables that nobody collected: rows, arms, columns, factors, distance of classes, share of skewed columns,
#: how much wider than its values a column's range may be, and what the columns are. In "numbers" a range lies
#: anywhere around its column, so means are far from its middle and sizes differ; "pixels" are never below
#: zero, mostly zero, and all in one range; "answers" are one-hot.
MADE = {
    "made: 560 x 28, 2 arms": (560, 2, 28, 3, 1.1, 0.6, 3.0, "numbers"),
    "made: 700 x 14, 3 arms": (700, 3, 14, 4, 1.3, 0.5, 4.0, "numbers"),
    "made: 1300 x 9, 2 arms": (1300, 2, 9, 5, 0.9, 0.4, 2.0, "numbers"),
    "made: 2300 x 18, 7 arms": (2300, 7, 18, 6, 1.8, 0.5, 3.0, "numbers"),
    "made: 1900 x 60, 12 arms": (1900, 12, 60, 14, 1.6, 0.2, 1.5, "pixels"),
    "made: 1700 x 40, 8 arms": (1700, 8, 40, 10, 1.6, 0.2, 2.0, "pixels"),
    "made: 4000 x 12, 4 arms": (4000, 4, 12, 5, 1.5, 0.4, 2.5, "numbers"),
    "made: 3000 x 30, 5 arms": (3000, 5, 30, 6, 1.8, 0.0, 1.0, "answers"),
    "made: 1000 x 24, 5 arms": (1000, 5, 24, 5, 1.8, 0.5, 3.0, "numbers"),
}


def made(name, seed):
    """Return a table of a kind, another one for each seed: for choosing rules, with labels from 0."""
    n, arms, dim, factors, apart, skewness, wide, kind = MADE[name]
    rng = np.random.default_rng([seed, n])
    labels = rng.choice(arms, n, p=rng.dirichlet(np.full(arms, 20.0)))
    inner = apart * rng.normal(size=(arms, factors))[labels] + rng.normal(size=(n, factors))
    if kind == "answers":
        size = dim // 6
        scores = np.einsum("nf,fgs->ngs", inner, rng.normal(size=(factors, 6, size)))
        scores += rng.gumbel(size=scores.shape)
        return (scores == scores.max(axis=2, keepdims=True)).reshape(n, -1).astype(float), labels
    # With few factors all columns share them.
    loads = rng.normal(size=(factors, dim)) * (rng.random((factors, dim)) < (1.0 if factors < 4 else 0.6))
    values = inner @ loads / np.sqrt(factors) + 0.5 * rng.normal(size=(n, dim))
    if kind == "pixels":
        values = np.maximum(values + rng.normal(size=dim), 0.0) * (rng.random(dim) > 0.15)
        return 2 * np.minimum(values / max(np.percentile(values, 99.5), 1.0), 1.0) - 1, labels
    skewed = rng.random(dim) < skewness
    values[:, skewed] = np.exp(0.7 * values[:, skewed])
    values[:, rng.random(dim) < 0.05] = 0.0  # columns that say nothing
    low, high = np.percentile(values, [1, 99], axis=0)
    # A range somebody might have written down: too wide, and not around the middle.
    span = np.maximum(high - low, 1.0) * rng.uniform(1.0, wide, dim)
    low = low - (span - (high - low)) * rng.random(dim)
    return 2 * (values - low) / span - 1, labels


def census(seed, rows=150_000, arms=12):
    """Return a census-like table with known truth: one-hot answers, and each arm's chance of a reward 1.

    Answers to twelve questions with 2 to 16 choices, some far more frequent than others, are correlated
    through three hidden traits. Arms differ in how often they are rewarded at all, and in whom they suit.
    """
    rng = np.random.default_rng([seed, 15])
    traits = rng.normal(size=(rows, 3)).astype(np.float32)
    columns = []
    for choices in (16, 9, 7, 14, 6, 5, 2, 3, 8, 4, 10, 3):
        scores = traits @ rng.normal(size=(3, choices)).astype(np.float32) - 0.8 * np.arange(choices) ** 0.5
        scores += rng.gumbel(size=scores.shape)
        columns.append((scores == scores.max(axis=1, keepdims=True)).astype(np.float32))
    values = np.concatenate(columns, axis=1)
    # Answers decide, not traits: a linear rule is nearly right, and nothing hidden can be learned.
    suits = values @ rng.normal(size=(values.shape[1], arms)) / np.sqrt(len(columns))
    likes = 0.5 * rng.normal(size=arms) - 1.0
    chances = 1 / (1 + np.exp(-(likes + 1.2 * (suits - suits.mean(axis=0)))))
    return values, chances
