"""The prior of one parameter, from a distribution of scipy.stats and a shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf, lgamma, prod
from numbers import Real
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from fastkam._core.linalg.decomposition import cholesky, inverse, product
from fastkam._core.numerics.elementary import log
from fastkam.arguments import check_integer, near, shown
from fastkam.problem.fallback import KernelDensity, Multivariate, Univariate
from fastkam.problem.families import LOGS, Entry, families
from fastkam.problem.lkj import LKJ

# (kind, n, loc, scale, a, b, constant, vector, matrix, object), see `fastkam._core.density.prior`
Draws = Callable[[int, Any], NDArray[np.float64]]  # (n, rng) -> (n, ...)
Row = tuple[str, int, float, float, float, float, float, Any, Any, Any]

NORMAL_DEGREES = 1e30  # of freedom, from which on a t distribution is a normal one
CIRCULAR = {"vonmises", "wrapcauchy"}  # scipy takes remainders after it has scaled their draws
MATRICES = {"matrix_normal", "matrix_t"}  # of any shape, such as (1, 3)
SPHERES = {  # distributions that have no density on an open set, and no transform here
    "wishart": "positive definite matrices", "invwishart": "positive definite matrices",
    "normal_inverse_gamma": "pairs", "vonmises_fisher": "unit vectors",
    "uniform_direction": "unit vectors", "ortho_group": "orthogonal matrices",
    "special_ortho_group": "orthogonal matrices", "unitary_group": "unitary matrices",
    "random_correlation": "correlation matrices, of which fastkam.LKJ is one distribution"}


@dataclass(frozen=True)
class ParameterPrior:
    """The prior of one parameter.

    Attributes
    ----------
    shape : tuple of int
    low, high : ndarray, shape (n,)
        Ends of the support of each of its n coordinates.
    logs : ndarray of int, shape (n,)
        Which log distances to the ends the density uses.
    rows : list of tuple
        Its factors.
    transform : str or None
        The only possible transform, or the default, if the support does not determine it.
    exchangeable : bool
        Whether the elements are independent and identically distributed.
    flat : bool
        Whether there is no prior, only bounds: the constant 1, improper if these are infinite.
    draw : callable or None
        ``draw(k, rng) -> (k, n)``.
    """

    shape: tuple[int, ...]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    logs: NDArray[np.int64]
    rows: list[Row]
    transform: str | None = None
    exchangeable: bool = False
    flat: bool = False
    draw: Callable[[int, Any], NDArray[np.float64]] | None = None

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return prod(self.shape)

    def ordered(self) -> ParameterPrior:
        """The prior of sorted vectors: n! times the density on the ordered vectors."""
        n = self.shape[-1]
        constant = 0.0 if self.flat else self.size // n * lgamma(n + 1)
        rows = [*self.rows, ("powers", 0, 0.0, 1.0, 0.0, 0.0, constant, None, None, None)]
        draw = self.draw

        def sort(k: int, rng: Any) -> NDArray[np.float64]:
            assert draw is not None
            return np.sort(draw(k, rng).reshape(k, -1, n), axis=-1).reshape(k, -1)

        return ParameterPrior(self.shape, self.low, self.high, self.logs, rows, self.transform,
                              True, self.flat, None if draw is None else sort)


def flat_prior(shape: tuple[int, ...], low: Any = -inf, high: Any = inf) -> ParameterPrior:
    """A flat prior, the constant 1, within bounds."""
    n = prod(shape)
    low, high = (np.array(np.broadcast_to(v, shape), dtype=float).reshape(-1) for v in (low, high))
    equal = bool((low == low[:1]).all() and (high == high[:1]).all())
    return ParameterPrior(shape, low, high, np.zeros(n, np.int64),
                          [("flat", n, 0.0, 1.0, 0.0, 0.0, 0.0, None, None, None)],
                          exchangeable=equal, flat=True)


def parameter_prior(
    name: str, value: Any, of_dims: tuple[int, ...] | None = None
) -> ParameterPrior:
    """The prior of a parameter from its entry in `prior`.

    `of_dims` is the shape of a univariate distribution for which no other is given.
    """
    shape = None
    check_no_bounds(name, value)
    if isinstance(value, tuple):
        if len(value) != 2:
            raise TypeError(f"prior[{name!r}] must be a distribution or a pair (distribution, "
                            f"shape), not {shown(value)}")
        value, shape = value
        sizes = [shape] if np.ndim(shape) == 0 else list(shape)
        shape = tuple(check_integer(f"the shape of prior[{name!r}]", n, least=1) for n in sizes)
        of_dims = None
    if value is None:
        return flat_prior(shape or of_dims or ())
    if isinstance(value, scipy.stats.rv_histogram):
        value = value()
    check_distribution(name, value)
    if isinstance(value, LKJ):
        return lkj_prior(value, shape or ())
    if isinstance(value, scipy.stats.gaussian_kde):
        return kernel_density_prior(
            value, shape or (of_dims if value.d == 1 else None) or ())
    if is_multivariate(value):
        return multivariate_prior(name, value, shape or ())
    return univariate_prior(name, value, shape, of_dims)


def check_distribution(name: str, value: Any) -> None:
    """Refuse an object that is not a frozen continuous distribution."""
    if isinstance(value, (type, scipy.stats.rv_continuous, scipy.stats.rv_discrete)) or (
            hasattr(value, "rvs") and not hasattr(value, "dist") and callable(value)):
        raise TypeError(f"prior[{name!r}] must be a distribution with its parameters, such as "
                        f"scipy.stats.norm(0, 1), not {shown(value)}")
    classes = {kind.__name__ for kind in type(value).__mro__}
    if "DiscreteDistribution" in classes or (
            hasattr(value, "logpmf") and not hasattr(value, "logpdf")):
        kind = value.dist.name if hasattr(value, "dist") else type(value).__name__
        raise TypeError(f"prior[{name!r}] must be continuous, and {kind} is discrete: sum "
                        "over such a parameter in the log density")
    if is_multivariate(value) and kind_of(value) in SPHERES:
        raise TypeError(f"prior[{name!r}] is a distribution of {SPHERES[kind_of(value)]}: that has "
                        "no transform here; give None and the shape as the prior, a transform of "
                        "your own (see fastkam.Transform), and add the log prior to the density")
    if not callable(getattr(value, "logpdf", None)):
        raise TypeError(f"prior[{name!r}] must be a distribution of scipy.stats, or None, not "
                        f"{shown(value)}{mend_of(name, value)}")


def mend_of(name: str, value: Any) -> str:
    """The text that says what to write in place of a value that is no distribution."""
    if isinstance(value, (Real, np.ndarray)) and not isinstance(value, bool):
        return (f": to keep {name!r} at this value, leave it out of prior and give "
                f"kwargs={{{name!r}: {shown(value)}}} to a function that takes names")
    if callable(value):
        return (f": if it depends on other parameters, give None as the prior of {name!r}, and add "
                "its log density to the function")
    known = {"normal": "norm", "gaussian": "norm", "exponential": "expon"} | {
        one: one for one in dir(scipy.stats) if hasattr(getattr(scipy.stats, one), "logpdf")}
    if isinstance(value, str) and value in known:
        return f": write scipy.stats.{known[value]}(...)"
    return near(value, known)


def check_no_bounds(name: str, value: Any) -> None:
    """Refuse a pair (low, high) with what to write in its place."""
    if not (isinstance(value, (tuple, list)) and len(value) == 2 and all(
            one is None or (np.isscalar(one) and np.isreal(one)) for one in value)):
        return
    low, high = value
    if isinstance(value, tuple) and low is None and high is not None:
        return  # no prior, and a shape
    ends = f"bounds={{{name!r}: ({low}, {high})}} and prior={{{name!r}: None}}"
    finite = "" if None in value else (
        f"; a uniform prior between them is scipy.stats.uniform({low}, {high - low})")
    raise TypeError(f"prior[{name!r}] must be a distribution, not a pair of numbers: for bounds "
                    f"without a prior give {ends}{finite}")


def is_multivariate(value: Any) -> bool:
    return isinstance(getattr(value, "_dist", None), scipy.stats._multivariate.multi_rv_generic)


def kind_of(value: Any) -> str:
    """The name of a multivariate distribution of scipy."""
    return type(value._dist).__name__.removesuffix("_gen")


def lkj_prior(value: LKJ, lead: tuple[int, ...]) -> ParameterPrior:
    n, k = value.n**2, prod(lead)
    row: Row = ("powers", n, 0.0, 1.0, 0.0, 0.0, value.constant, value.exponents, None, None)
    return ParameterPrior(
        (*lead, value.n, value.n), np.full(n * k, -inf), np.full(n * k, inf),
        np.zeros(n * k, np.int64), [row] * k, "cholesky_corr",
        draw=lambda m, rng: value.rvs((m, k), rng).reshape(m, -1))


def kernel_density_prior(value: scipy.stats.gaussian_kde, lead: tuple[int, ...]) -> ParameterPrior:
    """Independent blocks, of shape `lead`; scalars, if the kernel density is of one dimension."""
    n = prod(lead) * value.d
    row: Row = ("python", value.d, 0.0, 1.0, 0.0, 0.0, 0.0, None, None, KernelDensity(value))
    return ParameterPrior(
        lead if value.d == 1 else (*lead, value.d), np.full(n, -inf), np.full(n, inf),
        np.zeros(n, np.int64), [row] * prod(lead), exchangeable=value.d == 1,
        draw=lambda m, rng: value.resample(m * prod(lead), rng).T.reshape(m, n))


# ---- univariate ----


class FromLogarithm:
    """The density of a distribution of scipy that has only its logarithm."""

    def __init__(self, dist: Any) -> None:
        self.dist = dist

    def __call__(self, x: Any, *args: Any) -> Any:
        return np.exp(self.dist._logpdf(x, *args))


def complete(dist: Any) -> None:
    """Give a user's distribution that defines only `_logpdf` the density, which draws need."""
    kind, general = type(dist), scipy.stats.rv_continuous
    if isinstance(dist, general) and kind._logpdf is not general._logpdf and (
            kind._pdf is general._pdf and kind._cdf is general._cdf):
        dist._pdf = FromLogarithm(dist)  # of the frozen copy


