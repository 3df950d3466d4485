"""The price of a sequence of releases on a given grid of losses."""

from __future__ import annotations

from collections.abc import Sequence

from fliphat import _native, arguments

__all__ = ["price"]

_MOST = 2**22


def price(
    epsilon: float,
    menu: Sequence[Sequence[tuple[str, float]]],
    *,
    step: float,
    below: int,
    above: int,
    users: int = 1,
) -> float:
    """Return an upper bound on delta at `epsilon` of releases in a fixed order, on a grid of losses.

    :mod:`fliphat.privacy.composition` chooses the grid; the bound holds for every grid and falls as the step
    does. The algorithm and its error analysis are in ``rust/core/src/public/price``.

    Parameters
    ----------
    epsilon : float
    menu : sequence of sequences of (kind, size)
        The fits a person's rows may enter. One fit is its releases in order: ``("pick", eta)``, whose
        log-probability ratios span at most eta, or ``("gaussian", mu)``, whose mean moves by at most mu
        standard deviations when all `users` rows are replaced.
    step : float
        Distance of neighbouring losses, above 0 and at most 0.5.
    below, above : int
        Losses from ``-below * step`` to ``above * step`` are followed.
    users : int
        Rows of one person, which may be spread over fits of the menu in any way.

    Returns
    -------
    float

    Examples
    --------
    >>> both = [("pick", 0.47), ("pick", 0.47), ("gaussian", 0.37)]
    >>> round(price(1.0, [both], step=0.01, below=500, above=700), 5)
    0.00646
    """
    epsilon, step = arguments.real("epsilon", epsilon), arguments.real("step", step)
    if not abs(epsilon) <= 1e6:
        raise ValueError(f"epsilon must be a number from -1e6 to 1e6, got {epsilon!r}")
    return _native.price(
        epsilon,
        [[(kind, arguments.real("size", size)) for kind, size in fit] for fit in menu],
        arguments.integer("users", users, 1, 2**31),
        step,
        arguments.integer("below", below, 0, _MOST),
        arguments.integer("above", above, 0, _MOST),
    )
