"""Distributions of dense contexts: independent over arms and rounds, with mean zero in every coordinate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from fliphat import arguments


@dataclass(frozen=True)
class AR1:
    """Gaussian, ``Sigma_ij = phi^|i-j|``: the design of the paper's experiments.

    Parameters
    ----------
    phi : float, default 0.1
        Above -1 and below 1.

    Examples
    --------
    >>> AR1().phi
    0.1
    """

    phi: float = 0.1

    def __post_init__(self) -> None:
        phi = arguments.real("phi", self.phi)
        if not -1 < phi < 1:
            raise ValueError(f"phi must be above -1 and below 1, got {self.phi!r}")

    @property
    def _native(self) -> dict[str, Any]:
        # A chain without memory is the independent design, which skips the chain.
        return {"contexts": "ar1" if self.phi else "independent", "shape": float(self.phi)}


@dataclass(frozen=True)
class Equicorrelated:
    """Gaussian, every two coordinates correlated by rho.

    Parameters
    ----------
    rho : float, default 0.3
        At least 0 and below 1.

    Examples
    --------
    >>> Equicorrelated(0.5).rho
    0.5
    """

    rho: float = 0.3

    def __post_init__(self) -> None:
        rho = arguments.real("rho", self.rho)
        if not 0 <= rho < 1:
            raise ValueError(f"rho must be at least 0 and below 1, got {self.rho!r}")

    @property
    def _native(self) -> dict[str, Any]:
        return {"contexts": "equicorrelated", "shape": float(self.rho)}


@dataclass(frozen=True)
class Independent:
    """Independent standard normal coordinates.

    Examples
    --------
    >>> Independent()
    Independent()
    """

    @property
    def _native(self) -> dict[str, Any]:
        return {"contexts": "independent", "shape": 0.0}


@dataclass(frozen=True)
class Uniform:
    """Independent coordinates uniform on (-sqrt 3, sqrt 3): bounded, with variance 1.

    Examples
    --------
    >>> Uniform()
    Uniform()
    """

    @property
    def _native(self) -> dict[str, Any]:
        return {"contexts": "uniform", "shape": 0.0}


@dataclass(frozen=True)
class TruncatedNormal:
    """Independent standard normal coordinates, given that none is larger in size than the bound.

    Parameters
    ----------
    bound : float, default 2.0
        At least 0.1. The variance is below 1: 0.774 for a bound of 2.

    Examples
    --------
    >>> TruncatedNormal(3.0).bound
    3.0
    """

    bound: float = 2.0

    def __post_init__(self) -> None:
        arguments.within("bound", self.bound, 0.1, 1e6)

    @property
    def _native(self) -> dict[str, Any]:
        return {"contexts": "truncated", "shape": float(self.bound)}


@dataclass(frozen=True)
class HeavyTailed:
    """Independent coordinates of Student's t with 4 degrees of freedom, scaled to variance 1.

    Fourth moments are infinite: a row in a thousand has a coordinate larger than 11, where normal ones stay
    below 6.

    Examples
    --------
    >>> HeavyTailed()
    HeavyTailed()
    """

    @property
    def _native(self) -> dict[str, Any]:
        return {"contexts": "student t 4", "shape": 0.0}


@dataclass(frozen=True)
class Blocks:
    """Gaussian, correlated by rho within blocks of neighbouring columns and independent between them.

    Parameters
    ----------
    rho : float, default 0.9
        At least 0 and below 1.
    width : int, default 20
        Columns of a block; the last one may have fewer.

    Examples
    --------
    >>> Blocks(0.5).width
    20
    """

    rho: float = 0.9
    width: int = 20

    def __post_init__(self) -> None:
        rho = arguments.real("rho", self.rho)
        if not 0 <= rho < 1:
            raise ValueError(f"rho must be at least 0 and below 1, got {self.rho!r}")
        arguments.integer("width", self.width, 1, 2**31 - 1)

    @property
    def _native(self) -> dict[str, Any]:
        return {"contexts": "equicorrelated", "shape": float(self.rho), "width": int(self.width)}


#: How an environment draws contexts.
ContextDistribution: TypeAlias = (
    AR1 | Blocks | Equicorrelated | HeavyTailed | Independent | TruncatedNormal | Uniform
)
