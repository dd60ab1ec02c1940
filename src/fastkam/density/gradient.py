"""Checks of gradients by finite differences with error estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.python_target import MissingGradient
from fastkam._core.density.target import Target
from fastkam.arguments import real_array, shown
from fastkam.density.forms import as_target, needs_gradient
from fastkam.errors import SamplingWarning, warn

if TYPE_CHECKING:
    from fastkam.problem.problem import Problem

STEP = 1e-3  # of 1 + |x|: large because of noise in the density; differences are extrapolated to 0
TOLERANCE = 1e-4
SAFETY = 10.0  # times the estimated error of the difference
JITTER = 0.01  # of 1 + |x|: at a mode the gradient is 0, which tests nothing


@dataclass(frozen=True)
class GradientCheck:
    """Comparison of a gradient with finite differences of its density.

    Attributes
    ----------
    x, gradient, numerical : ndarray, shape (d,)
        The point, the target's gradient there, and central differences extrapolated to step 0. Of
        a Problem they are those of its function, in the user's coordinates.
    error : ndarray, shape (d,)
        Estimated error of `numerical`.
    wrong : ndarray of bool, shape (d,)
        The coordinates in which the two differ by more than 10 errors and 1e-4 of the norm.
    labels : tuple of str
        The names of the coordinates of a Problem; empty for others.
    """

    x: NDArray[np.float64]
    gradient: NDArray[np.float64]
    numerical: NDArray[np.float64]
    error: NDArray[np.float64]
    wrong: NDArray[np.bool_]
    labels: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no coordinate is wrong."""
        return not self.wrong.any()

    @property
    def worst(self) -> int:
        """The coordinate with the largest difference, among the wrong ones if there are any."""
        off = np.abs(self.gradient - self.numerical)
        return int(np.argmax(np.where(self.wrong, off + 1e-300, 0) if self.wrong.any() else off))

    def __str__(self) -> str:
        j, d = self.worst, len(self.x)
        name = self.labels[j] if self.labels else f"coordinate {j}"
        numbers = (f"{name}: gradient {self.gradient[j]:.8g}, "
                   f"finite difference {self.numerical[j]:.8g} +- {self.error[j]:.1g}")
        if self.ok:
            return f"the gradient agrees with the density; the largest difference is at {numbers}"
        return (f"the gradient disagrees with the density in {self.wrong.sum()} of {d} "
                f"coordinates; {numbers}")


def check_gradient(target: Any, x: Any, *, vectorized: bool = False) -> GradientCheck:
    """Compare a target's gradient with finite differences of its log density, by coordinate.

    Parameters
    ----------
    target : Target, Problem, callable or pointer
        A density with a gradient, in any form that `as_target` takes. Of a `fastkam.Problem`, the
        gradient of its function is checked: differences of the density are taken along the
        unconstrained coordinates, so that they stay within bounds, and converted to those of x. On
        a simplex the derivative along one direction does not show in them, and is not checked.
    x : array (d,) or dict
        The point; the density must be finite there. Of a Problem, it is in the user's coordinates,
        as an array or as a dict of parameters by name.
    vectorized : bool
        The Python function takes points (k, d).

    Returns
    -------
    GradientCheck
        It takes 4 d evaluations of the density, and one of the gradient.

    Raises
    ------
    ValueError
        If the density or the gradient is not finite at `x`, or the target has no gradient.

    Examples
    --------
    >>> import fastkam as fk
    >>> check = fk.check_gradient(lambda x: (-0.5 * x @ x, +x), [1.0, 2.0])
    >>> check.ok, check.wrong
    (False, array([ True,  True]))
    >>> def loglike(mu, sigma):
    ...     return -0.5 * (mu / sigma) ** 2, {"mu": -mu / sigma**2, "sigma": mu / sigma**3}
    >>> problem = fk.Problem(loglike, {"mu": None, "sigma": None}, bounds={"sigma": (0, None)})
    >>> print(fk.check_gradient(problem, {"mu": 2.0, "sigma": 0.5}))  # doctest: +ELLIPSIS
    the gradient disagrees ... in 1 of 2 coordinates; sigma: gradient 16, finite difference ...
    """
    if hasattr(target, "inner") and hasattr(target, "layout"):  # a Problem
        return of_problem(target, target.as_array("x", x))
    x = real_array("x", x)
    if x.ndim != 1 or not x.size or not np.isfinite(x).all():
        raise ValueError(f"x must be one finite point (d,), not {shown(x)}")
    made = as_target(target, len(x), vectorized=vectorized, gradient=True)
    needs_gradient(made, "check_gradient")
    value, gradient = made.logp_grad(x)
    if not (np.isfinite(value) and np.isfinite(gradient).all()):
        raise ValueError(f"x = {x} has log density {value} and gradient {gradient}")
    found = [derivative(made, x, row) for row in np.diag(1 + np.abs(x))]
    scale = 1 + np.abs(x)
    numerical, error = np.array(found).T / scale
    size = np.linalg.norm(gradient * scale) / scale
    return GradientCheck(x, gradient, numerical, error, differ(gradient, numerical, error, size))