def univariate_prior(
    name: str, value: Any, shape: tuple[int, ...] | None, of_dims: tuple[int, ...] | None
) -> ParameterPrior:
    """Independent elements, with the shape of the distribution's parameters or the given one.

    If no shape is given and its parameters are numbers, it has the shape `of_dims`, if that is one.
    """
    try:
        with np.errstate(all="ignore"):
            own = np.shape(value.logpdf(np.float64(0.0)))
            low, high = value.support()
    except Exception as error:
        raise TypeError(f"prior[{name!r}] = {shown(value)} has no log density and support: "
                        f"{error}") from error
    if shape is None:
        shape = own or of_dims or ()
    try:
        fits = np.broadcast_shapes(own, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"prior[{name!r}] has parameters of shape {own}, which do not fit the "
                         f"shape {shape}")
    dist = getattr(value, "dist", None)
    complete(dist)
    exchangeable = prod(own) == 1
    if isinstance(dist, scipy.stats.rv_continuous):
        parameters, loc, scale = dist._parse_args(*value.args, **value.kwds)
        exchangeable = all(np.unique(v).size == 1 for v in (*parameters, loc, scale))
        if np.isinf(loc).any() or np.isinf(scale).any():
            raise ValueError(f"prior[{name!r}] must have a finite loc and scale, not {shown(loc)} "
                             f"and {shown(scale)}")
    low, high = (np.array(np.broadcast_to(v, shape), dtype=float).reshape(-1) for v in (low, high))
    if not (low < high).all():
        i = int(np.argmin(low < high))
        raise ValueError(f"prior[{name!r}] has parameters that are not valid, such as a scale that "
                         "is not positive, or 0 as an end of a loguniform distribution: its "
                         f"support is ({low[i]}, {high[i]})")
    if isinstance(dist, type(scipy.stats.t)):
        df = parameters[0]
        if np.isinf(df).all():  # scipy cannot draw from it
            value = scipy.stats.norm(loc, scale)
        elif np.isinf(df).any():  # these are no different from NORMAL_DEGREES
            value = scipy.stats.t(np.minimum(df, NORMAL_DEGREES), loc, scale)
    entry = compiled(value, shape)
    if entry is not None and not np.isfinite(entry[0][3]).all():
        raise ValueError(f"prior[{name!r}] has no finite log density: its parameters must be "
                         "finite, and not so large that it overflows")
    transform = None
    if entry is not None and entry[0][0] == "vonmises":
        loc, scale = entry[1], entry[2]
        low, high, transform = loc - np.pi * scale, loc + np.pi * scale, "periodic"
    if entry is None:
        factor = Univariate(value, shape, low, high)
        rows: list[Row] = [("python", len(low), 0.0, 1.0, 0.0, 0.0, 0.0, None, None, factor)]
        logs = np.zeros(len(low), np.int64)
    else:
        rows = factor_rows(*entry)
        logs = np.full(len(low), LOGS.get(entry[0][0], 0), np.int64)

    def draw(k: int, rng: Any) -> NDArray[np.float64]:
        x = draws(value, own, shape, k, rng).reshape(k, -1)
        return low + (x - low) % (high - low) if transform == "periodic" else x

    return ParameterPrior(shape, low, high, logs, rows, transform,
                          exchangeable=exchangeable, draw=draw)


