"""Controls of a learned surrogate: functions of its draws that calibrate their weights.

With the share r = g / s of the process g in s, controls are the products

    r (h - mean of h under g),    h = u_j, u_j^2, [u_j < q_j], [u_j > Q_j], u_j u_k,

where u are the user's coordinates in units of their standard deviations, and q and Q are quantiles
of 5 % and 95 %. Their means under s are 0. The terms w (h - mean of h) differ from such products
by (pi - g) (h - mean of h) / s alone, so that controls explain almost everything in means, standard
deviations and quantiles if g is accurate. The means under g come from many draws of s with the
weights r, which need no call of the density. Functions with long tails, whose means would be
uncertain without a sign of it, are left out. See `fastkam.diagnostics.controls`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from fastkam.diagnostics.controls import Controls
from fastkam.diagnostics.draws import OUTER_QUANTILES, statistics
from fastkam.diagnostics.weights import quantiles
from fastkam.surrogate.importance import continued
from fastkam.surrogate.learning import Learned

if TYPE_CHECKING:
    from fastkam._core.surrogate.learned import LearnedDensity
    from fastkam.run.state import RunState

Array = NDArray[np.float64]

ROWS, MOST_STEPS = 40_000, 200_000  # draws, and steps for them, of all chains
MOST_VALUES = 4_000_000  # of all functions at these draws
OFTENER = 2  # times that the chains are recorded, relative to nearly independent draws
MOST_OF_VARIANCE = 0.05  # of a control that one of these draws may determine
NEW = 1e-6  # share of the variance of a control that others do not explain, for it to be kept


class Functions(NamedTuple):
    """The functions h of the user's points.

    Attributes
    ----------
    center, scale : ndarray, shape (n_x,)
        Mean and standard deviation of the coordinates under g.
    bounds : ndarray, shape (2, n_x)
        The quantiles q and Q.
    """

    center: Array
    scale: Array
    bounds: Array

    @staticmethod
    def number(n_x: int) -> int:
        return 4 * n_x + n_x * (n_x - 1) // 2

    def at(self, u: Array) -> Array:
        """Return the values (chains, n, m) at points (chains, n, n_x)."""
        z = (u - self.center) / self.scale
        i, j = np.tril_indices(z.shape[2], -1)
        return np.concatenate([z, z * z, u < self.bounds[0], u > self.bounds[1],
                               z[:, :, i] * z[:, :, j]], axis=2)


@dataclass(frozen=True)
class ControlFunctions:
    """The controls, in the order of their importance.

    Attributes
    ----------
    density : LearnedDensity
        The surrogate s.
    run : RunState
        The run whose `constrain` gives the user's points.
    functions : Functions
    means : ndarray, shape (m,)
        The means of the functions under g.
    kept : ndarray of int, shape (p,)
        Indices of the functions whose products are controls.
    factor : ndarray, shape (p, p)
        Lower Cholesky factor of the covariance of these products.
    draws : float
        The effective number of draws from which the means come.
    """

    density: LearnedDensity
    run: RunState
    functions: Functions
    means: Array
    kept: NDArray[np.intp]
    factor: Array
    draws: float = 0.0

    @staticmethod
    def of(learned: Learned, run: RunState, most: int) -> ControlFunctions | None:
        """Return at most this number of controls, from draws of s that continue a run.

        None if the standard deviations of the user's coordinates under g are not finite.
        """
        run = replace(run, thin=max(1, run.thin // OFTENER))
        rows = min(ROWS, MOST_STEPS // run.thin,
                   MOST_VALUES // Functions.number(len(run.layout.labels)))
        x = continued(run, learned, max(1, rows // run.chains))
        r, u = share(learned.density, x), np.asarray(run.constrain(x))
        w = r[:, :, None] / r.mean()
        center = (w * u).mean(axis=(0, 1))
        scale = np.sqrt((w * (u - center) ** 2).mean(axis=(0, 1)))
        if not (np.isfinite(scale) & (scale > 0)).all():
            return None
        functions = Functions(center, scale, quantiles(u, r, OUTER_QUANTILES))
        means = (w * functions.at(u)).mean(axis=(0, 1))
        H = products(r, functions.at(u), means)
        kept, factor = independent(H, most)
        found = ControlFunctions(learned.density, run, functions, means, kept, factor)
        errors = statistics(found.whitened(H).reshape(*r.shape, -1))["mcse_mean"]
        return replace(found, draws=float(errors.max(initial=0) ** -2.0))

    def at(self, x: Array) -> Controls:
        """Return the controls at draws (chains, n, d)."""
        h = self.functions.at(np.asarray(self.run.constrain(x)))
        H = products(share(self.density, x), h, self.means)
        return Controls(self.whitened(H).reshape(*x.shape[:2], -1), self.draws)

    def whitened(self, H: Array) -> Array:
        """Return the controls (n, p) from the products (n, m)."""
        return np.asarray(solve_triangular(
            self.factor, H[:, self.kept].T, lower=True, check_finite=False).T)


def products(r: Array, h: Array, means: Array) -> Array:
    """Return r (h - means), (chains n, m), for r (chains, n) and h (chains, n, m); 0 where r is."""
    r = r[:, :, None]
    return np.where(r > 0, r * (h - means), 0.0).reshape(-1, h.shape[2])


def share(density: LearnedDensity, x: Array) -> Array:
    """Return g / s, up to a constant, at draws (chains, n, d)."""
    flat = x.reshape(-1, x.shape[2])
    return np.asarray(np.exp(density.parts(flat)[:, 0] - density.logp(flat)).reshape(x.shape[:2]))


def independent(H: Array, most: int) -> tuple[NDArray[np.intp], Array]:
    """Return indices of at most this number of variables, none of them explained by those before.

    Left out are those of so long tails that few values (n, m) determine their variance. With the
    indices comes the lower Cholesky factor of the covariance of the variables, of mean 0.
    """
    cov = H.T @ H / len(H)
    with np.errstate(all="ignore"):
        long_tailed = (H * H).max(axis=0) > MOST_OF_VARIANCE * len(H) * np.diag(cov)
    kept: list[int] = []
    factor = np.zeros((0, 0))
    for k in np.flatnonzero(~long_tailed).tolist():
        if len(kept) == most:
            break
        row = solve_triangular(factor, cov[kept, k], lower=True) if kept else np.zeros(0)
        left = cov[k, k] - row @ row
        if left > NEW * cov[k, k]:
            factor = np.block([[factor, np.zeros((len(kept), 1))],
                               [row[None], np.array([[np.sqrt(left)]])]])
            kept.append(k)
    return np.array(kept, np.intp), factor
