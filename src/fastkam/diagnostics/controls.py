"""Controls: functions whose means under a surrogate are known, and which calibrate its weights.

Draws x_i of a surrogate s have the importance weights w_i = pi(x_i) / s(x_i). Where s is accurate,
most of the error of sum w_i h(x_i) / sum w_i is that of a mean of h over draws of s. If controls c,
of mean 0 under s, explain most of w h, the factors

    f_i = exp(l'c(x_i)) / Z    with l such that    sum_i f_i c(x_i) = 0,    mean of f_i = 1

remove most of that error from means with the weights f_i w_i, for all functions h together. They
are calibrated weights in the sense of survey sampling, or control variates in the form of weights;
the bias is of the order 1 / n, as that of any ratio of means. To first order the error that is left
is that of the residuals of a linear regression of the terms w_i (h(x_i) - mean of h), without the
factors, on the controls, and that of the controls' means themselves, if these come from draws of s.

Deville, J.-C. and Särndal, C.-E. (1992). Calibration estimators in survey sampling. Journal of the
American Statistical Association 87, 376-382.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DRAWS_EACH = 10  # draws for each control, at least
LEAST_DRAWS = 40
BETTER_KNOWN = 2  # times as many draws of s for the means of controls as draws with weights
LARGEST = 10.0  # factor
STEPS, EXACT = 50, 1e-9  # Newton steps, and the largest mean of a control after them
SHORTEST = 1e-4  # part of a Newton step
ROUNDING = 1e-13  # of the logarithm of a sum
MOST_LEVERAGE = 0.9


class Controls(NamedTuple):
    """The controls of weighted draws.

    Attributes
    ----------
    values : ndarray, shape (chains, n, p)
        Controls at the draws, of mean 0 and variance 1 under s, and uncorrelated.
    draws : float
        The effective number of draws of s from which their means are known.
    """

    values: Array
    draws: float

    def unexplained(self, terms: Array) -> tuple[Array, Array]:
        """Return the residuals of terms (chains, n, d), and the variance (d,) of what is explained.

        The terms are those with calibrated weights. The residuals are of a regression of the terms
        without the factors, for each draw on the other draws, times the factors.
        """
        chains, n, d = terms.shape
        C = self.values.reshape(chains * n, -1)
        log_f = factors(C)
        f = np.ones((len(C), 1)) if log_f is None else np.exp(log_f)[:, None]
        T = terms.reshape(-1, d) / f
        Q, _ = np.linalg.qr(np.column_stack([np.ones(len(C)), C]))
        fitted = Q @ (Q.T @ T)
        leverage = np.minimum((Q * Q).sum(axis=1, keepdims=True), MOST_LEVERAGE)
        rest = f * (T - fitted) / (1 - leverage)
        return rest.reshape(chains, n, d), fitted.var(axis=0)


def calibrated(controls: Controls) -> tuple[Array, Controls] | None:
    """Return log f (chains, n) at the draws, and the controls that calibrate them.

    These are the first ones, as many as the number of draws allows, or fewer if there are no such
    factors up to 10. None if the draws are too few, or the means of controls too uncertain.
    """
    chains, n, p = controls.values.shape
    if chains * n < LEAST_DRAWS or controls.draws < BETTER_KNOWN * chains * n:
        return None
    p = min(p, chains * n // DRAWS_EACH)
    while p:
        some = controls.values[:, :, :p]
        log_f = factors(some.reshape(-1, p))
        if log_f is not None:
            return log_f.reshape(chains, n), Controls(some, controls.draws)
        p //= 2
    return None


def factors(C: Array) -> Array | None:
    """Return log f (n,) for controls C (n, p), or None if there is none up to log 10.

    Newton's method on log sum exp(l'c), which is convex in l.
    """
    multipliers = np.zeros(C.shape[1])
    for _ in range(STEPS):
        exponents = C @ multipliers
        total = log_sum_exp(exponents)
        f = np.exp(exponents - total)
        means = f @ C
        if np.abs(means).max() < EXACT:
            log_f = exponents - total + np.log(len(C))
            return log_f if log_f.max() < np.log(LARGEST) else None
        try:
            step = np.linalg.solve((C * f[:, None]).T @ C - np.outer(means, means), -means)
        except np.linalg.LinAlgError:
            return None
        part = 1.0
        gain = 1e-4 * float(means @ step)
        while log_sum_exp(C @ (multipliers + part * step)) > total + part * gain + ROUNDING:
            part /= 2
            if not part > SHORTEST:
                return None
        multipliers = multipliers + part * step
    return None


def log_sum_exp(x: Array) -> float:
    """Return log sum exp(x_i); `scipy.special` is not imported for this."""
    high = x.max()
    return float(high + np.log(np.exp(x - high).sum()))
