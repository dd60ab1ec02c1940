"""Means and standard deviations of the posteriors, in references.json.

By conjugacy and quadrature where these give them; by importance sampling in few dimensions, where
it is more exact than runs and sees the long tails that chains of different samplers may both miss;
otherwise from two long runs of different samplers, NUTS and the default without a gradient (HMC,
where there are too many dimensions for it), which must agree: the moments of the one with the
smaller error are kept, with that error.
"""

import json
import warnings
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import digamma, polygamma

import fastkam as fk
from bench.posteriors.densities import POSTERIORS, dynamics, regressions, series
from fastkam.search.mixture import Mixture

FILE = Path(__file__).with_name("references.json")
DRAWS = 25_000          # of each of four chains of NUTS
OTHER_DRAWS = 10_000    # of the other sampler, thinned
LEAST_EXACT = 0.02      # standard errors of means, in standard deviations
MOST_APART = 4.5        # Monte Carlo standard errors between the two
MOMENTS = ("mean", "sd", "mcse_mean", "mcse_sd")
ROUNDS, POINTS = 5, 1_000_000   # of importance sampling; points of the last round
STATES, BATCHES = 4000, 20     # to which its mixtures are fitted; for its errors
NARROW, WIDER = 0.7, 1.8       # share of points from one mixture; by how much the other is wider
EPIDEMIC_GRIDS = (  # of log gamma, beta - gamma and log I(0)
    np.linspace(-5, 2.5, 151), np.linspace(0.1, 0.8, 141), np.linspace(-9.5, -3.5, 121))
FREE, ORDERED = "mixture, labels free", "mixture, labels ordered"


def summed(log_weights, means, variances):
    """(mean, sd) of a mixture: log weights (n,), means and variances (n, d)."""
    w = np.exp(log_weights - log_weights.max())
    w /= w.sum()
    mean = w @ means
    return mean, np.sqrt(w @ (variances + (means - mean) ** 2))


def conjugate(model):
    """Return moments of a `NormalLinear`: b is Student's, s^2 inverse gamma."""
    n, p = model.X.shape
    P = model.X.T @ model.X + np.eye(p) / model.width
    m = np.linalg.solve(P, model.X.T @ model.y)
    a = model.a + n / 2
    c = model.c + 0.5 * (model.y @ model.y - m @ P @ m)
    variance = np.diag(np.linalg.inv(P)) * c / (a - 1)
    return (np.append(m, 0.5 * (np.log(c) - digamma(a))),
            np.append(np.sqrt(variance), 0.5 * np.sqrt(polygamma(1, a))))


def normal_given(one, which, grids):
    """Return moments of a density that is normal given the coordinates `which`: a sum over a grid.

    Mean, precision and determinant of the normal part are read off the gradient, which is linear.
    """
    others = np.setdiff1d(range(one.d), which)
    logs, means, variances = [], [], []
    for point in np.stack(np.meshgrid(*grids), axis=-1).reshape(-1, len(which)):
        x = np.zeros(one.d)
        x[which] = point
        g = one.logp_and_grad(x)[1][others]
        P = np.empty((len(others), len(others)))
        for k, j in enumerate(others):
            x[j] = 1.0
            P[k] = g - one.logp_and_grad(x)[1][others]
            x[j] = 0.0
        C = np.linalg.inv(0.5 * (P + P.T))
        x[others] = C @ g
        logs.append(one.logp(x) + 0.5 * np.linalg.slogdet(C)[1])
        means.append(x)
        variances.append(np.zeros(one.d))
        variances[-1][others] = np.diag(C)
    return summed(np.array(logs), np.array(means), np.array(variances))


def on_grid(logp, grids):
    """(mean, sd) by a sum over a grid."""
    points = np.stack(np.meshgrid(*grids), axis=-1).reshape(-1, len(grids))
    return summed(np.array([logp(x) for x in points]), points, np.zeros(points.shape))


def of_product(one):
    """On a grid of log x and log (x y)."""
    U = np.stack(np.meshgrid(np.linspace(-6, 6, 1201), np.linspace(0.3, 1.1, 401)), -1)
    U = U.reshape(-1, 2)
    X = np.exp(np.c_[U[:, 0], U[:, 1] - U[:, 0]])
    logs = np.array([one.logp(x) for x in X]) + np.log(X).sum(axis=1)
    return summed(logs, X, np.zeros(X.shape))


def susceptible(beta, gamma, infected):
    """Fractions not infected after each day, (days + 1, n), from rates and a first fraction (n,).

    `dynamics.Interaction` for many parameters at once.
    """
    p, q = np.log1p(-infected), np.log(infected)
    path = [p]
    for step in range(2 * dynamics.DAYS):
        k, m = np.zeros((4, len(p))), np.zeros((4, len(p)))
        for stage, ahead in enumerate((0, 0.25, 0.25, 0.5)):
            k[stage] = -beta * np.exp(q + ahead * m[stage - 1])
            m[stage] = beta * np.exp(p + ahead * k[stage - 1]) - gamma
        weights = np.array([1, 2, 2, 1]) / 12
        p, q = p + weights @ k, q + weights @ m
        if step % 2:
            path.append(p)
    return np.exp(path)


