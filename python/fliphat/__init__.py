"""Private decisions on high-dimensional data."""

from fliphat._native import VERSION as __version__

__all__ = ["__version__"]
