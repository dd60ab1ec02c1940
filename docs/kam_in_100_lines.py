"""Kernel adaptive Metropolis in NumPy alone; docs/kam_in_100_lines.md walks through it.

    y ~ N(x, R(x)),   R(x) = gamma^2 I + nu^2 M H M',   M = 2 [grad k(x, z_1) ... grad k(x, z_n)]

Sejdinovic, D. et al. (2014). Kernel adaptive Metropolis-Hastings. Proceedings of Machine Learning
Research 32, 1665-1673. Algorithm 1 and Proposition 2, with the Gaussian kernel.
"""

import numpy as np


def covariance(x, z, length, gamma, nu):
    """The covariance R (d, d) of the proposal at x (d,), shaped by the points z (n, d)."""
    R = gamma**2 * np.eye(len(x))
    if len(z):
        D = z - x
        k = np.exp(-0.5 * (D**2).sum(axis=1) / length**2)
        M = 2 * k[:, None] * D / length**2
        M = M - M.mean(axis=0)
        R += nu**2 * M.T @ M
    return R


def log_normal(y, mean, R):
    """log N(y; mean, R), without the constant."""
    L = np.linalg.cholesky(R)
    e = np.linalg.solve(L, y - mean)
    return -0.5 * e @ e - np.log(np.diag(L)).sum()


def propose(x, z, length, gamma, nu, rng):
    """Return the proposal y ~ N(x, R(x)), and log q(x|y) - log q(y|x)."""
    Rx = covariance(x, z, length, gamma, nu)
    y = x + np.linalg.cholesky(Rx) @ rng.standard_normal(len(x))
    Ry = covariance(y, z, length, gamma, nu)
    return y, log_normal(x, y, Ry) - log_normal(y, x, Rx)


def median_distance(z):
    """The median distance of two of the points, over sqrt(2): the length of the kernel."""
    i, j = np.triu_indices(len(z), 1)
    distances = np.linalg.norm(z[i] - z[j], axis=1)
    distances = distances[distances > 0]
    return np.median(distances) / np.sqrt(2) if len(distances) else 1.0


def kam(logp, x0, rng, *, tune, draws, n=200, gamma=0.2, length=None, target=0.234):
    """Return draws (draws, d) of the density exp(logp), after `tune` steps of adaptation.

    n is the number of points that shape the proposal; `length` that of the kernel, the median
    distance of these points where it is None; `target` the acceptance rate aimed at.
    """
    x = np.array(x0, dtype=float)
    logp_x, log_nu = logp(x), np.log(2.38 / np.sqrt(len(x)))
    history, z, ell = [], np.empty((0, len(x))), length or 1.0
    out = np.empty((draws, len(x)))
    for t in range(1, tune + draws + 1):
        y, log_q = propose(x, z, ell, gamma, np.exp(log_nu), rng)
        logp_y = logp(y)
        log_ratio = logp_y - logp_x + log_q
        log_ratio = -np.inf if np.isnan(log_ratio) else log_ratio
        accepted = -rng.standard_exponential() < log_ratio

        if t <= tune:                           # adaptation: none after warm-up
            history.append(x)
            if len(history) <= n:               # all of the history, as long as it is short
                z = np.array(history)
                renewed = len(history) in (n, n // 2, n // 4, n // 8)
            else:                               # then a random part of it, renewed ever less often
                renewed = rng.random() < t**-0.5
                if renewed:
                    z = np.array(history)[rng.choice(len(history), n, replace=False)]
            if renewed and length is None:
                ell = median_distance(z)
            alpha = min(1.0, np.exp(min(log_ratio, 0.0)))
            log_nu += 0.5 * (1 + t) ** -0.5 * (alpha - target)

        if accepted:
            x, logp_x = y, logp_y
        if t > tune:
            out[t - tune - 1] = x
    return out


def banana(x):
    """Log density of a bent distribution: x_1 ~ N(0, 5^2), x_2 | x_1 ~ N(0.05 x_1^2 - 1.25, 1)."""
    return -0.5 * (x[0] / 5) ** 2 - 0.5 * (x[1] - 0.05 * x[0] ** 2 + 1.25) ** 2


if __name__ == "__main__":
    chains = [kam(banana, [0.0, 0.0], np.random.default_rng(seed), tune=5000, draws=10_000)
              for seed in range(4)]
    for name, draws in zip(("x_1", "x_2"), np.moveaxis(chains, -1, 0), strict=True):
        print(f"{name}: mean {draws.mean():.2f}, standard deviation {draws.std():.2f}, "
              f"of the chains {np.round(draws.std(axis=1), 2)}")
    print("exact: means 0 and 0, standard deviations 5 and 2.03")
