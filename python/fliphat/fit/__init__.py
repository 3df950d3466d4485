"""The private fit: one room for the bandit, the regression and Dask.

| file | what it holds |
|---|---|
| `defaults` | every number that is chosen for the user |
| `settings` | the public numbers of a policy's fits, checked once |
| `plan` | one fit, decided before its rows are read, around one calibrated noise object |
| `run` | hard thresholding of a plan: private rows in, public estimate out |
| `known` | what has been released so far: public |
| `base` | the interface between a policy's engine and its fit |
| `pursuit` | a few new columns an episode and what is not known of the public ones: a policy's default fit |
| `model` | what pursuit knows and how it learns: public |
| `tuning`, `kept_tuning` | its constants, and those that stores keep |
| `release`, `noise` | the one release, native, and its three types of noise |
| `statistics` | noisy sums of second moments, and when they are released |
| `iht` | noisy iterative hard thresholding in a policy: a fit an episode |
| `dense/` | all columns, coefficients for each arm: `PrivateLinear`'s, with `arms` |
| `one_fit` | the same in a regression: one fit |

Data flows one way: settings and what is known make a plan, the plan and the rows make an estimate. What plans
a fit is never given any.
"""

from __future__ import annotations

from typing import Any, Final

from fliphat.fit.base import Fit
from fliphat.fit.dense import Dense, DenseSettings
from fliphat.fit.iht import IhtFit
from fliphat.fit.options import PerEpisode
from fliphat.fit.pursuit import PursuitFit
from fliphat.fit.settings import EngineSettings, Settings

__all__ = ["make_fit", "read_settings"]

_FITS: Final[dict[str, Any]] = {"iht": IhtFit, "pursuit": PursuitFit, "dense": Dense}


def make_fit(settings: EngineSettings) -> Fit[Any, Any]:
    """Return the fit that the settings name."""
    fit: Fit[Any, Any] = _FITS[settings.fit](settings)
    return fit


def read_settings(record: dict[str, Any], functions: dict[str, PerEpisode | None]) -> EngineSettings:
    """Return the settings that a file holds, of whichever fit; `functions` replace what it can't hold."""
    if record.get("fit") == "dense":
        return DenseSettings.from_dict(record)
    return Settings.from_dict(record, functions)
