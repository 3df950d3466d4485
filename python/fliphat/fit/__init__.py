"""The private fit: one room for the bandit, the regression and Dask.

| where | what it holds |
|---|---|
| `pursuit/` | a few new columns an episode and what is not known of the public ones: a policy's default fit |
| `dense/` | all columns, coefficients for each arm: `PrivateLinear`'s |
| `iht/` | noisy iterative hard thresholding |
| `options`, `settings` | what users give, and a policy's public numbers |
| `known` | what goes between a policy's engine and its fit |
| `board` | what episodes earned, and the guard |

Data flows one way: settings and what is known make a plan, the plan and the rows make an estimate. What plans
a fit is never given any.
"""

from __future__ import annotations

from typing import Any, Final

from fliphat.fit.dense import Dense, DenseSettings
from fliphat.fit.iht.fit import IhtFit
from fliphat.fit.known import Fit
from fliphat.fit.options import PerEpisode
from fliphat.fit.pursuit.fit import PursuitFit
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
