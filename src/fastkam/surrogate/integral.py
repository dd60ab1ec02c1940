"""The integral of a learned surrogate s: a bridge between its draws and those of a mixture.

s is cheap, so that the error is small beside that of the weights pi / s.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastkam.evidence.bridge import Pairs, bridge, joined
from fastkam.evidence.pareto import MOST_K_HAT, k_hat
from fastkam.surrogate.density import Students
from fastkam.surrogate.learning import Learned

Array = NDArray[np.float64]

N_DRAWS = 10_000    # of the mixture
WIDE_SHARE = 0.3    # of them that come from the heavy-tailed components of s
MOST_ERROR = 0.1


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
    q, wide = learned.mixture, Students(learned.mixture)
    m = int(WIDE_SHARE * N_DRAWS)
    y = np.concatenate([q.draw(N_DRAWS - m, rng), wide.draw(m, rng)])

    def log_q(z: Array) -> Array:
        return np.logaddexp(q.log_density(z) + np.log(1 - WIDE_SHARE),
                            wide.log_density(z) + np.log(WIDE_SHARE))

    own = learned.density.logp(y) - log_q(y)
    chain = log_s - log_q(x.reshape(-1, x.shape[2])).reshape(log_s.shape)
    if not np.isfinite(chain).all() or k_hat(own) > MOST_K_HAT:
        return 0.0, np.inf
    value, error = joined([bridge(Pairs(chain, np.full(chain.shape, np.nan), own))])
    return (value, error) if np.isfinite(value) else (0.0, np.inf)
