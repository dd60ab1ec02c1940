"""The integral of a learned surrogate s: a bridge between its draws and those of a mixture.

s is cheap, so that the error is small beside that of the weights pi / s. The mixture from the
learning may miss a part of s. So another one is fitted to draws of it, weighted by the ratio of the
densities, and this is repeated while they differ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastkam.diagnostics.weights import systematic
from fastkam.evidence.bridge import Pairs, bridge, joined
from fastkam.evidence.pareto import MOST_K_HAT, k_hat
from fastkam.search.mixture import Mixture
from fastkam.search.population import MOST_COMPONENTS
from fastkam.surrogate.density import Students
from fastkam.surrogate.learning import Learned

Array = NDArray[np.float64]

N_DRAWS = 10_000    # of the mixture
WIDE_SHARE = 0.3    # of them that come from the heavy-tailed components of s
MOST_ERROR = 0.1
FITS, FITTED = 4, 4000  # mixtures, of which the first is not used, and draws to which one is fitted


def log_integral(
    learned: Learned, x: Array, log_s: Array, rng: np.random.Generator
) -> tuple[float, float]:
    """(log of the integral, standard error); the error is infinite where the mixture misses s.

    Parameters
    ----------
    learned : Learned
    x : array (chains, n, d)
        Draws of s.
    log_s : array (chains, n)
        log s there, without its constant.
    rng : Generator
    """
    q: Mixture | None = learned.mixture
    for k in range(FITS):
        if q is None:
            break
        wide, m = Students(q), int(WIDE_SHARE * N_DRAWS)
        y = np.concatenate([q.draw(N_DRAWS - m, rng), wide.draw(m, rng)])
        own = learned.density.logp(y) - log_both(q, wide, y)
        chain = log_s - log_both(q, wide, x.reshape(-1, x.shape[2])).reshape(log_s.shape)
        if k and np.isfinite(chain).all() and k_hat(own) <= MOST_K_HAT:
            value, error = joined([bridge(Pairs(chain, np.full(chain.shape, np.nan), own))])
            return (value, error) if np.isfinite(value) else (0.0, np.inf)
        # draws of q with the weights s / q show where s has more than q
        rows = systematic(own, FITTED, rng)
        q = Mixture.fitted(y[rows], rng, MOST_COMPONENTS, float(len(np.unique(rows))))
    return 0.0, np.inf


def log_both(q: Mixture, wide: Students, z: Array) -> Array:
    """The log density of q with its heavy-tailed components, (n,), at z (n, d)."""
    return np.logaddexp(q.log_density(z) + np.log(1 - WIDE_SHARE),
                        wide.log_density(z) + np.log(WIDE_SHARE))