def compiled(
    value: Any, shape: tuple[int, ...]
) -> tuple[Entry, NDArray[np.float64], NDArray[np.float64]] | None:
    """The compiled form of a distribution, with loc and scale (n,); None if it has none."""
    dist = getattr(value, "dist", None)
    family: Any = families().get(type(dist))
    new = type(value).__name__
    if dist is not None and family is not None:
        args, loc, scale = dist._parse_args(*value.args, **value.kwds)
    elif new in ("Normal", "StandardNormal"):
        family, args, loc, scale = families()[type(scipy.stats.norm)], (), value.mu, value.sigma
    elif new == "Uniform":
        family, args = families()[type(scipy.stats.uniform)], ()
        loc, scale = value.a, np.subtract(value.b, value.a)
    else:
        return None
    *args, loc, scale = (np.array(np.broadcast_to(v, shape), dtype=float).reshape(-1)
                         for v in (*args, loc, scale))
    if family is families()[type(scipy.stats.t)] and 0 < np.isinf(args[0]).sum() < len(loc):
        return None
    with np.errstate(all="ignore"):
        entry = family(*args, scale)
    return entry, loc, entry[4]


def factor_rows(
    entry: Entry, loc: NDArray[np.float64], scale: NDArray[np.float64]
) -> list[Row]:
    """A factor for each coordinate; equal neighbors share one."""
    kind, *numbers, _ = entry
    a, b, constant = (np.broadcast_to(v, loc.shape) for v in numbers)
    rows: list[Row] = []
    for each in zip(loc.tolist(), scale.tolist(), a.tolist(), b.tolist(), constant.tolist(),
                    strict=True):
        n = rows.pop()[1] + 1 if rows and rows[-1][2:7] == each else 1
        rows.append((kind, n, *each, None, None, None))
    return rows