def epidemic_given(log_gamma, growth, log_infected):
    """(log density without its terms in u, infected in all) at the rows of three arrays (n,).

    The density is that of log gamma, growth = beta - gamma and log I(0).
    """
    gamma = np.exp(log_gamma)
    beta = gamma + growth
    with np.errstate(all="ignore"):
        fresh = -np.diff(susceptible(beta, gamma, np.exp(log_infected)), axis=0)
        X = np.array([np.log(beta), log_gamma, log_infected]).T
        z = (X - dynamics.SIR_PRIOR[:3, 0]) / dynamics.SIR_PRIOR[:3, 1]
        logs = dynamics.CASES_A_DAY @ np.log(fresh) - 0.5 * (z * z).sum(axis=1) - X[:, 0]
    return np.where(np.isfinite(logs), logs, -np.inf), fresh.sum(axis=0), X


def epidemic(grids=EPIDEMIC_GRIDS):
    """Return moments on a grid of log gamma, growth and log I(0), with sums over u at each point.

    The sums depend on the infected in all alone, and are interpolated between 4000 values of it.
    """
    u, share = np.linspace(-5, 12, 1700), np.linspace(1e-3, 1, 4000)
    rho, cases = 0.5 * (1 + np.tanh(0.5 * u)), dynamics.CASES_A_DAY.sum()
    logs = (cases * np.log(rho) - dynamics.PEOPLE * np.outer(share, rho)
            - 0.5 * ((u - dynamics.SIR_PRIOR[3, 0]) / dynamics.SIR_PRIOR[3, 1]) ** 2)
    high = logs.max(axis=1)
    w = np.exp(logs - high[:, None])
    sums = w.sum(axis=1)
    mean_u = w @ u / sums
    of_u = high + np.log(sums), mean_u, w @ u**2 / sums - mean_u**2
    found = []
    for log_gamma in grids[0]:
        rest = np.stack(np.meshgrid(*grids[1:], indexing="ij"), axis=-1).reshape(-1, 2).T
        value, infected, X = epidemic_given(np.full(rest.shape[1], log_gamma), *rest)
        total, mean, variance = (np.interp(infected, share, one) for one in of_u)
        keep = np.isfinite(value)
        found.append(np.c_[value + total, X, mean, variance][keep])
    found = np.concatenate(found)
    found = found[found[:, 0] > found[:, 0].max() - 40]
    variances = np.zeros((len(found), 4))
    variances[:, 3] = found[:, 5]
    return summed(found[:, 0], found[:, 1:5], variances)


EXACT = {
    "linear regression, correlation 0.99": lambda one: conjugate(regressions.LINEAR),
    "AR(2)": lambda one: conjugate(series.AR),
    "eight schools, centered": lambda one: normal_given(one, [1], [np.linspace(-12, 7, 2000)]),
    "eight schools, non-centered": lambda one: normal_given(one, [1], [np.linspace(-12, 7, 2000)]),
    "levels of 16 groups, centered": lambda one: normal_given(
        one, [18, 19], [np.linspace(-5, 1.5, 100), np.linspace(-1.2, 0.6, 40)]),
    "Gaussian process": lambda one: on_grid(
        one.logp, [np.linspace(-0.6, 1.8, 41), np.linspace(-1.2, 2.8, 41),
                   np.linspace(-1.8, -0.5, 31)]),
    "product of two, known": of_product,
    "SIR epidemic": lambda one: epidemic(),
}
WEIGHTED = ("logistic growth", "Lotka-Volterra", "logistic regression, raw predictors",
            "Poisson regression", "regression, Student errors", "GARCH(1, 1)", ORDERED)


def moments(draws):
    """Return the moments MOMENTS, (4, d)."""
    columns = fk.diagnostics.summary(draws)
    return np.array([columns[name] for name in MOMENTS])


def rounded(rows):
    """Lists for a file, with six digits."""
    return [[float(f"{v:.6g}") for v in row] for row in rows]


def errors(name, four):
    """(whether moments (4, d) are right, the largest error in standard deviations).

    Right is within 4 Monte Carlo standard errors, and within the posterior's tolerance.
    """
    truth = load()[name]
    sd, right, worst = np.array(truth["sd"]), True, 0.0
    for k, key in enumerate(MOMENTS[:2]):
        off = np.abs(np.array(four[k]) - truth[key])
        mcse = np.hypot(four[k + 2], truth[f"mcse_{key}"])
        right &= bool(((off < 4 * mcse) & (off < POSTERIORS[name].tolerance * sd)).all())
        worst = max(worst, float((off / sd).max()))
    return right, worst


