"""What several fits on the same people cost together.

Cross-validation, a grid search and a second attempt each fit the same rows again, and every fit's own claim
is true only if it stays the only one. A :class:`Ledger` is handed to all of them. It writes down what each
fit releases before its rows are read, refuses one that would pass its budget, and prices all of them as the
one sequence of releases they are (:mod:`fliphat.privacy.composition`; C13 and C15 of ``docs/privacy.md``).

The exact price is that of a sequence whose sizes are fixed beforehand: which fits are made, with which
parameters, must not follow from what earlier ones released. Cross-validation and a grid are like that.
Whoever looks at a result and then decides what to fit next asks for ``accounting="zcdp"`` and a budget: zCDP
costs add up within a budget fixed beforehand however the parameters are chosen (Feldman and Zrnic 2021,
*Individual privacy accounting via a Renyi filter*, NeurIPS 34).

What is *not* in a ledger: scores of a model on private rows. A cross-validation score is computed from the
held-out rows without noise, and so is the choice of the best parameters by it.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, Self

from fliphat import arguments
from fliphat.privacy import accounting, composition
from fliphat.privacy.conversion import epsilon_from_rho, float_up, rho_from_epsilon
from fliphat.privacy.guarantee import Guarantee
from fliphat.privacy.ledger_file import FileAccount, MemoryAccount, Spent
from fliphat.privacy.priced import Noise, PricedRelease
from fliphat.privacy.scales import FitShape, NoiseScales, check_delta, releases_of

__all__ = ["BudgetError", "Ledger"]

ACCOUNTINGS: Final = ("exact", "zcdp")


class BudgetError(ValueError):
    """A fit was refused because all fits together would cost more than the ledger's budget."""