def draws(value: Any, own: tuple[int, ...], shape: tuple[int, ...], k: int, rng: Any) -> Any:
    """Independent draws (k, *shape) of a distribution with parameters of shape `own`."""
    if getattr(getattr(value, "dist", None), "name", None) in CIRCULAR:
        args, loc, scale = value.dist._parse_args(*value.args, **value.kwds)
        standard = value.dist.rvs(*args, size=(k, *shape), random_state=rng)
        return loc + scale * np.asarray(standard, dtype=float)
    if hasattr(value, "rvs"):
        with np.errstate(all="ignore"):  # of invgamma(0.001) some are infinite
            return np.asarray(value.rvs(size=(k, *shape), random_state=rng), dtype=float)
    lead = shape[: len(shape) - len(own)]
    if shape[len(lead):] == own:
        return np.asarray(value.sample((k, *lead), rng=rng), dtype=float)
    return np.asarray(value.icdf(rng.uniform(size=(k, *shape))), dtype=float)


# ---- multivariate ----


def multivariate_prior(name: str, value: Any, lead: tuple[int, ...]) -> ParameterPrior:
    """Independent blocks, of shape `lead`, each with the distribution."""
    kind, k, transform = kind_of(value), prod(lead), None
    low, high, logs = -inf, inf, 0
    rvs: Draws = partial(draws_of_scipy, value)
    try:
        if kind == "multivariate_normal":
            block, row, rvs = normal_block(value.mean, value.cov)
        elif kind == "multivariate_t" and np.isinf(value.df):
            block, row, rvs = normal_block(value.loc, value.shape)
        elif kind == "multivariate_t":
            block, row, rvs = student_block(value)
        elif kind == "dirichlet":
            block, row = dirichlet_block(value)
            transform, low, high, logs = "simplex", 0.0, 1.0, 0
        else:
            one = value.rvs(random_state=0)
            block = np.shape(one if kind in MATRICES else np.squeeze(one))
            row = ("python", prod(block), 0.0, 1.0, 0.0, 0.0, 0.0, None, None,
                   Multivariate(value, block))
    except np.linalg.LinAlgError:
        raise ValueError(f"prior[{name!r}] has a singular matrix, so that it has no density") from (
            None)
    n = prod(block) * k

    def draw(m: int, rng: Any) -> NDArray[np.float64]:
        return rvs(m * k, rng).reshape(m, n)

    if not np.isfinite(draw(1, np.random.default_rng(0))).all():
        raise ValueError(f"prior[{name!r}] has draws that are not finite: its parameters must be")
    return ParameterPrior(
        (*lead, *block), np.full(n, low), np.full(n, high), np.full(n, logs, np.int64), [row] * k,
        transform, draw=draw)


