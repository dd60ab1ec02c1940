"""Posteriors of 2 to 10 dimensions in place of costly ones, with their moments.

Models of differential equations, regressions, time series and a Gaussian process are those of
`bench.posteriors`; the others have moments in closed form. Only NumPy and SciPy are used, so that
other packages can evaluate them.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from bench.first_answer.densities import CASES as FIRST
from bench.posteriors.densities import POSTERIORS

REFERENCES = json.loads(
    (Path(__file__).parents[1] / "posteriors" / "references.json").read_text())
MODELS = (
    "logistic growth", "Lotka-Volterra", "SIR epidemic", "eight schools, non-centered",
    "logistic regression, raw predictors", "Poisson regression",
    "linear regression, correlation 0.99", "regression, Student errors", "AR(2)", "GARCH(1, 1)",
    "Gaussian process", "mixture, labels ordered")
SHAPES = ("banana, d = 2", "exponential, d = 3")


@dataclass(frozen=True)
class Case:
    """A log density f(x), its start, means and standard deviations (d,); options of a run.

    `mcse` has the Monte Carlo errors of the means and of the standard deviations, if these come
    from draws.
    """

    f: Callable[[Any], float]
    x0: Any
    mean: Any
    sd: Any
    options: dict[str, Any] = field(default_factory=dict)
    mcse: tuple[Any, Any] = (0.0, 0.0)

    @property
    def d(self):
        return len(self.mean)


CASES: dict[str, Case] = {}
for name in MODELS:
    known = {key: np.array(REFERENCES[name][key]) for key in ("mean", "sd", "mcse_mean", "mcse_sd")}
    CASES[name] = Case(POSTERIORS[name].logp, POSTERIORS[name].x0, known["mean"], known["sd"],
                       mcse=(known["mcse_mean"], known["mcse_sd"]))
for name in SHAPES:
    CASES[name] = Case(FIRST[name].f, FIRST[name].x0, FIRST[name].mean, FIRST[name].sd)


def failing(x):
    """A standard normal density whose simulator fails where x_0 + x_1 > 2."""
    return np.nan if x[0] + x[1] > 2 else -0.5 * float(x @ x)


def two_modes(x):
    """Two normal components of standard deviations 1 and 0.7, 7 apart, of equal weights."""
    away = x - np.array([5.0, 4.9])
    return float(np.logaddexp(-0.5 * x @ x, -0.5 * away @ away / 0.49 - np.log(0.49)))


CASES["two modes, d = 2"] = Case(
    two_modes, np.array([0.5, -0.5]), np.array([2.5, 2.45]),
    np.sqrt((1 + 0.49) / 2 + np.array([2.5, 2.45]) ** 2))

u = stats.truncnorm(-np.inf, 2**0.5)  # (x_0 + x_1) / sqrt(2)
m, s = u.mean() / 2**0.5, ((u.var() + 1) / 2) ** 0.5
CASES["normal with a failing corner, d = 4"] = Case(
    failing, np.full(4, -0.5), np.array([m, m, 0, 0]), np.array([s, s, 1, 1]))
