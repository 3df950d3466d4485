"""Private decisions on high-dimensional data.

`FLIPHAT` is the policy; `fliphat.kernels` has the fast kernels, `fliphat.reference` their NumPy twins.
"""

from fliphat import kernels, reference
from fliphat._native import VERSION as __version__
from fliphat.policies import FLIPHAT

__all__ = ["FLIPHAT", "__version__", "kernels", "reference"]
