"""Targets with bent level sets: bananas, flowers, Neal's funnel."""

from __future__ import annotations

from math import lgamma

import numpy as np

from fastkam._core.targets_curved import BananaMixtureDensity, FlowerDensity, FunnelDensity
from fastkam.errors import check_array, check_integer, check_number
from fastkam.targets.builtin import Exact, check_points, check_vector, mixture_moments

# ---- bananas -----------------------------------------------------------------------------------


class BananaMixture(Exact, BananaMixtureDensity):
    """A mixture of bent Gaussians. Normalised.

    In component k all coordinates are independent N(0, v_kj), but for one, which follows a parabola
    in another:

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
        Positive; they are divided by their sum. Equal where absent.

    Raises
    ------
    TypeError, ValueError
        If shapes do not fit, a coordinate is not there, or a variance or weight not positive.
    """

    def __init__(self, bent, along, shift, curvature, variances, weights=None):
        shape = np.shape(variances)
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

    Normalised; mean (0, shift + curvature v_1, 0, ..), variances v with 2 curvature^2 v_1^2 added
    to the second. See `banana` for the form of the papers.

    Parameters
    ----------
    curvature, shift : float
        The parabola.
    variances : array (d,)
        v, that of e in the second place.

    Raises
    ------
    TypeError, ValueError
        If a number is not finite, or a variance not positive.
    """

    def __init__(self, curvature, shift, variances):
        curvature, shift = check_number("curvature", curvature), check_number("shift", shift)
        variances = check_vector("variances", variances)
        super().__init__([1], [0], [shift], [curvature], variances[None])
        self.parameters = {"curvature": curvature, "shift": shift, "variances": variances}

    def quantile_region(self, x):
        """The untwisted Gaussian's form at x (..., d), and its law's degrees of freedom: chi2_d."""
        z = check_points(self, x).copy()
        z[..., 1] -= self.shift[0] + self.curvature[0] * z[..., 0] ** 2
        return (z**2 / self.variances[0]).sum(-1), self.dim


def check_coordinates(name, value, K, d):
    value = np.asarray(value)
    if value.shape != (K,) or value.dtype.kind not in "iu":
        raise ValueError(f"{name} must be {K} integers, not {value!r}")
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


# ---- flowers -----------------------------------------------------------------------------------


class FlowerFamily(Exact, FlowerDensity):
    """A ring with petals; see `Flower` and `FlowerFullNorm`."""

    full_norm = False

    def __init__(self, r0=10.0, A=6.0, w=6, s2=1.0, d=8):
        r0 = check_number("r0", r0, above=0)
        A = check_number("A", A, above=-r0, below=r0)
        w = check_integer("w", w, least=2)
        s2 = check_number("s2", s2, above=0)
        d = check_integer("d", d, least=2)
        self.parameters = {"r0": r0, "A": A, "w": w, "s2": s2, "d": d}
        constant, plane, tail = self.integrals(**self.parameters)
        self.mean = np.zeros(d)
        self.cov = np.diag(np.r_[plane, np.full(d - 2, tail)])
        self.set_up(d, r0, A, w, s2, self.full_norm, constant)

    def integrals(self, r0, A, w, s2, d):
        """Log of the normalisation, (E x_1^2, E x_2^2) and E x_j^2, j > 2, by quadrature.

        Over the radius R > t in closed form, with t the norm of x_3 .. x_d where it counts; over
        w phi by the trapezoidal rule, which for a smooth periodic function is exact to rounding;
        over t by Gauss's rule in panels. The means and E x_1 x_2 vanish by symmetry, and
        cos(phi)^2 = (1 + cos(2 phi))/2 sees the petals only where there are two.
        """
        from scipy.special import ndtr  # late: it takes longer than all else here

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
            k = d - 2  # t is of the chi law of k degrees of freedom
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
        largest = r0 + abs(A) + 10 * s  # beyond lies less than 1e-22
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

    rho and phi are the polar coordinates of (x_1, x_2). Normalised. Mean 0; E x_1^2 = E x_2^2 =
    (r0^2 + 1.5 A^2 + 3 s2)/2 for w > 2, but for what is cut off at rho = 0, which is counted:
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
        """(rho - r0 - A cos(w phi))^2/s2 + sum_{j>2} x_j^2 at x (..., d), and d - 1: chi2_{d-1}.

        The radius is not Gaussian given the angle, but the factor rho by which it differs is odd in
        the deviation and leaves the law of its square alone; exact but for the cut at rho = 0,
        which counts where r0 - |A| is not some 4 standard deviations or more.
        """
        x = check_points(self, x)
        r0, A, w, s2, d = self.parameters.values()
        rho, phi = np.hypot(x[..., 0], x[..., 1]), np.arctan2(x[..., 1], x[..., 0])
        return (rho - r0 - A * np.cos(w * phi)) ** 2 / s2 + (x[..., 2:] ** 2).sum(-1), d - 1


class FlowerFullNorm(FlowerFamily):
    """The flower as the authors' program has it: rho is the norm of all d coordinates.

    Otherwise as `Flower`, to which it is equal for d = 2. Normalised by quadrature; E x_1^2 = 75.8
    for the default. Its quantile regions have no closed law.
    """

    full_norm = True


def ring():
    """A ring of radius 3.5 and variance 0.05 about it, in two dimensions: `Flower` with A = 0."""
    return Flower(r0=3.5, A=0.0, w=2, s2=0.05, d=2).named("ring")


# ---- funnel ------------------------------------------------------------------------------------


class Funnel(Exact, FunnelDensity):
    """Neal's funnel: x_1 ~ N(0, variance), x_j | x_1 ~ N(0, exp(x_1)), j > 1. Normalised.

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
        """x_1^2/variance + exp(-x_1) sum_{j>1} x_j^2 at x (..., d), and its degrees of freedom."""
        x = check_points(self, x)
        first = x[..., 0]
        tail = np.exp(-first) * (x[..., 1:] ** 2).sum(-1)
        return first**2 / self.parameters["variance"] + tail, self.dim
