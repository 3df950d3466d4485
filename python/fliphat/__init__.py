"""Private decisions on high-dimensional data.

`fliphat.FLIPHAT` is the policy where few of many columns matter, `fliphat.PrivateLinear` the one where all
may. `fliphat.PrivateSparseRegressor` and `fliphat.PrivateSparseClassifier` fit
sparse models with proven privacy.
`fliphat.simulate` plays policies on a public or pilot table.
`fliphat.plan` says beforehand what a policy will be able to learn, and when.
`fliphat.kernels` has the fast kernels, `fliphat.reference` their NumPy twins.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fliphat import kernels, reference
from fliphat._native import VERSION as __version__

if TYPE_CHECKING:
    from fliphat.fit.options import Iht, Pursuit
    from fliphat.lab.planning import plan
    from fliphat.lab.tables import simulate
    from fliphat.policies import FLIPHAT, PrivateLinear, Store
    from fliphat.regression import PrivateSparseClassifier, PrivateSparseRegressor

__all__ = [
    "FLIPHAT",
    "Iht",
    "PrivateLinear",
    "PrivateSparseClassifier",
    "PrivateSparseRegressor",
    "Pursuit",
    "Store",
    "__version__",
    "kernels",
    "plan",
    "reference",
    "simulate",
]

# Imported when first asked for: the policy imports SQLite, the estimators scikit-learn where it is installed,
# plans SciPy.
_LAZY = {
    "FLIPHAT": "fliphat.policies",
    "Iht": "fliphat.fit.options",
    "PrivateLinear": "fliphat.policies",
    "Pursuit": "fliphat.fit.options",
    "PrivateSparseClassifier": "fliphat.regression",
    "PrivateSparseRegressor": "fliphat.regression",
    "Store": "fliphat.policies",
    "plan": "fliphat.lab.planning",
    "simulate": "fliphat.lab.tables",
}


_ROOMS = ("contexts", "environments", "evaluation")


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_LAZY[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *_LAZY, *_ROOMS})
