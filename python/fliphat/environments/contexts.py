"""Distributions of dense contexts: independent over arms and rounds, with mean zero in every coordinate."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any, ClassVar, TypeAlias

from fliphat import arguments


@dataclass(frozen=True)
class _Law:
    """A distribution that the simulators know by a name and a number."""

    _name: ClassVar[str]

    @property
    def _native(self) -> dict[str, Any]:
        shape, *_ = (*astuple(self), 0.0)
        return {"contexts": self._name, "shape": float(shape)}


def _check_rho(rho: float) -> None:
    if not 0 <= arguments.real("rho", rho) < 1:
        raise ValueError(f"rho must be at least 0 and below 1, got {rho!r}")


@dataclass(frozen=True)
class AR1(_Law):
    """Gaussian, ``Sigma_ij = phi^|i-j|``: the design of the paper's experiments.

    Parameters
    ----------
    phi : float, default 0.1
        Above -1 and below 1.
    """

    phi: float = 0.1

    def __post_init__(self) -> None:
        if not -1 < arguments.real("phi", self.phi) < 1:
            raise ValueError(f"phi must be above -1 and below 1, got {self.phi!r}")

    @property
    def _name(self) -> str:  # type: ignore[override]
        # A chain without memory is the independent design, which skips the chain.
        return "ar1" if self.phi else "independent"


@dataclass(frozen=True)
class Equicorrelated(_Law):
    """Gaussian, every two coordinates correlated by rho.

    Parameters
    ----------
    rho : float, default 0.3
        At least 0 and below 1.
    """

    rho: float = 0.3
    _name: ClassVar[str] = "equicorrelated"

    def __post_init__(self) -> None:
        _check_rho(self.rho)


@dataclass(frozen=True)
class Independent(_Law):
    """Independent standard normal coordinates."""

    _name: ClassVar[str] = "independent"


@dataclass(frozen=True)
class Uniform(_Law):
    """Independent coordinates uniform on (-sqrt 3, sqrt 3): bounded, with variance 1."""

    _name: ClassVar[str] = "uniform"


@dataclass(frozen=True)
class TruncatedNormal(_Law):
    """Independent standard normal coordinates, given that none is larger in size than the bound.

    Parameters
    ----------
    bound : float, default 2.0
        At least 0.1. The variance is below 1: 0.774 for a bound of 2.
    """

    bound: float = 2.0
    _name: ClassVar[str] = "truncated"

    def __post_init__(self) -> None:
        arguments.within("bound", self.bound, 0.1, 1e6)


@dataclass(frozen=True)
class HeavyTailed(_Law):
    """Independent coordinates of Student's t with 4 degrees of freedom, scaled to variance 1.

    Fourth moments are infinite: a row in a thousand has a coordinate larger than 11, where normal ones stay
    below 6.
    """

    _name: ClassVar[str] = "student t 4"


@dataclass(frozen=True)
class Blocks(_Law):
    """Gaussian, correlated by rho within blocks of neighbouring columns and independent between them.

    Parameters
    ----------
    rho : float, default 0.9
        At least 0 and below 1.
    width : int, default 20
        Columns of a block; the last one may have fewer.
    """

    rho: float = 0.9
    width: int = 20
    _name: ClassVar[str] = "equicorrelated"

    def __post_init__(self) -> None:
        _check_rho(self.rho)
        arguments.integer("width", self.width, 1, 2**31 - 1)

    @property
    def _native(self) -> dict[str, Any]:
        return {**super()._native, "width": int(self.width)}


#: How an environment draws contexts.
ContextDistribution: TypeAlias = (
    AR1 | Blocks | Equicorrelated | HeavyTailed | Independent | TruncatedNormal | Uniform
)
