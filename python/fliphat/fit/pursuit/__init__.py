"""Pursuit: a few new columns an episode, and what is not known of the public ones. A policy's default fit.

| file | concept |
|---|---|
| `constants` | every constant of the rule, and what it was chosen on |
| `known` | what is told, known, planned and released |
| `plan` | what is known at first, the plan of an episode, and the noise that it is charged for |
| `learning` | what is known after a release |
| `fit` | the episodes of a policy, the one release of each, and the pilot before them |

| letter | meaning |
|---|---|
| A, k | the columns of the estimate and how many they are; position 0 is the intercept, a column of ones |
| p, m | columns that an episode picks; m = 1 + k + p |
| theta, P | coefficients on the intercept and A, and the covariance of what is not known of them |
| G, W | second moments of the intercept and A, and the precision of each entry |
| H | G, drawn to what a typical column has by what is noise in it; positive definite |
| x, r | size of a context coordinate that has not been picked; size (root mean square) of a residual |
| e, c | mean of a typical column; mean product of two of them |

Three things make it work where contexts are correlated or have means. Candidates are taken relative to what
the public columns say of a typical column (`EpisodeSteps.shift`): common factors and means cancel before the
clip. The gradient on A is taken in coordinates in which the columns are, as far as known, uncorrelated and of
size one (`EpisodeSteps.whiten`): the noise then falls on every direction alike. And the intercept is always
there.
"""
