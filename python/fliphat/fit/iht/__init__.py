"""Noisy iterative hard thresholding, the paper's fit with proven noise.

`constants` has every number that is chosen for the user, and what it was chosen on; `fit` has a plan, its
release and a policy's episodes. A regression's one fit is in :mod:`fliphat.regression.solvers`.
"""
