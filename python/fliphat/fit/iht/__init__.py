"""Noisy iterative hard thresholding, the paper's fit with proven noise.

| file | concept |
|---|---|
| `constants` | every number that is chosen for the user, and what it was chosen on |
| `plan` | one fit, decided before its rows are read, around one calibrated noise object |
| `run` | the release of a plan: private rows in, public estimate out |
| `fit` | a fit an episode: a policy's |
| `one_fit` | one fit of all rows: a regression's |
"""
