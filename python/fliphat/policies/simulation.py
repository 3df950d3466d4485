"""The name that :mod:`fliphat.simulation` had first."""

from fliphat.simulation import play

__all__ = ["play"]
