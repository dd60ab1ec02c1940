"""A hierarchy, Gaussian processes, a mixture and differential equations."""

import numpy as np
from scipy import stats
from scipy.integrate import odeint

from bench.posteriordb.database import posterior

# ---- eight schools ----


@posterior("eight_schools-eight_schools_noncentered")
def schools(data):
    y, errors = data["y"], data["sigma"]

    def loglike(theta_trans, mu, tau):
        r = (y - mu - tau * theta_trans) / errors
        return -0.5 * (r @ r)

    def effects(theta_trans, mu, tau):
        return {"theta": mu + tau * theta_trans}

    return loglike, {
        "prior": {"theta_trans": (stats.norm(0, 1), len(y)), "mu": stats.norm(0, 5),
                  "tau": stats.halfcauchy(scale=5)},
        "derived": effects}


@posterior("eight_schools-eight_schools_centered", "eight_schools-eight_schools_noncentered")
def schools_centered(data):
    y, errors = data["y"], data["sigma"]

    def loglike(theta, mu, tau):
        r, z = (y - theta) / errors, (theta - mu) / tau
        return -0.5 * (r @ r + z @ z) - len(y) * np.log(tau)

    return loglike, {
        "prior": {"theta": (None, len(y)), "mu": stats.norm(0, 5),
                  "tau": stats.halfcauchy(scale=5)}}


# ---- Gaussian processes with a squared exponential kernel ----


def factor(x, rho, alpha, diagonal):
    """The Cholesky factor of the covariance at x, or None where it is not positive definite."""
    K = alpha**2 * np.exp(-0.5 * ((x[:, None] - x) / rho) ** 2)
    try:
        return np.linalg.cholesky(K + diagonal * np.eye(len(x)))
    except np.linalg.LinAlgError:
        return None


SCALES = {"rho": stats.gamma(25, scale=1 / 4), "alpha": stats.halfnorm(scale=2)}


@posterior("gp_pois_regr-gp_regr")
def process(data):
    x, y = data["x"], data["y"]

    def loglike(rho, alpha, sigma):
        L = factor(x, rho, alpha, sigma)
        if L is None:
            return -np.inf
        w = np.linalg.solve(L, y)
        return -0.5 * (w @ w) - np.log(L.diagonal()).sum()

    return loglike, {"prior": SCALES | {"sigma": stats.halfnorm(scale=1)}}


@posterior("gp_pois_regr-gp_pois_regr")
def counts(data):
    x, k = data["x"], data["k"]

    def loglike(rho, alpha, f_tilde):
        L = factor(x, rho, alpha, 1e-10)
        if L is None:
            return -np.inf
        f = L @ f_tilde
        return k @ f - np.exp(f).sum()

    def latent(rho, alpha, f_tilde):
        return {"f": factor(x, rho, alpha, 1e-10) @ f_tilde}

    return loglike, {"prior": SCALES | {"f_tilde": (stats.norm(0, 1), len(x))},
                     "derived": latent}


# ---- a mixture of two normal distributions ----


@posterior("low_dim_gauss_mix-low_dim_gauss_mix")
def mixture(data):
    y = data["y"]

    def loglike(mu, sigma, theta):
        one = np.log(theta / sigma[0]) - 0.5 * ((y - mu[0]) / sigma[0]) ** 2
        other = np.log((1 - theta) / sigma[1]) - 0.5 * ((y - mu[1]) / sigma[1]) ** 2
        return np.logaddexp(one, other).sum()

    return loglike, {
        "prior": {"mu": (stats.norm(0, 2), 2), "sigma": (stats.halfnorm(scale=2), 2),
                  "theta": stats.beta(5, 5)},
        "transforms": {"mu": "ordered"}}


# ---- differential equations, solved by scipy ----


def solved(rates, start, times, args, **options):
    """The solution at the times after the first, or None where the solver gives up."""
    path, info = odeint(rates, start, times, args, full_output=True, mxstep=5000, **options)
    good = info["message"] == "Integration successful." and np.isfinite(path).all()
    return path[1:] if good else None


@posterior("hudson_lynx_hare-lotka_volterra")
def hares(data):
    times = np.append(0.0, data["ts"])
    first, later = np.log(data["y_init"]), np.log(data["y"])

    def rates(log_z, t, alpha, beta, gamma, delta):
        u, v = np.exp(log_z).tolist()
        return alpha - beta * v, -gamma + delta * u

    def loglike(theta, z_init, sigma):
        path = solved(rates, np.log(z_init), times, tuple(theta), rtol=1e-8, atol=1e-8)
        if path is None:
            return -np.inf
        r = np.vstack([first - np.log(z_init), later - path]) / sigma
        return -0.5 * np.sum(r * r) - len(r) * np.log(sigma).sum()

    mean, sd = np.array([1, 0.05, 1, 0.05]), np.array([0.5, 0.05, 0.5, 0.05])
    return loglike, {
        "prior": {"theta": stats.truncnorm(-mean / sd, np.inf, loc=mean, scale=sd),
                  "z_init": (stats.lognorm(1, scale=10), 2),
                  "sigma": (stats.lognorm(1, scale=np.exp(-1)), 2)}}


@posterior("one_comp_mm_elim_abs-one_comp_mm_elim_abs")
def elimination(data):
    times = np.append(data["t0"], data["times"])
    logs, dose, volume = np.log(data["C_hat"]), data["D"], data["V"]

    def rates(y, t, k_a, K_m, V_m):
        taken = np.exp(-k_a * t) * dose * k_a
        return (taken - V_m * y[0] / (K_m + y[0])) / volume,

    def loglike(k_a, K_m, V_m, sigma):
        path = solved(rates, [0.0], times, (k_a, K_m, V_m), rtol=1e-8, atol=1e-10)
        if path is None or path.min() <= 0:
            return -np.inf
        r = (logs - np.log(path[:, 0])) / sigma
        return -0.5 * (r @ r) - len(r) * np.log(sigma)

    return loglike, {
        "prior": dict.fromkeys(["k_a", "K_m", "V_m", "sigma"], stats.halfcauchy())}
