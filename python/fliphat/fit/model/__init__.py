"""What pursuit knows, and how it learns from what is released. Public arithmetic: no row ever comes here.

An episode is planned from what is known (`open_episode`), and what its fit releases is learned (`learn`).
Both are functions of public numbers, so lengths, picks, clips and scales may follow what earlier episodes
found.

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
the public columns say of a typical column (`Episode.shift`): common factors and means cancel before the clip.
The gradient on A is taken in coordinates in which the columns are, as far as known, uncorrelated and of size
one (`Episode.whiten`): the noise then falls on every direction alike. And the intercept is always there.

| file | concept |
|---|---|
| `state` | what is told, known, planned and released |
| `scores` | what a weighted sum of columns says of a reward, with either loss |
| `typical` | second moments of columns that nobody has looked at |
| `opening` | what is known at first, and the plan of an episode |
| `learning` | what is known after a release |

The constants are in :mod:`fliphat.fit.tuning`.
"""

from __future__ import annotations

from fliphat.fit.model.learning import learn
from fliphat.fit.model.opening import begin, centred, open_episode
from fliphat.fit.model.state import Episode, KnownSparse, Released, Told

__all__ = ["Episode", "KnownSparse", "Released", "Told", "begin", "centred", "learn", "open_episode"]
