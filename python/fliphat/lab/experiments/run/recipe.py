"""How to make a policy or an environment: a function and its options, which other processes can be sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

_Made = TypeVar("_Made", bound=Callable[..., Any])
_stable_names: dict[Callable[..., Any], str] = {}


def stable_name(name: str) -> Callable[[_Made], _Made]:
    """Give a function or class the name that results know it by, wherever it is moved.

    Without one, results know it by its module and name: once it is moved,
    ``--resume`` does not find its finished runs.

    Examples
    --------
    >>> @stable_name("coin")
    ... def coin(*, seed): ...
    >>> print(Recipe.of(coin, sides=2))
    coin(sides=2)
    """

    def give(make: _Made) -> _Made:
        if name in _stable_names.values() and _stable_names.get(make) != name:
            raise ValueError(f"name must be given once, got {name!r} for a second function")
        _stable_names[make] = name
        return make

    return give


@dataclass(frozen=True)
class Recipe:
    """A call that is still missing its last arguments.

    Unlike `functools.partial` it has a text that is the same in every process and every session: an
    interrupted sweep knows by it which runs it has.

    Attributes
    ----------
    make : callable
        A function or class that can be imported.
    options : tuple of (name, value)
        Numbers, strings, tuples or dataclasses of them.

    Examples
    --------
    >>> from fliphat.environments import SparseLinear
    >>> recipe = Recipe.of(SparseLinear, dim=50, arms=2)
    >>> print(recipe)
    SparseLinear(arms=2, dim=50)
    >>> recipe(seed=3).seed
    3
    """

    make: Callable[..., Any]
    options: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, make: Callable[..., Any], **options: Any) -> Recipe:
        """Return the recipe of ``make(**options, ...)``."""
        if "<" in getattr(make, "__qualname__", "<"):
            raise ValueError(
                f"make must be a function or class that other processes can import, got {make!r}"
            )
        return cls(make, tuple(sorted(options.items())))

    def __call__(self, **last: Any) -> Any:
        """Make one, with the arguments that were missing."""
        return self.make(**dict(self.options), **last)

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.options)
        name = _stable_names.get(self.make, f"{self.make.__module__}.{self.make.__qualname__}")
        return f"{name}({options})"
