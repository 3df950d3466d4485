"""NumPy twins of the kernels: slow, plain, and what the kernels are tested against."""