def by_runs(name, one):
    """(moments (4, d), how far apart the two samplers are, in Monte Carlo standard errors)."""
    options = {"progress": False, "keep_warmup": False, "keep_stats": False, "threads": 1,
               "check_gradient": False, "seed": 20}
    if False in one.uses:
        other = fk.sample(one.logp, one.x0, draws=OTHER_DRAWS, **options)
    else:
        other = fk.sample(one.logp_and_grad, one.x0, sampler=fk.HMC(n_steps=16), tune=4000,
                          draws=2 * DRAWS, **options)
    # where the other has been, so that no chain is left behind in what it must not be in
    nuts = fk.sample(one.logp_and_grad, other.draws[:, -1], sampler=fk.NUTS(target_acceptance=0.9),
                     draws=DRAWS, tune=2000, **options)
    a, b = moments(nuts.draws), moments(other.draws)
    apart = np.abs(a[:2] - b[:2]) / np.hypot(a[2:], b[2:])
    best = a if np.median(a[2] / b[2]) < 1 else b
    if (best[2] > LEAST_EXACT * best[1]).any():
        warnings.warn(f"{name}: the reference is not exact enough", stacklevel=2)
    return best, float(apart.max())


def weighted_points(one):
    """Return points (n, d) and weights (n,) from importance sampling of a mixture.

    It is fitted to a run of the default sampler, and then to the weighted points of each round, in
    which points far out have a share of their own: they determine the standard deviations. With it
    goes one fitted to the same states spread out, so that no weight is large.
    """
    found = fk.sample(one.logp, one.x0, draws=STATES, thin=5, seed=5, progress=False).draws
    states = found.reshape(-1, one.d)[::4]
    for k in range(ROUNDS):
        rng, middle = np.random.default_rng(k), states.mean(axis=0)
        narrow = Mixture.fitted(states, rng, 16, STATES)
        wide = Mixture.fitted(middle + WIDER * (states - middle), rng, 8, STATES)
        n = POINTS if k == ROUNDS - 1 else POINTS // 10
        x = np.vstack([narrow.draw(int(NARROW * n), rng), wide.draw(n - int(NARROW * n), rng)])
        log_w = np.array([one.logp(point) for point in x]) - np.logaddexp(
            np.log(NARROW) + narrow.log_density(x), np.log(1 - NARROW) + wide.log_density(x))
        w = np.exp(log_w - np.nanmax(log_w))
        w = np.nan_to_num(w) / np.nansum(w)
        far = (x - w @ x) ** 4
        p = w * (1 + (far / (w @ far)).mean(axis=1))
        states = x[rng.choice(n, STATES, p=p / p.sum())]
    return x, w


def by_weights(x, w):
    """(moments (4, d), effective number of points) of points (n, d) with weights (n,)."""
    batches = np.array([weighted(x[part], w[part]) for part in np.array_split(
        np.random.default_rng(ROUNDS).permutation(len(x)), BATCHES)])
    return np.r_[weighted(x, w), batches.std(axis=0) / np.sqrt(BATCHES)], w.sum()**2 / (w @ w)


def weighted(x, w):
    """Mean and sd (2, d) of points x (n, d) with weights w (n,)."""
    mean = w @ x / w.sum()
    return np.array([mean, np.sqrt(w @ (x - mean) ** 2 / w.sum())])


def without_labels(x, w):
    """Points and weights of the mixture with free labels, from (m1, log (m2 - m1), ...) (n, 5)."""
    m1, u, s1, s2, v = x.T
    m2 = m1 + np.exp(u)
    return np.vstack([np.c_[m1, m2, s1, s2, v], np.c_[m2, m1, s2, s1, -v]]), np.r_[w, w]


def make(names):
    """Compute the references of these posteriors, and keep them with the others."""
    for name in names:
        one, apart = POSTERIORS[name], None
        if name in EXACT:
            four = np.r_[np.array(EXACT[name](one)), np.zeros((2, one.d))]
            how = "conjugacy" if name in ("AR(2)", "linear regression, correlation 0.99") else (
                "quadrature")
        elif name in WEIGHTED:
            four, size = by_weights(*weighted_points(one))
            how = f"importance sampling, {size:.0f} effective points"
        elif name == FREE:      # by symmetry, from the ordered one
            four, size = by_weights(*without_labels(*weighted_points(POSTERIORS[ORDERED])))
            how = f"symmetry, from the ordered mixture, {size / 2:.0f} effective points"
        else:
            four, apart = by_runs(name, one)
            how = "two samplers"
        if apart is not None and apart > MOST_APART:
            warnings.warn(f"{name}: the two samplers are {apart:.1f} standard errors apart",
                          stacklevel=2)
        found = json.loads(FILE.read_text()) if FILE.exists() else {}
        found[name] = {"how": how, "draws": 0 if apart is None else 4 * DRAWS,
                       "apart": None if apart is None else round(apart, 2),
                       **dict(zip(MOMENTS, rounded(four), strict=True))}
        print(f"{name}: {how}" + (f", {apart:.1f} standard errors apart" if apart else ""),
              flush=True)
        FILE.write_text(json.dumps(found, indent=1) + "\n")


@cache
def load():
    """Name -> {how, mean, sd, ...}"""
    return json.loads(FILE.read_text())
