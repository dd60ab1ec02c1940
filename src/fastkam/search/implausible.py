"""Points far beyond the prior, at which a function may be high only since it has no digits left.

With the depth of a point x below n draws z_i from the prior, and the best point x* so far,

    depth(x) = max_i log prior(z_i) - log prior(x)

a point counts as one of density 0 if depth(x) > 100 + 2 depth(x*), and log p(x) > log p(x*) - 100.

The sum of immense numbers of both signs has a rounding error that can exceed everything else: a
likelihood with terms a x at a = 1e20, or of differences of `lgamma`, is far too high at some such
points, and a search that steps there does not return. A density that is far from its prior is
still found, since the search may go the further, the farther the best point so far is.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fastkam.search.found import LogPrior, Prior

Array = NDArray[np.float64]

DRAWS = 100         # of the prior
DEPTH, TIMES = 100.0, 2.0   # of the limit
ABOVE = 10.0        # log density above that of a mode that walkers have nearly reached


class Implausible:
    """Points with a high density that are too deep below draws from the prior.

    Parameters
    ----------
    prior, log_prior : callable
        See `fastkam.search.found.Known`.
    """

    def __init__(self, prior: Prior, log_prior: LogPrior) -> None:
        self.sample, self.log_prior = prior, log_prior
        self.best: Array | None = None
        self.highest = -np.inf
        self.values: list[float] = []   # that were removed, if higher than all before

    @cached_property
    def near(self) -> tuple[Array, Array, float]:
        """Bounds (d,) within which points are near draws, and the highest log prior of draws."""
        z = self.sample(DRAWS, np.random.default_rng(0))    # whatever the seed of the search
        low, high = z.min(axis=0), z.max(axis=0)
        return 2 * low - high, 2 * high - low, float(np.max(self.log_prior(z)))

    @property
    def n(self) -> int:
        """Number of such points whose density was much higher than at all others."""
        return int((np.array(self.values) > self.highest + ABOVE).sum())

    def remove(self, X: Array, values: Array) -> None:
        """Replace the values (n,) at such points X (n, d) by -inf."""
        low, high, top = self.near
        if self.best is not None:
            far = ((low > X) | (high < X)).any(axis=1)
            rows = np.flatnonzero(far & (values > self.highest - DEPTH))
            if len(rows):
                depths = top - np.array(self.log_prior(np.vstack([self.best, X[rows]])))
                rows = rows[depths[1:] > DEPTH + TIMES * depths[0]]
                self.values += values[rows][values[rows] > self.highest].tolist()
                values[rows] = -np.inf
        if len(values) and values[best := values.argmax()] > self.highest:
            self.best, self.highest = X[best].copy(), float(values[best])
