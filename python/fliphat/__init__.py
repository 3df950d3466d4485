"""Private decisions on high-dimensional data.

`fliphat.kernels` has the fast kernels, `fliphat.reference` their NumPy twins.
"""

from fliphat import kernels, reference
from fliphat._native import VERSION as __version__

__all__ = ["__version__", "kernels", "reference"]
