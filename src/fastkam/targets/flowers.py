"""Rings with petals."""

from __future__ import annotations

from math import lgamma

import numpy as np

from fastkam._core.targets.curved import FlowerDensity
from fastkam.arguments import check_integer, check_number
from fastkam.targets.builtin import Exact, check_points


class FlowerFamily(Exact, FlowerDensity):
    """A ring with petals; see `Flower` and `FlowerFullNorm`."""

    full_norm = False

    def __init__(self, r0=10.0, A=6.0, w=6, s2=1.0, d=8):
        r0 = check_number("r0", r0, above=0)
        A = check_number("A", A, above=-r0, below=r0)
        w = check_integer("w", w, least=2, most=2**31 - 1)
        s2 = check_number("s2", s2, above=0)
        d = check_integer("d", d, least=2)
        self.parameters = {"r0": r0, "A": A, "w": w, "s2": s2, "d": d}
        constant, plane, tail = self.integrals(**self.parameters)
        self.mean = np.zeros(d)
        self.cov = np.diag(np.r_[plane, np.full(d - 2, tail)])
        self.set_up(d, r0, A, w, s2, self.full_norm, constant)

    def integrals(self, r0, A, w, s2, d):
        """Log of the normalization, (E x_1^2, E x_2^2) and E x_j^2, j > 2, by quadrature.

        Over the radius R > t in closed form, with t the norm of x_3 .. x_d where it counts; over
        w phi by the trapezoidal rule, which for a smooth periodic function is exact to rounding;
        over t by Gauss's rule in panels. The means and E x_1 x_2 vanish by symmetry, and
        cos(phi)^2 = (1 + cos(2 phi))/2 depends on the petals only if there are two.
        """
        from scipy.special import ndtr  # late: it takes longer than all else here to import

        s = np.sqrt(s2)
        petal = np.cos(np.linspace(0, 2 * np.pi, 512, endpoint=False))
        mu = r0 + A * petal
        t, weight = np.zeros(1), np.ones(1)
        if self.full_norm and d > 2:
            end = np.sqrt(d - 2) + 9
            nodes, weights = np.polynomial.legendre.leggauss(12)
            panels = np.linspace(0, end, min(200, int(end / s) + 12))
            half = np.diff(panels)[:, None] / 2
            t = (panels[:-1, None] + half * (1 + nodes)).ravel()
            k = d - 2  # t has the chi distribution with k degrees of freedom
            log_chi = (k - 1) * np.log(t) - t**2 / 2 - (k / 2 - 1) * np.log(2) - lgamma(k / 2)
            weight = (half * weights).ravel() * np.exp(log_chi)
        # truncated moments I_k = int_t^oo R^k phi(R; mu, s2) dR
        z = (t[:, None] - mu) / s
        edge = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi * s2)
        I0 = ndtr(-z)
        I1 = mu * I0 + s2 * edge
        I2 = mu * I1 + s2 * (I0 + t[:, None] * edge)
        I3 = mu * I2 + s2 * (2 * I1 + t[:, None] ** 2 * edge)
        mass = weight @ I1
        square = weight @ (I3 - t[:, None] ** 2 * I1)
        total = mass.mean()
        twist = (square * petal).mean() if w == 2 else 0.0
        plane = (square.mean() + np.array([twist, -twist])) / (2 * total)
        tail = (weight * t**2) @ I1.mean(axis=1) / total / max(1, d - 2) if self.full_norm else 1.0
        constant = -np.log(2 * np.pi * total) - (d - 1) / 2 * np.log(2 * np.pi) - np.log(s)
        return constant, plane, tail

    def draw(self, n, rng):
        """n exact draws (n, d).

        The angle is not uniform: its density grows with the radius. So uniform angles and Gaussian
        radii are kept with a probability proportional to the radius.
        """
        r0, A, w, s2, d = self.parameters.values()
        s = np.sqrt(s2)
        largest = r0 + abs(A) + 10 * s  # a probability of less than 1e-22 is beyond
        x = np.empty((0, d))
        while len(x) < n:
            y = rng.standard_normal((n + 100, d))
            phi = rng.uniform(0, 2 * np.pi, n + 100)
            R = r0 + A * np.cos(w * phi) + s * y[:, 0]
            t = np.sqrt((y[:, 2:] ** 2).sum(axis=1)) if self.full_norm else 0.0
            keep = (t < R) & (rng.random(n + 100) * largest < R)
            rho = np.sqrt(np.maximum(R**2 - t**2, 0)) if self.full_norm else R
            y[:, 0], y[:, 1] = rho * np.cos(phi), rho * np.sin(phi)
            x = np.vstack([x, y[keep]])
        return x[:n]


class Flower(FlowerFamily):
    """The flower: log pi(x) = c - (rho - r0 - A cos(w phi))^2/(2 s2) - sum_{j>2} x_j^2/2.

    rho and phi are the polar coordinates of (x_1, x_2). Normalized. Mean 0; E x_1^2 = E x_2^2 =
    (r0^2 + 1.5 A^2 + 3 s2)/2 for w > 2, apart from the cut at rho = 0, which is taken into account:
    78.5 for the default. Sejdinovic et al. (2014), whose formula lacks the square.

    Parameters
    ----------
    r0, A : float
        Mean radius and depth of the petals, |A| < r0.
    w : int
        Number of petals, at least 2.
    s2 : float
        Variance of the radius about the petal.
    d : int
        Dimension, at least 2.

    Raises
    ------
    TypeError, ValueError
        If a parameter is outside its bounds.
    """

    def quantile_region(self, x):
        """The statistic whose level sets are the quantile regions, and its distribution.

        Parameters
        ----------
        x : array (..., d)

        Returns
        -------
        q : ndarray (...)
            (rho - r0 - A cos(w phi))^2/s2 + sum_{j>2} x_j^2, which is chi-squared distributed.
        df : int
            Its degrees of freedom, d - 1.

        Notes
        -----
        With e the deviation of the radius from mu, its density given the angle is that of a
        Gaussian times rho = mu + e, and the part that is odd in e does not change the distribution
        of e^2. So this is exact except for the cut at rho = 0, which matters if r0 - |A| is less
        than some 4 standard deviations.
        """
        x = check_points(self, x)
        r0, A, w, s2, d = self.parameters.values()
        rho, phi = np.hypot(x[..., 0], x[..., 1]), np.arctan2(x[..., 1], x[..., 0])
        return (rho - r0 - A * np.cos(w * phi)) ** 2 / s2 + (x[..., 2:] ** 2).sum(-1), d - 1


class FlowerFullNorm(FlowerFamily):
    """The flower as in the authors' program: rho is the norm of all d coordinates.

    Otherwise as `Flower`, to which it is equal for d = 2. Normalized by quadrature; E x_1^2 = 75.8
    for the default. The distribution of its quantile regions has no closed form.
    """

    full_norm = True


def ring():
    """A ring of radius 3.5 and variance 0.05 about it, in two dimensions: `Flower` with A = 0."""
    return Flower(r0=3.5, A=0.0, w=2, s2=0.05, d=2).named("ring")
