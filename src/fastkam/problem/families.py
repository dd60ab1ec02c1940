"""Distributions of scipy.stats whose log density and gradient are compiled: their parameters.

Each function takes the shape parameters and the scale as flat arrays (n,), and returns the kind of
`fastkam._core.density.prior` with a, b and the constant of the log density, and the scale. If the
formula of the constant would lose digits, the constant comes from scipy's log density at a point.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from fastkam._core.numerics.elementary import log

Array = NDArray[np.float64]
Entry = tuple[str, Any, Any, Any, Any]  # kind, a, b, constant, scale

ROOT = 0.5 * log(2 * np.pi)


def norm(scale: Array) -> Entry:
    return "normal", 0.0, 0.0, -ROOT - log(scale), scale


def halfnorm(scale: Array) -> Entry:
    return "normal", 0.0, 0.0, log(2) - ROOT - log(scale), scale


def truncnorm(a: Array, b: Array, scale: Array) -> Entry:
    at = np.clip(0.0, a, b)
    constant = scipy.stats.truncnorm.logpdf(at, a, b) + 0.5 * at**2 - log(scale)
    return "normal", 0.0, 0.0, constant, scale


def uniform(scale: Array) -> Entry:
    return "flat", 0.0, 0.0, -log(scale), scale


def expon(scale: Array) -> Entry:
    return "exponential", 0.0, 0.0, -log(scale), scale


def gamma(a: Array, scale: Array) -> Entry:
    return "gamma", a, 0.0, -scipy.special.gammaln(a) - a * log(scale), scale


def chi2(df: Array, scale: Array) -> Entry:
    return gamma(df / 2, 2 * scale)


def invgamma(a: Array, scale: Array) -> Entry:
    return "invgamma", a, 0.0, a * log(scale) - scipy.special.gammaln(a), scale


def beta(a: Array, b: Array, scale: Array) -> Entry:
    return "beta", a, b, -scipy.special.betaln(a, b) - (a + b - 1) * log(scale), scale


def cauchy(scale: Array) -> Entry:
    return "cauchy", 0.0, 0.0, -log(np.pi) - log(scale), scale


def halfcauchy(scale: Array) -> Entry:
    return "cauchy", 0.0, 0.0, log(2 / np.pi) - log(scale), scale


def t(df: Array, scale: Array) -> Entry:
    return "student", df, 0.0, scipy.stats.t.logpdf(0.0, df) - log(scale), scale


def lognorm(s: Array, scale: Array) -> Entry:
    return "lognormal", s, 0.0, -ROOT - log(s), scale


def laplace(scale: Array) -> Entry:
    return "laplace", 0.0, 0.0, -log(2) - log(scale), scale


def logistic(scale: Array) -> Entry:
    return "logistic", 0.0, 0.0, -log(scale), scale


def loguniform(a: Array, b: Array, scale: Array) -> Entry:
    return "loguniform", 0.0, 0.0, -log(log(b) - log(a)) - log(scale), scale


def weibull_min(c: Array, scale: Array) -> Entry:
    return "weibull", c, 0.0, log(c) - c * log(scale), scale


def pareto(b: Array, scale: Array) -> Entry:
    return "pareto", b, 0.0, log(b) - log(scale), scale


def rayleigh(scale: Array) -> Entry:
    return "rayleigh", 0.0, 0.0, -2 * log(scale), scale


def gumbel_r(scale: Array) -> Entry:
    return "gumbel", 1.0, 0.0, -log(scale), scale


def gumbel_l(scale: Array) -> Entry:
    return "gumbel", -1.0, 0.0, -log(scale), scale


def vonmises(kappa: Array, scale: Array) -> Entry:
    return "vonmises", kappa, 0.0, -log(2 * np.pi * scipy.special.i0e(kappa)) - log(scale), scale


@cache
def families() -> dict[type, Callable[..., Entry]]:
    """The functions by the class of the attribute ``.dist`` of a frozen distribution.

    Only a prior needs this: the import of scipy.stats takes longer than many runs.
    """
    found = {type(getattr(scipy.stats, function.__name__)): function for function in (
        norm, halfnorm, truncnorm, uniform, expon, gamma, chi2, invgamma, beta, cauchy, halfcauchy,
        t, lognorm, laplace, logistic, loguniform, weibull_min, pareto, rayleigh, gumbel_r,
        gumbel_l, vonmises)}
    return found | {type(scipy.stats.erlang): gamma}


BELOW, ABOVE = 1, 2
# the log distances to the ends of the support that a kind uses
LOGS = {"gamma": BELOW, "invgamma": BELOW, "beta": BELOW | ABOVE, "lognormal": BELOW,
        "weibull": BELOW, "rayleigh": BELOW}
