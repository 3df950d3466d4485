"""Fast kernels with documented arguments."""
