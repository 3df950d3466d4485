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


def made(name):
    """Return a table that nobody collected: for choosing rules, with labels from 0."""
    n, arms, dim, factors, apart, seed = {
        "made: 600 x 30, 2 arms": (600, 2, 30, 4, 1.2, 1),
        "made: 1800 x 64, 10 arms": (1800, 10, 64, 12, 1.6, 2),
        "made: 2300 x 18, 7 arms": (2300, 7, 18, 6, 1.8, 3),
        "made: 1300 x 9, 2 arms": (1300, 2, 9, 5, 0.9, 4),
        "made: 20000 x 9, 2 arms": (20000, 2, 9, 3, 1.8, 5),
        "made: 4000 x 12, 4 arms": (4000, 4, 12, 5, 1.5, 6),
    }[name]
    rng = np.random.default_rng(seed)
    shares = np.array([0.8, 0.2]) if n == 20000 else rng.dirichlet(np.full(arms, 20.0))
    labels = rng.choice(arms, n, p=shares)
    inner = apart * rng.normal(size=(arms, factors))[labels] + rng.normal(size=(n, factors))
    loads = rng.normal(size=(factors, dim)) * (rng.random((factors, dim)) < 0.6)
    values = inner @ loads / np.sqrt(factors) + 0.5 * rng.normal(size=(n, dim))
    skewed = rng.random(dim) < 0.4
    values[:, skewed] = np.exp(0.7 * values[:, skewed])
    values[:, rng.random(dim) < 0.1] = 0.0  # columns that say nothing
    low, high = np.percentile(values, [1, 99], axis=0)
    # A range somebody might have written down: too wide, and not around the middle.
    span = np.maximum(high - low, 1.0) * rng.uniform(1.0, 2.0, dim)
    low = low - (span - (high - low)) * rng.random(dim)
    return 2 * (values - low) / span - 1, labels


MADE = [
    "made: 600 x 30, 2 arms",
    "made: 1800 x 64, 10 arms",
    "made: 2300 x 18, 7 arms",
    "made: 1300 x 9, 2 arms",
    "made: 20000 x 9, 2 arms",
    "made: 4000 x 12, 4 arms",
]
