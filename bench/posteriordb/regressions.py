"""Linear regressions, most with flat priors, and an autoregression."""

import numpy as np
from scipy import stats

from bench.posteriordb.database import posterior


def design(*columns):
    """The columns after one of ones."""
    return np.column_stack([np.ones(len(columns[0])), *columns])


def normal_errors(X, y):
    """y ~ N(X beta, sigma^2)."""

    def loglike(beta, sigma):
        r = y - X @ beta
        return -0.5 * (r @ r) / sigma**2 - len(y) * np.log(sigma)

    return loglike


def flat(X, y):
    """The same with flat priors."""
    return normal_errors(X, y), {
        "prior": {"beta": (None, X.shape[1]), "sigma": None}, "bounds": {"sigma": (0, None)}}


@posterior("earnings-earn_height")
def earnings(data):
    return flat(design(data["height"]), data["earn"])


@posterior("earnings-logearn_interaction")
def log_earnings(data):
    height, male = data["height"], data["male"]
    return flat(design(height, male, height * male), np.log(data["earn"]))


# ---- test scores of children by their mothers' schooling and test scores ----


def scores(X, y):
    return normal_errors(X, y), {
        "prior": {"beta": (None, X.shape[1]), "sigma": stats.halfcauchy(scale=2.5)}}


@posterior("kidiq-kidscore_momhsiq")
def kidiq(data):
    return scores(design(data["mom_hs"], data["mom_iq"]), data["kid_score"])


@posterior("kidiq-kidscore_interaction")
def kidiq_interaction(data):
    school, iq = data["mom_hs"], data["mom_iq"]
    return scores(design(school, iq, school * iq), data["kid_score"])


# ---- the weight of mesquite bushes by their measures ----

MEASURES = ("diam1", "diam2", "canopy_height", "total_height", "density")


@posterior("mesquite-mesquite")
def mesquite(data):
    return flat(design(*(data[key] for key in MEASURES), data["group"]), data["weight"])


@posterior("mesquite-logmesquite")
def log_mesquite(data):
    logs = [np.log(data[key]) for key in MEASURES]
    return flat(design(*logs, data["group"]), np.log(data["weight"]))


@posterior("mesquite-logmesquite_logvas")
def mesquite_volume(data):
    one, other, canopy, total, density = (np.log(data[key]) for key in MEASURES)
    X = design(one + other + canopy, one + other, one - other, total, density, data["group"])
    return flat(X, np.log(data["weight"]))


# ---- party identification; summer temperatures by year ----


@posterior("nes1980-nes")
def nes(data):
    age = data["age_discrete"]
    X = design(data["real_ideo"], data["race_adj"], age == 2, age == 3, age == 4,
               data["educ1"], data["gender"], data["income"])
    return flat(X, data["partyid7"])


@posterior("kilpisjarvi_mod-kilpisjarvi")
def kilpisjarvi(data):
    x, y = data["x"], data["y"]

    def loglike(alpha, beta, sigma):
        r = y - alpha - beta * x
        return -0.5 * (r @ r) / sigma**2 - len(y) * np.log(sigma)

    return loglike, {
        "prior": {"alpha": stats.norm(data["pmualpha"], data["psalpha"]),
                  "beta": stats.norm(data["pmubeta"], data["psbeta"]), "sigma": None},
        "bounds": {"sigma": (0, None)}}


# ---- proper priors: correlated and independent predictors, diamonds, AR(5) ----


@posterior("sblrc-blr")
@posterior("sblri-blr")
def blr(data):
    return normal_errors(data["X"], data["y"]), {
        "prior": {"beta": (stats.norm(0, 10), 5), "sigma": stats.halfnorm(scale=10)}}


@posterior("diamonds-diamonds")
def diamonds(data):
    X, y = data["X"][:, 1:], data["Y"]
    centered = X - X.mean(axis=0)
    half_t = stats.truncate(10 * stats.make_distribution(stats.t)(df=3), lb=0)

    def loglike(b, Intercept, sigma):
        r = y - Intercept - centered @ b
        return -0.5 * (r @ r) / sigma**2 - len(y) * np.log(sigma)

    return loglike, {
        "prior": {"b": (stats.norm(0, 1), 24), "Intercept": stats.t(3, loc=8, scale=10),
                  "sigma": half_t}}


@posterior("arK-arK")
def autoregression(data):
    y, K = data["y"], data["K"]
    lags = np.column_stack([y[K - k : -k] for k in range(1, K + 1)])

    def loglike(alpha, beta, sigma):
        r = y[K:] - alpha - lags @ beta
        return -0.5 * (r @ r) / sigma**2 - len(r) * np.log(sigma)

    return loglike, {
        "prior": {"alpha": stats.norm(0, 10), "beta": (stats.norm(0, 10), K),
                  "sigma": stats.halfcauchy(scale=2.5)}}
