"""How fast the kernels are beside NumPy: what is compared, and the table of ratios."""
