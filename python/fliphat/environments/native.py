"""Environments whose rounds are drawn in Rust."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from fliphat.environments.environment import Environment

__all__ = ["NativeEnvironment"]


class NativeEnvironment(Environment):
    """An environment with a simulator in Rust, which is a function of the other attributes.

    Simulators can't be pickled. Worker processes make their own from the attributes they are sent.
    """

    _simulator: Any

    @abstractmethod
    def _make_simulator(self) -> Any:
        """Return the simulator of an environment whose other attributes are set."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_simulator"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._simulator = self._make_simulator()
