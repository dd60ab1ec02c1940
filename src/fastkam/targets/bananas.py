"""Bent Gaussians: one banana, mixtures of them, and those of the papers."""

from __future__ import annotations

import numpy as np

from fastkam._core.targets.curved import BananaMixtureDensity
from fastkam.arguments import (
    check_array,
    check_integer,
    check_number,
    check_vector,
    real_array,
    shown,
)
from fastkam.targets.builtin import Exact, check_points, mixture_moments


class BananaMixture(Exact, BananaMixtureDensity):
    """A mixture of bent Gaussians. Normalized.

    In component k all coordinates are independent N(0, v_kj), except for one, which follows a
    parabola in another:

        x_bent = shift + curvature x_along^2 + e,   e ~ N(0, v_k,bent)

    Parameters
    ----------
    bent, along : array of int (K,)
        The two coordinates of each component, from 0.
    shift, curvature : array (K,)
        The parabola.
    variances : array (K, d)
        v.
    weights : array (K,), optional
        Positive; they are divided by their sum. Equal by default.

    Raises
    ------
    TypeError, ValueError
        If shapes do not fit, a coordinate does not exist, or a variance or weight is not positive.
    """

    def __init__(self, bent, along, shift, curvature, variances, weights=None):
        shape = real_array("variances", variances, copy=False).shape
        if len(shape) != 2 or shape[0] < 1 or shape[1] < 2:
            raise ValueError(f"variances must have shape (K, d) with d > 1, not {shape}")
        K, d = shape
        self.variances = check_array("variances", variances, shape=shape)
        weights = check_array("weights", np.ones(K) if weights is None else weights, shape=(K,))
        for name, value in (("variances", self.variances), ("weights", weights)):
            if not (value > 0).all():
                raise ValueError(f"{name} must be positive, not {value.min()}")
        self.weights = weights / weights.sum()
        self.bent = check_coordinates("bent", bent, K, d)
        self.along = check_coordinates("along", along, K, d)
        if (self.bent == self.along).any():
            raise ValueError(f"bent and along must differ, not {self.bent} and {self.along}")
        self.shift = check_array("shift", shift, shape=(K,))
        self.curvature = check_array("curvature", curvature, shape=(K,))
        self.parameters = {
            "bent": self.bent, "along": self.along, "shift": self.shift,
            "curvature": self.curvature, "variances": self.variances, "weights": weights,
        }
        # x_bent is uncorrelated with x_along: the third moment of a Gaussian is 0
        k = np.arange(K)
        along_variance = self.variances[k, self.along]
        means, covs = np.zeros((K, d)), np.array([np.diag(v) for v in self.variances])
        means[k, self.bent] = self.shift + self.curvature * along_variance
        covs[k, self.bent, self.bent] += 2 * (self.curvature * along_variance) ** 2
        self.mean, self.cov = mixture_moments(self.weights, means, covs)
        self.set_up(self.weights, self.bent, self.along, self.shift, self.curvature,
                    self.variances)

    def draw(self, n, rng):
        k = rng.choice(len(self.weights), n, p=self.weights)
        x = rng.standard_normal((n, self.dim)) * np.sqrt(self.variances[k])
        i = np.arange(n)
        x[i, self.bent[k]] += self.shift[k] + self.curvature[k] * x[i, self.along[k]] ** 2
        return x


