"""The noise of an estimated density."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.target import Target
from fastkam.arguments import check_array, check_generator, check_integer, check_vector, shown
from fastkam.density.estimator import Estimator
from fastkam.problem.described import Described

# standard deviations of the log of an estimate with which a chain is most efficient for its work
USEFUL = 0.92, 1.5


@dataclass(frozen=True)
class NoiseCheck:
    """The noise of an estimated density at a point.

    Attributes
    ----------
    x : ndarray, shape (d,)
        The point, of a `Problem` its parameters.
    what : str
        "estimate": the log of one estimate, if its noise is drawn independently at each step; or
        "difference": the difference of two log estimates whose noise is correlated as in a step.
    n : int
        Number of estimates or differences.
    variance, variance_error : float
        Variance of the log estimate or difference, and its standard error; NaN if any estimate was
        0.
    zeros : int
        Number of estimates that were 0 or failed.
    useful : (float, float)
        Recommended range of the standard deviation.
    """

    x: NDArray[np.float64]
    what: str
    n: int
    variance: float
    variance_error: float
    zeros: int
    useful: tuple[float, float]

    @property
    def sd(self) -> float:
        """The standard deviation."""
        return float(np.sqrt(self.variance))

    @property
    def verdict(self) -> str:
        """"low", "useful" or "high", up to two standard errors.

        "zeros" if any estimate was 0; "none" if all were equal.
        """
        if self.zeros:
            return "zeros"
        if self.variance == 0:
            return "none"
        slack = 2 * self.variance_error
        if self.variance + slack < self.useful[0] ** 2:
            return "low"
        return "high" if self.variance - slack > self.useful[1] ** 2 else "useful"

    def __str__(self) -> str:
        what = "log estimate" if self.what == "estimate" else "difference of two log estimates"
        if self.zeros:
            return f"{self.zeros} of {self.n} estimates are 0: the {what} has no variance"
        if self.variance == 0:
            return (f"all {self.n} estimates are equal: the function does not depend on its noise "
                    "(does it draw random numbers of its own, with a fixed seed?)")
        low, high = self.useful
        advice = {
            "low": "fewer terms in an estimate would do as well, for less work",
            "useful": "this is where a chain is most efficient for its work",
            "high": "chains will stick: more terms in an estimate are needed, or correlated noise",
        }[self.verdict]
        return (f"the variance of the {what} is {self.variance:.3g} +- {self.variance_error:.2g}, "
                f"its standard deviation {self.sd:.3g}; {low:.2f} to {high:.2f} is useful: "
                f"{advice}")


def check_noise(
    target: Target | Estimator | Described, x: Any, n: int = 1000, *, seed: Any = None
) -> NoiseCheck:
    """Measure the noise of an estimated density, and compare it with the recommended range.

    More work for an estimate lowers its variance. If all noise is drawn independently at each step,
    the best standard deviation of the log estimate, at a point where the density is high, is 0.92
    (Pitt et al.) to 1.5 (Doucet et al.). If a part of the noise is kept, the difference of two
    estimates matters: its standard deviation should be sqrt(2) times as large, as it is for two
    independent estimates.

    Parameters
    ----------
    target : Target or Problem
        What `Target.from_estimator` returns, or a `Problem` of it.
    x : array (d,), or dict
        The point, best near the mode; of a `Problem` its parameters, an array or a dict by name.
    n : int
        Number of estimates or differences.
    seed : int, SeedSequence or Generator, optional

    Returns
    -------
    NoiseCheck
        Prints as a sentence.

    Raises
    ------
    TypeError, ValueError
        If the target is not estimated, or x is no point.

    References
    ----------
    Pitt, M. K., Silva, R. S., Giordani, P. and Kohn, R. (2012). On some properties of Markov chain
    Monte Carlo simulation methods based on the particle filter. Journal of Econometrics 171,
    134-151. Doucet, A., Pitt, M. K., Deligiannidis, G. and Kohn, R. (2015). Efficient
    implementation of Markov chain Monte Carlo when using an unbiased likelihood estimator.
    Biometrika 102, 295-313.
    """
    given: Any = target
    if isinstance(given, Described):
        point = check_vector("x", given.as_array("x", x))
        given, z = given.target(), given.unconstrain(point)
    elif isinstance(x, Mapping):
        raise TypeError("target must be fk.Problem(estimator, prior, kwargs=...) where x is a "
                        f"dict, not {shown(target)}")
    else:
        point = z = check_vector("x", x)
    if isinstance(given, Estimator):
        given = given.target(z.size)
    if not (isinstance(given, Target) and given.is_estimate):
        raise TypeError("target must be made by Target.from_estimator, or be a Problem of such, "
                        f"not {shown(target)}")
    check_array("x", z, shape=(given.dim,))
    n = check_integer("n", n, least=10)
    rng = check_generator("seed", seed)
    correlated = given.correlation > 0 or given.blocks > 1
    values = np.empty(n)
    for i in range(n):
        u = rng.standard_normal(given.n_aux)
        values[i] = given.estimate(z, u)
        if correlated:
            with np.errstate(invalid="ignore"):
                values[i] = given.estimate(z, refreshed(given, u, rng)) - values[i]
    zeros = int((~np.isfinite(values)).sum())
    variance, error = np.nan, np.nan
    if zeros == 0:
        variance = values.var(ddof=1) if np.ptp(values) > 0 else 0.0  # not that of rounding
        fourth = ((values - values.mean()) ** 4).mean()
        error = np.sqrt(max(fourth - variance**2 * (n - 3) / (n - 1), 0) / n)
    low, high = np.array(USEFUL) * (np.sqrt(2) if correlated else 1)
    return NoiseCheck(point, "difference" if correlated else "estimate", n, float(variance),
                      float(error), zeros, (float(low), float(high)))


def refreshed(target: Target, u: NDArray[np.float64], rng: Any) -> NDArray[np.float64]:
    """The noise (n_aux,) that a step from the noise u would propose."""
    rho, k, G = target.correlation, len(u), target.blocks
    if rho > 0:
        return np.asarray(rho * u + np.sqrt(1 - rho**2) * rng.standard_normal(k))
    b = int(rng.integers(G))
    v = u.copy()
    v[b * k // G : (b + 1) * k // G] = rng.standard_normal((b + 1) * k // G - b * k // G)
    return v
