"""The claim shown to the user: what is protected, how strongly, and whether that is proven.

A :class:`Guarantee` derives ``proven`` and its ``reasons`` from what was actually run, and is refused when
its own priced releases, or its zCDP cost, do not support its epsilon and delta: no caller can set them at
will. The words are in
:mod:`fliphat.privacy.statement`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, TypeAlias

from fliphat import arguments, html
from fliphat.privacy import accounting, group
from fliphat.privacy.composition import Event
from fliphat.privacy.conversion import float_up
from fliphat.privacy.priced import PricedRelease, listed
from fliphat.privacy.scales import MAX_COUNT, MECHANISMS, VALUE_NOISES, NoiseScales, check_delta
from fliphat.privacy.statement import describe

__all__ = ["NO_PICKS", "Guarantee", "PrivacyWarning", "state_guarantee"]

SETTINGS: Final = ("bandit", "regression")
CALIBRATIONS: Final = ("proven", "paper")
#: The mechanism of a fit that picks nothing: its values are all it releases.
NO_PICKS: Final = "none"


#: Says of which kinds fits are; None if that is not known beforehand.
Kinds: TypeAlias = Callable[[], Sequence[Sequence[Event]] | None]


class PrivacyWarning(UserWarning):
    """The noise in use is not enough for the privacy it is meant to give."""


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A differential privacy claim; ``str()`` is a paragraph, ``to_dict()`` a record.

    Usually made by :func:`state_guarantee`.

    Attributes
    ----------
    epsilon, delta : float
        The claim. ``delta = 0`` is pure differential privacy.
    rho : Fraction or None
        Exact zCDP cost that covers all the claim is about. None for the paper's noise, which has no proof,
        and for a bandit whose fits are priced exactly.
    setting : {"bandit", "regression"}
        Joint DP (everyone else's view) or plain DP (the fitted model).
    rounds_per_user : int
        Rounds (rows) of one user that are protected together.
    user_ids_checked : bool
        Whether that limit is enforced by user ids, or promised by the caller.
    mechanism, value_noise : str
        How coordinates are picked ("none" if all are released), and the law added to their values.
    calibration : {"proven", "paper"}
    seeded : bool
        Whether the noise came from a seed.
    noise_shortfall : float or None
        For the paper's noise: the factor it falls short by, at least.
    release : PricedRelease or None
        The releases of a fit (for a bandit, of its first kind of fit) whose exact price is the claim; None if
        the claim follows from `rho`.
    fits : int
        Fits that the claim is about, all together: more than one with a
        :class:`fliphat.privacy.ledger.Ledger`.
    kinds : callable, optional
        Returns the events of every kind of fit that rounds may enter, as large as one person's rounds make
        them; for a group whose rounds are spread. None of them if they are not known beforehand. Without it
        all rounds are in the fit that `release` is of.

    Examples
    --------
    >>> claim = Guarantee(epsilon=1.0, delta=0.01, rho=Fraction(1, 10), setting="regression",
    ...     rounds_per_user=1, mechanism="exponential", value_noise="gaussian", seeded=False)
    >>> claim.proven, claim.unit
    (True, 'row')
    """

    epsilon: float
    delta: float
    rho: Fraction | None
    setting: str
    rounds_per_user: int
    user_ids_checked: bool = False
    mechanism: str
    value_noise: str
    calibration: str = "proven"
    seeded: bool
    noise_shortfall: float | None = None
    release: PricedRelease | None = None
    fits: int = 1
    kinds: Callable[[], Sequence[Sequence[Event]] | None] | None = field(
        default=None, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        if self.epsilon != 0:
            arguments.positive("epsilon", self.epsilon)
        check_delta(self.delta)
        arguments.choice("setting", self.setting, SETTINGS)
        arguments.integer("rounds_per_user", self.rounds_per_user, 1, MAX_COUNT)
        arguments.integer("fits", self.fits, 1, MAX_COUNT)
        arguments.choice("mechanism", self.mechanism, (*MECHANISMS, NO_PICKS))
        arguments.choice("value_noise", self.value_noise, VALUE_NOISES)
        arguments.choice("calibration", self.calibration, CALIBRATIONS)
        if self.calibration == "paper":
            arguments.positive("noise_shortfall", self.noise_shortfall)
            if self.release is not None:
                raise ValueError("release must be None for the paper's noise, which has no proof")
            if self.rho is not None:
                raise ValueError(
                    f"rho must be None for the paper's noise, which has no proof, got {self.rho}"
                )
            return
        if self.noise_shortfall is not None:
            raise ValueError(f"noise_shortfall must be None for proven noise, got {self.noise_shortfall!r}")
        if self.release is not None:
            self._require_release(self.release)
            return
        if not isinstance(self.rho, Fraction):
            raise TypeError(f"rho must be fractions.Fraction for proven noise, got {type(self.rho).__name__}")
        if self.delta == 0 and self.value_noise != "laplace":
            raise ValueError("value_noise must be 'laplace' when delta is 0: Gaussian noise is never pure DP")
        allowed = self._rho_allowed()
        if not 0 <= self.rho <= allowed:
            raise ValueError(
                f"rho must be from 0 to {float(allowed):.6g}, which is what epsilon = {self.epsilon!r} with "
                f"delta = {self.delta!r} allows, got {float(self.rho):.6g}"
            )

    def _require_release(self, release: PricedRelease) -> None:
        # A release can't be built unless its price is within its own claim.
        if not isinstance(release, PricedRelease):
            raise TypeError(f"release must be PricedRelease, got {type(release).__name__}")
        for name in ("epsilon", "delta"):
            if getattr(release, name) != getattr(self, name):
                raise ValueError(
                    f"release must be priced for {name} = {getattr(self, name)!r}, "
                    f"got {getattr(release, name)!r}"
                )
        if self.value_noise == "gaussian":
            raise ValueError("value_noise must be 'rounded_gaussian' or 'laplace' with an exact price")

    @property
    def accounting(self) -> str:
        """How the claim follows from the noise: "exact", "zcdp", "pure" or, if it does not, "none"."""
        if self.calibration == "paper":
            return "none"
        if self.release is not None:
            return "exact"
        return "zcdp" if self.delta else "pure"

    def _rho_allowed(self) -> Fraction:
        if self.delta == 0:
            return accounting.pure_dp_zcdp(Fraction(self.epsilon))
        return Fraction(accounting.rho_from_epsilon(self.epsilon, self.delta))

    @property
    def proven(self) -> bool:
        """Whether the claim is proven for what was run."""
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the claim is not proven; empty when it is."""
        found = []
        if self.noise_shortfall is not None:
            found.append(_paper_reason(self.noise_shortfall))
        if self.seeded:
            found.append(
                "the noise comes from a seed, so whoever knows or guesses it can remove the noise (seeds are "
                "for simulation only)"
            )
        return tuple(found)

    @property
    def neighbours(self) -> str:
        """The neighbouring relation: contents are replaced, never added or removed."""
        return "replace-one"

    @property
    def unit(self) -> str:
        """What is protected as a whole: ``"round"`` (``"row"`` in a regression) or ``"user"``."""
        if self.rounds_per_user > 1 or self.user_ids_checked:
            return "user"
        return "round" if self.setting == "bandit" else "row"

    @property
    def user_ids(self) -> str:
        """``"checked"``, ``"promised"`` by the caller, or ``"not used"`` when single rounds are protected."""
        if self.user_ids_checked:
            return "checked"
        return "promised" if self.unit == "user" else "not used"

    def group(self, rounds: int) -> float:
        """Return epsilon, at the same delta, for what `rounds` rounds (rows) bring together.

        So much is protected of several people, or of one who has more rounds than the claim is about, from
        everybody but these people. Up to ``rounds_per_user`` it is the claim itself.

        Examples
        --------
        >>> from fliphat import PrivateLinear
        >>> claim = PrivateLinear(["a", "b"], dim=5, epsilon=1.0, delta=1e-6, context_norm=1.0).guarantee
        >>> claim.group(1), round(claim.group(2), 2), round(claim.group(5), 1)
        (1.0, 2.12, 5.9)
        """
        rounds = arguments.integer("rounds", rounds, 1, MAX_COUNT)
        if self.accounting == "none":
            raise ValueError("a group has no guarantee where none is proven: the noise is the paper's")
        times, claim = Fraction(rounds, self.rounds_per_user), (self.epsilon, self.delta)
        if self.release is None or times <= 1:
            return group.epsilon_of(times, claim, self.rho, None, rounds)
        kinds, spread = self._kinds(self.release)
        if kinds is None:
            raise ValueError("a group's fits must be known beforehand, and `iterations` is a function")
        return group.epsilon_of(times, claim, self.rho, kinds, rounds if spread else 1)

    def _kinds(self, release: PricedRelease) -> tuple[tuple[tuple[Event, ...], ...] | None, bool]:
        """Return kinds of fits that rounds may enter, and whether they may be spread over several."""
        if self.kinds is None:
            return release.kinds, release.users > 1
        kinds = self.kinds()
        return None if kinds is None else tuple(tuple(kind) for kind in kinds), True

    def to_dict(self) -> dict[str, object]:
        """Return a record that ``json`` can write; floats survive the round trip.

        ``rho`` is rounded up to a float, ``rho_exact`` is the fraction itself. ``release`` is a certificate
        of an exact price, which ``examples/check_guarantee.py`` computes again with NumPy alone: scales and
        events in order, epsilon, delta, the grid of losses, and under ``kinds`` the events of all fits that
        rounds of a group may be spread over (empty: all are in this one; None: not known beforehand).

        Returns
        -------
        dict
        """
        return {
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
            "rho": None if self.rho is None else float_up(self.rho),
            "rho_exact": None if self.rho is None else str(self.rho),
            "setting": self.setting,
            "definition": "joint" if self.setting == "bandit" else "central",
            "neighbours": self.neighbours,
            "unit": self.unit,
            "rounds_per_user": int(self.rounds_per_user),
            "fits": int(self.fits),
            "user_ids": self.user_ids,
            "mechanism": self.mechanism,
            "value_noise": self.value_noise,
            "calibration": self.calibration,
            "accounting": self.accounting,
            "release": None if self.release is None else self._certificate(self.release),
            "seeded": bool(self.seeded),
            "noise_shortfall": self.noise_shortfall,
            "proven": self.proven,
            "reasons": list(self.reasons),
        }

    def _certificate(self, release: PricedRelease) -> dict[str, object]:
        kinds, spread = self._kinds(release)
        if kinds is None:
            return release.record() | {"kinds": None}
        return release.record() | {"kinds": [listed(kind) for kind in kinds] if spread else []}

    def _repr_html_(self) -> str:
        return html.card("proven" if self.proven else "not proven", html.paragraph(str(self)))

    def __str__(self) -> str:
        return describe(self)


def group_table(record: Mapping[str, Any]) -> list[tuple[int, float]]:
    """Return (rounds, epsilon) of some groups, from the record of a claim; nothing where none is proven."""
    k, release = int(record["rounds_per_user"]), record["release"]
    claim = float(record["epsilon"]), float(record["delta"])
    kinds, spread = None, False
    if record["accounting"] == "none" or (release is not None and release["kinds"] is None):
        return []
    if release is not None:
        spread = bool(release["kinds"])
        kinds = group.events_of(release["kinds"] or [release["events"]])
    rho = None if record["rho_exact"] is None else Fraction(record["rho_exact"])
    return [
        (times * k, group.epsilon_of(Fraction(times), claim, rho, kinds, times * k if spread else 1))
        for times in group.GROUPS
    ]


def state_guarantee(
    noise: NoiseScales,
    *,
    setting: str,
    user_ids_checked: bool = False,
    seeded: bool = False,
    kinds: Kinds | None = None,
) -> Guarantee:
    """Return the claim that the given noise supports.

    A regression states what its one fit cost. A bandit refits for as long as it lives, each time within the
    same budget and on other rows, so it states the whole budget.

    Parameters
    ----------
    noise : NoiseScales
        From :func:`fliphat.privacy.calibration.calibrate`.
    setting : {"bandit", "regression"}
    user_ids_checked : bool
        Whether ids are given for every round and the limit per user is enforced.
    seeded : bool
        Whether the noise comes from a seed: then nothing is proven. No warning, experiments are seeded.
    kinds : callable, optional
        As in :class:`Guarantee`.

    Returns
    -------
    Guarantee

    Examples
    --------
    >>> from fliphat.privacy.calibration import calibrate
    >>> scales = calibrate(epsilon=1.0, delta=0.01, rows=2048, dim=400, sparsity=10, iterations=3,
    ...                    step_size=1.0, l1_radius=4.0, clip=2.0)
    >>> print(str(state_guarantee(scales, setting="bandit"))[:72])
    Proven: joint differential privacy with epsilon = 1.0, delta = 0.01. Pro
    """
    if not isinstance(noise, NoiseScales):
        raise TypeError(f"noise must be NoiseScales, got {type(noise).__name__}")
    return Guarantee(
        epsilon=noise.epsilon,
        delta=noise.delta,
        rho=_stated_rho(noise, setting),
        setting=setting,
        rounds_per_user=noise.rounds_per_user,
        user_ids_checked=user_ids_checked,
        mechanism=noise.mechanism,
        value_noise=noise.value_noise,
        seeded=seeded,
        release=noise.release,
        kinds=kinds,
    )


def _stated_rho(noise: NoiseScales, setting: str) -> Fraction | None:
    if setting == "regression":
        # Pure DP has two valid zCDP costs, of the parts and of the whole; the smaller one is stated.
        whole = noise.rho if noise.delta else accounting.pure_dp_zcdp(Fraction(noise.epsilon))
        return min(noise.rho, whole)
    if noise.delta == 0:
        return accounting.pure_dp_zcdp(Fraction(noise.epsilon))
    if noise.accounting == "exact":
        # Fits of other shapes have other zCDP costs; what they share is the claim itself.
        return None
    return Fraction(accounting.rho_from_epsilon(noise.epsilon, noise.delta))


def _paper_reason(shortfall: float) -> str:
    reason = "contexts are not clipped to the bound the paper's noise assumes"
    if shortfall <= 1:
        return reason
    # Rounded down: "at least" must stay true.
    factor = math.floor(shortfall * 10) / 10
    return f"the paper's noise is at least {factor:.1f} times too small for the loss it states, and {reason}"