class Ledger:
    """One account for all fits on the same people.

    Parameters
    ----------
    delta : float
        Of the claim about all fits together; 0 if every fit is of pure privacy.
    epsilon : float, optional
        The budget: a fit that would take all together beyond it is refused. Without one nothing is refused.
    accounting : {"exact", "zcdp"}
        "exact" if which fits are made, and how, is fixed before the first one, as in a grid search. "zcdp",
        which needs a budget, if later fits may follow from earlier results.
    path : path-like, optional
        A file to keep the ledger in, made if it is not there: runs of a script, and processes, that name the
        same file share one account. By default it lives in the process that made it.

    Notes
    -----
    A fit is written down before its rows are read, on the disk if there is a `path`, and stays, whatever
    becomes of it. scikit-learn's `clone` and :mod:`copy` keep the same ledger, so that cross-validation and
    searches spend once a fit. Without a `path`, forked children and copies by pickle can be read and can't
    spend. All fits must protect the same number of rows of one person. Whoever copies the file and goes on
    with both spends twice, and no program can tell.

    Scores of cross-validation on private rows, and what is chosen by them, are **not covered**.

    Examples
    --------
    >>> import numpy as np
    >>> from fliphat import PrivateSparseRegressor
    >>> from fliphat.privacy import Ledger
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2_000, 20))
    >>> ledger = Ledger(delta=1e-5, epsilon=2.0)
    >>> model = PrivateSparseRegressor(epsilon=1.0, delta=1e-6, sparsity=2, ledger=ledger)
    >>> first = model.fit(X, X[:, 3]).guarantee_.epsilon
    >>> both = model.fit(X, X[:, 3]).guarantee_.epsilon
    >>> first < both < 2 * first, ledger.fits
    (True, 2)
    """

    def __init__(
        self,
        *,
        delta: float,
        epsilon: float | None = None,
        accounting: str = "exact",
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        self.delta = check_delta(delta)
        self.budget = None if epsilon is None else arguments.positive("epsilon", epsilon)
        self.accounting = arguments.choice("accounting", accounting, ACCOUNTINGS)
        if accounting == "zcdp" and (self.budget is None or self.delta == 0):
            raise ValueError(
                "epsilon must be given, and delta above 0, with accounting='zcdp': costs of fits that follow "
                "from earlier results add up only within a budget that is fixed beforehand"
            )
        terms = {"delta": self.delta, "epsilon": self.budget, "accounting": accounting}
        self._account = MemoryAccount() if path is None else FileAccount(path, terms)

    @property
    def fits(self) -> int:
        """Fits written down."""
        return len(self._account.fits())

    @property
    def rho(self) -> Fraction:
        """The exact zCDP cost of all fits together."""
        return _rho(self._account.fits())

    @property
    def epsilon(self) -> float:
        """What all fits together cost, at the ledger's delta; 0 before the first."""
        return self._claim(self._account.fits())[0]

    def spend(self, noise: Any, claim: Guarantee) -> Guarantee:
        """Write a fit down before its rows are read, and return what all fits together claim then.

        Parameters
        ----------
        noise : NoiseScales, PricedRelease or Fraction
            What the fit will release; or the zCDP cost that it will not pass, whatever it finds on its way.
        claim : Guarantee
            The fit's own claim.

        Raises
        ------
        BudgetError
            If all fits together would cost more than the budget; nothing was written down.
        ValueError
            If the fit has no proven cost, no pure one where ``delta = 0``, or protects another number of
            rows of one person than those before it.
        """
        fit, stated = _cost(noise, claim), claim

        def decide(before: Sequence[Spent]) -> Spent:
            nonlocal stated
            if before and before[0].rows_per_user != fit.rows_per_user:
                raise ValueError(
                    f"rows_per_user must be {before[0].rows_per_user}, as in the first fit of this ledger, "
                    f"got {fit.rows_per_user}"
                )
            if self.delta == 0 and fit.pure is None:
                raise ValueError("delta must be 0 for every fit of a ledger whose own delta is 0")
            spent = [*before, fit]
            if self.budget is not None and not self._within(spent, self.budget):
                raise BudgetError(
                    f"ledger has a budget of epsilon = {self.budget!r} with delta = {self.delta!r}, which "
                    f"{len(spent)} fits with this one would pass: fit with more noise, or fewer times"
                )
            stated = self._stated(spent, claim)
            return fit

        self._account.add(decide)
        return stated

    def _within(self, spent: Sequence[Spent], budget: float) -> bool:
        if self.delta == 0:
            return sum(fit.pure or 0 for fit in spent) <= Fraction(budget)
        allowed = Fraction(rho_from_epsilon(budget, self.delta))
        if _rho(spent) <= allowed:
            return True  # zCDP is a bound as well
        noise = self._sequence(spent)
        if noise is None:
            return False
        try:
            return composition.delta(budget, _events(noise)) <= self.delta
        except ValueError:
            return False  # too many events to be priced

    def _sequence(self, spent: Sequence[Spent]) -> tuple[Noise, ...] | None:
        """Return all releases in order, None if they have no exact price together."""
        if self.accounting != "exact" or self.delta == 0:
            return None
        parts = [fit.noise for fit in spent]
        if any(part is None for part in parts):
            return None
        return tuple(noise for part in parts for noise in part or ())

    def _claim(self, spent: Sequence[Spent]) -> tuple[float, PricedRelease | None]:
        """Return the smallest epsilon that is shown for these fits, and the releases that show it."""
        if not spent:
            return 0.0, None
        if self.delta == 0:
            return float_up(sum((fit.pure or Fraction(0) for fit in spent), Fraction(0))), None
        rho = _rho(spent)
        by_zcdp = epsilon_from_rho(float_up(rho), self.delta)
        while Fraction(rho_from_epsilon(by_zcdp, self.delta)) < rho:
            by_zcdp = math.nextafter(by_zcdp, math.inf) * (1 + 1e-12)
        noise = self._sequence(spent)
        if noise is None:
            return by_zcdp, None
        try:
            exact = composition.epsilon(self.delta, _events(noise))
            if exact < by_zcdp:
                return exact, PricedRelease(noise=noise, epsilon=exact, delta=self.delta)
        except ValueError:
            pass  # too many events to be priced: zCDP holds as well
        return by_zcdp, None

    def _stated(self, spent: Sequence[Spent], claim: Guarantee) -> Guarantee:
        epsilon, release = self._claim(spent)
        rho = _rho(spent)
        if self.delta == 0:
            rho = min(rho, accounting.pure_dp_zcdp(Fraction(epsilon)))
        return dataclasses.replace(
            claim,
            epsilon=epsilon,
            delta=self.delta,
            rho=rho,
            release=release,
            seeded=any(fit.seeded for fit in spent),
            fits=len(spent),
            kinds=None,  # every row is in every fit
        )

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same ledger: scikit-learn's `clone` copies parameters, and the people are the same."""
        return self

    def __repr__(self) -> str:
        budget = "" if self.budget is None else f", epsilon={self.budget!r}"
        account = self._account
        path = f", path={str(account.path)!r}" if isinstance(account, FileAccount) else ""
        return f"Ledger(delta={self.delta!r}{budget}, accounting={self.accounting!r}{path})"


def _rho(spent: Sequence[Spent]) -> Fraction:
    return sum((fit.rho for fit in spent), Fraction(0))


def _cost(noise: Any, claim: Guarantee) -> Spent:
    rows = claim.rounds_per_user
    if isinstance(noise, Fraction):
        if claim.release is not None or claim.rho is None or noise < claim.rho:
            raise ValueError("noise must be the zCDP cost that the fit's own claim follows from, or more")
        return Spent(noise, None, None, claim.seeded, rows)
    if isinstance(noise, PricedRelease):
        # Its sensitivities are of one row: with more of them it would cost more than is written down.
        if noise.users != 1 or noise.beside or rows != 1:
            raise ValueError("noise must be priced for one row of a person, in one fit")
        return Spent(noise.rho, None, noise.noise, claim.seeded, rows)
    if not isinstance(noise, NoiseScales):
        raise TypeError(f"noise must be NoiseScales, PricedRelease or Fraction, got {type(noise).__name__}")
    releases = None
    if noise.value_noise != "gaussian":  # the discrete Gaussian has no exact price
        shape = FitShape(noise.sparsity, noise.iterations, noise.pick_scale, noise.value_scale)
        releases = releases_of(
            shape,
            mechanism=noise.mechanism,
            value_noise=noise.value_noise,
            rows=noise.rounds_per_user,  # all rows of a person enter every fit
        )
    return Spent(noise.rho, noise.pure_epsilon, releases, claim.seeded, rows)


def _events(noise: tuple[Noise, ...]) -> tuple[composition.Event, ...]:
    return tuple(event for release in noise for event in release.events(1))