class Banana(BananaMixture):
    """One bent Gaussian: x_2 = shift + curvature x_1^2 + e, all else independent N(0, v_j).

    Normalized; mean (0, shift + curvature v_1, 0, ..), variances v with 2 curvature^2 v_1^2 added
    to the second. See `banana` for the form of the papers.

    Parameters
    ----------
    curvature, shift : float
        The parabola.
    variances : array (d,)
        v; the second is the variance of e.

    Raises
    ------
    TypeError, ValueError
        If a number is not finite, or a variance is not positive.
    """

    def __init__(self, curvature, shift, variances):
        curvature, shift = check_number("curvature", curvature), check_number("shift", shift)
        variances = check_vector("variances", variances)
        super().__init__([1], [0], [shift], [curvature], variances[None])
        self.parameters = {"curvature": curvature, "shift": shift, "variances": variances}

    def quantile_region(self, x):
        """The statistic whose level sets are the quantile regions, and its distribution.

        Parameters
        ----------
        x : array (..., d)

        Returns
        -------
        q : ndarray (...)
            The untwisted Gaussian's quadratic form, which is chi-squared distributed.
        df : int
            Its degrees of freedom, d.
        """
        z = check_points(self, x).copy()
        z[..., 1] -= self.shift[0] + self.curvature[0] * z[..., 0] ** 2
        return (z**2 / self.variances[0]).sum(-1), self.dim


def check_coordinates(name, value, K, d):
    real_array(name, value, copy=False)  # rows of different lengths are no array
    value = np.asarray(value)
    if value.shape != (K,) or value.dtype.kind not in "iu":
        raise ValueError(f"{name} must be {K} integers, not {shown(value)}")
    if ((value < 0) | (value >= d)).any():
        raise ValueError(f"{name} must be coordinates 0 to {d - 1}, not {value}")
    return value.astype(np.intp)


def banana(b=0.03, V=100.0, d=8):
    """The twisted Gaussian: x_1 ~ N(0, V), x_2 = b (x_1^2 - V) + N(0, 1), the others N(0, 1).

    Mean 0, E x_1^2 = V, E x_2^2 = 1 + 2 b^2 V^2: 19 for b = 0.03 (moderately twisted), 201 for
    b = 0.1 (strongly).

    Haario, H., Saksman, E. and Tamminen, J. (1999). Adaptive proposal distribution for random walk
    Metropolis algorithm. Computational Statistics 14, 375-395; with these parameters in Sejdinovic
    et al. (2014).

    Parameters
    ----------
    b : float
        Strength of the twist.
    V : float
        Variance of the first coordinate.
    d : int
        Dimension, at least 2.

    Returns
    -------
    Banana
    """
    b, V = check_number("b", b), check_number("V", V, above=0)
    d = check_integer("d", d, least=2)
    return Banana(b, -b * V, np.r_[V, np.ones(d - 1)]).named("banana")


def hard_banana():
    """A narrow banana with long arms: x_1 ~ N(0, 9), x_2 + x_1^2 - 1 ~ N(0, 4).

    Mean (0, -8), variances (9, 166), E x^2 = (9, 230). Dharamshi, Ngo and Rosenthal, Sampling by
    divergence minimization.
    """
    return Banana(-1.0, 1.0, [9.0, 4.0]).named("hard_banana")


def double_banana():
    """Half `hard_banana`, half its mirror image below: x_2 - x_1^2 + 1 ~ N(-50, 4).

    Mean (0, -25), var x_2 = 455, E x_2^2 = 1080. Dharamshi, Ngo and Rosenthal.
    """
    target = BananaMixture([1, 1], [0, 0], [1, -51], [-1, 1], [[9, 4], [9, 4]])
    return target.named("double_banana")


def banana_bunch():
    """Twelve bananas in three dimensions, with tips at +-41 on the axes.

    For each axis a, sign s and other axis o: x_a + s (x_o^2 - 1) ~ N(40 s, 4), x_o ~ N(0, 9), the
    third N(0, 4). Mean 0, E x_j^2 = 401 exactly. Dharamshi, Ngo and Rosenthal (who score against
    400).
    """
    table = [(a, o, s) for a in range(3) for s in (1, -1) for o in range(3) if o != a]
    bent, along, sign = np.array(table).T
    variances = np.full((12, 3), 4.0)
    variances[np.arange(12), along] = 9
    return BananaMixture(bent, along, 41 * sign, -sign, variances).named("banana_bunch")
