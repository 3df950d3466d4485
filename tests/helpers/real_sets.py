"""Five tables that nobody here made, as columns: two from scikit-learn, three from inside river's wheel."""

import csv
import gzip
import io
import zipfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

NAMES = ("breast cancer", "digits", "image segments", "phishing", "shuttle")

_RIVER = {
    "image segments": ("segment.csv.zip", "category"),
    "phishing": ("phishing.csv.gz", "is_phishing"),
    "shuttle": ("shuttle.csv.gz", "anomaly"),
}


def load(name: str) -> dict[str, Any]:
    """Return the columns of a set; its classes are in the column "label"."""
    if name in _RIVER:
        return _from_river(*_RIVER[name])
    from sklearn.datasets import load_breast_cancer, load_digits

    X, y = {"breast cancer": load_breast_cancer, "digits": load_digits}[name](return_X_y=True)
    return {**{f"x{i}": X[:, i] for i in range(X.shape[1])}, "label": y}


def _from_river(file: str, label: str) -> dict[str, Any]:
    found = find_spec("river")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("this set is inside river's wheel: pip install 'fliphat[compare]'")
    # Read from the file alone: importing river takes seconds and a data frame library.
    path = Path(found.origin).parent / "datasets" / file
    if file.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            text = archive.read(archive.namelist()[0]).decode()
    else:
        text = gzip.decompress(path.read_bytes()).decode()
    header, *rows = csv.reader(io.StringIO(text))
    columns: dict[str, Iterable[str]] = dict(zip(header, zip(*rows, strict=True), strict=True))
    labels = np.asarray(columns.pop(label))
    return {**{name: np.asarray(values, np.float64) for name, values in columns.items()}, "label": labels}
