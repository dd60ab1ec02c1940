"""The authors' programs where they differ from the paper: cKAM, two targets and the divergence.

Their list of subsample indices stays empty, so that Exploration is a random walk of covariance
gamma^2 I. Their divergence leaves out bins that are not in both histograms.
"""

import numpy as np

import fastkam as fk
from fastkam.schedules import Power


def falling(first, last, rate, n):
    """Return gamma_t = first (1 + t/b)^-rate, which is `last` at t = n."""
    q = (last / first) ** (1 / rate)
    b = q * n / (1 - q)
    return Power(c=first * b**rate, k=rate, offset=b - 1)


def ckam(d, cycle=1000, beta=0.4):
    """Return cKAM without a kernel: gamma from 4 to 1 over a cycle, eps = 2."""
    return fk.CyclicalKernelAdaptiveMetropolis(
        metric="identity", cycle=cycle, exploration_fraction=beta, subsample=0,
        step_size=4 * 2.38**2 / d,
        step_gain=Power(k=2.0, offset=0.0), gamma=falling(4.0, 1.0, 0.55, cycle))


def two_mode():
    """Return `fastkam.targets.two_mode` with weights 1/3 and 2/3.

    Mean (8/3, 0), E x^2 = (65.5, 1.5).
    """
    target = fk.targets.GaussianMixture([[-8, 0], [8, 0]], [0.5, 2.0], weights=[1, 2])
    return target.named("two_mode_as_released")


def five_component():
    """Return `fastkam.targets.five_component` with covariances i/2 I: variances 14."""
    i = np.arange(1, 6)
    target = fk.targets.GaussianMixture(2.5 * (i[:, None] - 1) * np.ones(2), i / 2)
    return target.named("five_component_as_released")


def symmetric_kl(draws, logp, bounds, bins=100):
    """Return the symmetric KL of the figures, which is no divergence.

    p is taken at `bins` points of each axis that include both ends. Bins where p or the histogram
    is zero are left out, and draws outside the box: it can be small for a chain that never visits a
    mode. The parameters are those of `fastkam.diagnostics.symmetric_kl`.
    """
    axes = [np.linspace(low, high, bins) for low, high in bounds]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    log_p = logp(grid.reshape(-1, len(axes))).reshape(grid.shape[:-1])
    p = np.exp(log_p - log_p.max())
    q = np.histogramdd(draws, bins, bounds)[0]
    p, q = p / p.sum(), q / max(q.sum(), 1)
    both = (p > 0) & (q > 0)
    return float(((p - q)[both] * np.log(p[both] / q[both])).sum())