def derivative(target: Target, x: NDArray[np.float64], u: NDArray[np.float64]) -> Any:
    """d/dh log pi(x + h u) at h = 0 and its estimated error, (2,)."""
    h = STEP * np.array([1.0, -1.0, 0.5, -0.5])
    f = np.array([target.logp(x + a * u) for a in h])
    wide, narrow = (f[0] - f[1]) / (2 * h[0]), (f[2] - f[3]) / (2 * h[2])
    with np.errstate(over="ignore"):  # whether the function computes in single precision
        single = bool((f == f.astype(np.float32)).all())
    rounding = (1e-7 if single else 1e-15) * np.abs(f).max() / h[2]
    return np.array([narrow + (narrow - wide) / 3, np.abs(narrow - wide) + rounding])


def differ(gradient: Any, numerical: Any, error: Any, size: Any) -> Any:
    """Whether derivatives differ by more than the error of the finite differences."""
    return ~(np.abs(gradient - numerical) <= SAFETY * error + TOLERANCE * size)


def of_problem(problem: Problem, x: NDArray[np.float64]) -> GradientCheck:
    """Compare the gradient of a problem's function at the user's x with finite differences."""
    n = len(problem.layout.labels)
    if x.shape != (n,) or not np.isfinite(x).all():
        raise ValueError(f"x must be one finite point ({n},) in the coordinates of the problem, "
                         f"not {shown(x)}")
    z = problem.coordinates.unconstrain(x, "x")
    return of_function(check_gradient(problem.target(gradient=True), z), problem)


def of_function(check: GradientCheck, problem: Problem) -> GradientCheck:
    """Return a check of the density of z as one of the gradient of the user's function of x.

    A difference of the gradients is multiplied by dz / dx. Where z determines several elements of
    x, as those of a simplex, this leaves the derivative along one of them unknown.
    """
    x, off = problem.constrain(check.x), check.gradient - check.numerical
    _, given = problem.inner(gradient=True).logp_grad(x)
    slopes = slopes_at(check, problem)
    size = np.abs(slopes).max(axis=0)
    size[size == 0] = 1.0
    dz = np.linalg.pinv(slopes / size) / size[:, None]
    return GradientCheck(x, given, given - dz @ off, np.abs(dz) @ check.error,
                         (slopes[check.wrong] != 0).any(axis=0), tuple(problem.layout.labels))


def slopes_at(check: GradientCheck, problem: Problem) -> NDArray[np.float64]:
    """The derivatives dx / dz at the point z of a check, (dim, n_x), by differences."""
    steps = STEP * np.diag(1 + np.abs(check.x))
    apart = problem.constrain(check.x + steps) - problem.constrain(check.x - steps)
    return np.asarray(apart / (2 * np.diagonal(steps))[:, None])


def of_parameters(check: GradientCheck, problem: Problem) -> str:
    """Return a check of the density of z as text, for the gradient of the user's function of x."""
    x, off = problem.constrain(check.x), check.gradient - check.numerical
    _, given = problem.inner(gradient=True).logp_grad(x)
    slopes = slopes_at(check, problem)
    off = np.asarray(np.linalg.lstsq(slopes, np.where(check.wrong, off, 0.0))[0], np.float64)
    j = int(np.abs(off).argmax())
    numbers = "" if np.count_nonzero(slopes[:, j]) > 1 else (
        f": gradient {given[j]:.8g}, finite difference {given[j] - off[j]:.5g}")
    return (f"the gradient disagrees with the function; {problem.layout.labels[j]}{numbers}, at x "
            f"= {np.array2string(x, threshold=8)}")


def check_start(
    target: Target, x0: NDArray[np.float64], problem: Any = None
) -> str:
    """Warn if the gradient near a starting point disagrees with the density, and return how.

    If the target is the density of a Problem, the text is on the gradient of its function.

    One derivative in a random direction is tested (5 evaluations), and only if it is wrong each
    coordinate. Errors of the density are ignored here: the run reports them.
    """
    rng = np.random.default_rng(20)
    scale = 1 + np.abs(x0)
    try:
        for x in (x0 + JITTER * scale * rng.standard_normal(len(x0)), x0):
            value, gradient = target.logp_grad(x)
            if np.isfinite(value) and np.isfinite(gradient).all():
                break
        else:
            return ""
        u = scale * rng.standard_normal(len(x0))
        numerical, error = derivative(target, x, u)
        size = np.linalg.norm(gradient * u)
        if not np.isfinite(numerical) or not differ(gradient @ u, numerical, error, size):
            return ""
        check = check_gradient(target, x)
    except MissingGradient:
        raise
    except Exception:
        return ""
    if check.ok:
        return ""
    text = (f"{check}, at x = {np.array2string(x, threshold=8)}" if not hasattr(problem, "inner")
            else of_parameters(check, problem))
    warn(SamplingWarning(f"{text}. Correct it: with a wrong gradient chains may move slowly, or "
                         "not at all (check_gradient=False leaves out this check)"))
    return text
