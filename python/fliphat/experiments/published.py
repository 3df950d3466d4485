"""What the paper's figures show, to be drawn beside ours.

Read off the figures; the dimension sweep has means of 50 repeats. Their noise is smaller than the proof needs
by at least 4 x_max: see :mod:`fliphat.privacy.paper`.
"""

from __future__ import annotations

from typing import Final

__all__ = ["published_regret"]

_TIME: Final = {0.5: 10_900.0, 1.0: 5_600.0, 2.0: 2_900.0, 5.0: 1_250.0, 10.0: 700.0}
_TIME_BASELINES: Final = {"random": 28_000.0, "Lasso": 400.0}
_SPARSITY_AT_10: Final = {0.5: 18_600.0, 1.0: 14_300.0, 2.0: 8_600.0, 5.0: 4_200.0}

# Columns: epsilon 0.5, 1, 2, 5.
_DIMENSION: Final = {
    400: (9944.2, 5490.8, 2850.5, 1252.5),
    800: (11375.7, 6807.0, 3523.4, 1546.4),
    1200: (11763.6, 7602.7, 4009.1, 1645.8),
    1600: (12484.0, 8756.7, 4535.2, 1862.1),
    2000: (12696.9, 9022.6, 4571.9, 1920.1),
    2400: (12846.3, 9347.9, 4770.4, 2024.5),
    2800: (13101.7, 9653.2, 4894.5, 2124.1),
    3200: (13296.3, 10274.3, 5296.6, 2213.5),
    3600: (13411.9, 10351.4, 5265.0, 2151.7),
    4000: (13242.5, 10061.1, 5217.3, 2191.2),
}
_DIMENSION_EPSILONS: Final = (0.5, 1.0, 2.0, 5.0)


def published_regret(experiment: str, **labels: str | float) -> float | None:
    """Return the published mean regret at the last round, or None where nothing was published.

    Examples
    --------
    >>> published_regret("regret-vs-time", policy="FLIPHAT", epsilon=1.0)
    5600.0
    >>> published_regret("regret-vs-dimension", policy="FLIPHAT", epsilon=2.0, dim=4000)
    5217.3
    """
    policy, epsilon = labels.get("policy"), labels.get("epsilon")
    if experiment == "regret-vs-time" and policy in _TIME_BASELINES:
        return _TIME_BASELINES[str(policy)]
    if not isinstance(epsilon, float):
        return None
    if experiment in ("regret-vs-time", "cost-of-proof"):
        return _TIME.get(epsilon)
    if experiment == "regret-vs-sparsity" and labels.get("sparsity") == 10:
        return _SPARSITY_AT_10.get(epsilon)
    if experiment == "regret-vs-dimension" and labels.get("dim") in _DIMENSION:
        row = dict(zip(_DIMENSION_EPSILONS, _DIMENSION[int(labels["dim"])], strict=True))
        return row.get(epsilon)
    return None
