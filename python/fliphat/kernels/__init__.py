"""Fast kernels, documented and validated; each has a NumPy twin of the same name in `fliphat.reference`.

Kernels release the interpreter while they work, and give the same bits for any number of threads, any
instruction set and any order of rows. Those that add noise take floats in plain units, with a sensitivity and
an epsilon, or integers with scales of noise.

Kernels of this package's own fits are not here: they are private, and may change at any time.
"""

from fliphat.kernels._ball import second_moments
from fliphat.kernels._gaussian import gaussian_release
from fliphat.kernels._gradient import clipped_gradient
from fliphat.kernels._laplace import laplace, laplace_mechanism
from fliphat.kernels._lasso import lasso
from fliphat.kernels._niht import niht
from fliphat.kernels._peel import peel
from fliphat.kernels._price import price
from fliphat.kernels._project import project_l1
from fliphat.kernels._select import score, select_arms

__all__ = [
    "clipped_gradient",
    "gaussian_release",
    "laplace",
    "laplace_mechanism",
    "lasso",
    "niht",
    "peel",
    "price",
    "project_l1",
    "score",
    "second_moments",
    "select_arms",
]
