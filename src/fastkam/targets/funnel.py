"""Neal's funnel."""

from __future__ import annotations

import numpy as np

from fastkam._core.targets.curved import FunnelDensity
from fastkam.arguments import check_integer, check_number
from fastkam.targets.builtin import Exact, check_points


class Funnel(Exact, FunnelDensity):
    """Neal's funnel: x_1 ~ N(0, variance), x_j | x_1 ~ N(0, exp(x_1)), j > 1. Normalized.

    Mean 0, E x_1^2 = variance, E x_j^2 = exp(variance/2), all uncorrelated.

    Neal, R. M. (2003). Slice sampling. Annals of Statistics 31, 705-767.

    Parameters
    ----------
    d : int
        Dimension, at least 2.
    variance : float
        Of x_1.

    Raises
    ------
    TypeError, ValueError
        If a parameter is outside its bounds.
    """

    def __init__(self, d=10, variance=9.0):
        d = check_integer("d", d, least=2)
        variance = check_number("variance", variance, above=0)
        self.parameters = {"d": d, "variance": variance}
        self.mean = np.zeros(d)
        self.cov = np.diag(np.r_[variance, np.full(d - 1, np.exp(variance / 2))])
        self.set_up(d, variance)

    def draw(self, n, rng):
        x = rng.standard_normal((n, self.dim))
        x[:, 0] *= np.sqrt(self.parameters["variance"])
        x[:, 1:] *= np.exp(x[:, :1] / 2)
        return x

    def quantile_region(self, x):
        """The statistic whose level sets are the quantile regions, and its distribution.

        Parameters
        ----------
        x : array (..., d)

        Returns
        -------
        q : ndarray (...)
            x_1^2/variance + exp(-x_1) sum_{j>1} x_j^2, which is chi-squared distributed.
        df : int
            Its degrees of freedom, d.
        """
        x = check_points(self, x)
        first = x[..., 0]
        tail = np.exp(-first) * (x[..., 1:] ** 2).sum(-1)
        return first**2 / self.parameters["variance"] + tail, self.dim