def draws_of_scipy(value: Any, n: int, rng: Any) -> NDArray[np.float64]:
    return np.asarray(value.rvs(size=n, random_state=rng), dtype=float)


def normal_block(mean: Any, cov: Any) -> tuple[tuple[int, ...], Row, Draws]:
    """Shape, row and draws of N(mean, cov); the draws are ours, as scipy's depend on LAPACK."""
    mean, factor = np.ravel(mean), cholesky(np.atleast_2d(cov))
    d = len(factor)
    constant = -float(log(np.diagonal(factor)).sum()) - 0.5 * d * log(2 * np.pi)

    def draw(n: int, rng: Any) -> NDArray[np.float64]:
        return np.asarray(mean + product(rng.standard_normal((n, d)), factor.T))

    row = ("multinormal", d, 0.0, 1.0, 0.0, 0.0, constant, mean, inverse(factor), None)
    return (d,), row, draw


def student_block(value: Any) -> tuple[tuple[int, ...], Row, Draws]:
    """The same for a multivariate t distribution: normal draws over sqrt(chi2 / df)."""
    loc, df, factor = np.ravel(value.loc), float(value.df), cholesky(np.atleast_2d(value.shape))
    d = len(factor)
    constant = (lgamma(0.5 * (df + d)) - lgamma(0.5 * df) - 0.5 * d * log(np.pi * df)
                - float(log(np.diagonal(factor)).sum()))

    def draw(n: int, rng: Any) -> NDArray[np.float64]:
        steps = product(rng.standard_normal((n, d)), factor.T)
        return np.asarray(loc + steps / np.sqrt(rng.chisquare(df, (n, 1)) / df))

    row = ("multistudent", d, 0.0, 1.0, df, 0.0, constant, loc, inverse(factor), None)
    return (d,), row, draw


def dirichlet_block(value: Any) -> tuple[tuple[int, ...], Row]:
    alpha = np.ravel(value.alpha)
    n = len(alpha)
    constant = lgamma(alpha.sum()) - sum(map(lgamma, alpha))
    return (n,), ("dirichlet", n, 0.0, 1.0, 0.0, 0.0, constant, alpha, None, None)
