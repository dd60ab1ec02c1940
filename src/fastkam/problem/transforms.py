"""Transforms of parameters to the sampler's unconstrained coordinates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import is_dataclass
from math import inf, isfinite, prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import near, shown
from fastkam.parameters import Parameters
from fastkam.problem.priors import ParameterPrior

# what a user may write -> the name that this package uses
NAMES = {"identity": "identity", "log": "log", "logit": "interval", "interval": "interval",
         "ordered": "ordered", "simplex": "simplex", "cholesky_corr": "cholesky_corr",
         "periodic": "periodic", "reflect": "reflect"}

MOST_CHECKED = 100  # coordinates of a transform whose Jacobian is compared with differences
Row = tuple[str, str, int, int, int, float, float, Any]  # of `fastkam._core.density.space.Space`


class Transform(Parameters):
    """Base class of transforms of one parameter that are written in Python.

    A subclass is a frozen dataclass, so that files can hold it, and defines the methods below. They
    are called with the GIL held, at each evaluation.

    Methods
    -------
    size(n) : int
        Number of unconstrained coordinates of a parameter of n numbers; n by default.
    constrain(z) : array (n,)
        The parameter of the unconstrained z.
    unconstrain(x) : array
        The z of a parameter; NaN if x is outside the support.
    log_jacobian(z) : float
        log |dx/dz|.
    pull_back(z, dx) : array
        The gradient with respect to z of f(x(z)) + log_jacobian(z), given dx, the gradient of f
        with respect to x. Needed by samplers with gradients.
    """

    NAMES: ClassVar[dict[str, type[Any]]] = {}

    def size(self, n: int) -> int:
        """Number of unconstrained coordinates of a parameter of n numbers."""
        return n

    @abstractmethod
    def constrain(self, z: NDArray[np.float64]) -> Any:
        """The parameter of the unconstrained z."""

    @abstractmethod
    def unconstrain(self, x: NDArray[np.float64]) -> Any:
        """The z of a parameter; NaN where x is impossible."""

    @abstractmethod
    def log_jacobian(self, z: NDArray[np.float64]) -> float:
        """log |dx/dz|."""

    def pull_back(self, z: NDArray[np.float64], dx: NDArray[np.float64]) -> Any:
        """The gradient with respect to z of f(x(z)) + log_jacobian(z)."""
        raise TypeError(f"{type(self).__name__} must define pull_back for samplers that use the "
                        "gradient")


def check_transforms(transforms: Any, names: list[str]) -> dict[str, Any]:
    """{name: transform} from the argument `transforms`; absent names have the default."""
    if transforms is None:
        return {}
    if transforms is False or (isinstance(transforms, str) and transforms == "identity"):
        return dict.fromkeys(names, "identity")
    if not isinstance(transforms, Mapping):
        raise TypeError("transforms must be a dict by the names of parameters, or False, not "
                        f"{shown(transforms)}")
    if unknown := [name for name in transforms if name not in names]:
        mend = ""
        if any(str(name).partition("[")[0] in names for name in unknown):
            mend = ": a parameter is transformed as a whole; give names= to transform components"
        raise ValueError(f"transforms names {unknown}, and the parameters are {names}{mend}")
    for name, value in transforms.items():
        check_transform(name, value)
    return dict(transforms)


def check_transform(name: str, value: Any) -> None:
    """Refuse a value that is no transform."""
    if isinstance(value, str) and value in NAMES:
        return
    if isinstance(value, Transform):
        if not is_dataclass(value):
            raise TypeError(f"transforms[{name!r}] must be a dataclass, so that files can hold "
                            f"it, and {type(value).__name__} is none")
        return
    raise ValueError(f"transforms[{name!r}] must be one of {list(NAMES)}, or an object of a "
                     f"subclass of fastkam.Transform, not {shown(value)}{near(value, NAMES)}")


def by_support(low: float, high: float) -> str:
    """The default transform of a coordinate between `low` and `high`."""
    if isfinite(low):
        return "interval" if isfinite(high) else "log"
    return "upper" if isfinite(high) else "identity"


def rows_of(name: str, transform: Any, prior: ParameterPrior) -> list[Row]:
    """The segments of one parameter; an error where the transform does not fit its prior."""
    if transform is None:
        transform = prior.transform
    if isinstance(transform, Transform):
        return [own_row(name, transform, prior)]
    kind = None if transform is None else NAMES[transform]
    if kind in VECTORS:
        return VECTORS[kind](name, prior)
    if prior.transform in VECTORS:
        what = {"simplex": "add up to 1", "cholesky_corr": "are a Cholesky factor"}
        raise ValueError(f"transforms[{name!r}] must be {prior.transform!r}, not "
                         f"{shown(transform)}: "
                         f"the coordinates of its prior {what[prior.transform]}")
    check_bounded(name, transform, kind, prior)
    rows: list[Row] = []
    for low, high, logs in zip(prior.low.tolist(), prior.high.tolist(), prior.logs.tolist(),
                               strict=True):
        own = by_support(low, high) if kind in (None, "log") else kind
        row = (own, "identity", logs, 1, 1, low, high, None)
        if rows and rows[-1][:3] + rows[-1][5:] == row[:3] + row[5:]:
            n = rows.pop()[3] + 1
            row = (*row[:3], n, n, *row[5:])
        rows.append(row)
    return rows


def check_bounded(name: str, transform: Any, kind: str | None, prior: ParameterPrior) -> None:
    """Refuse a transform for coordinates of another support."""
    bounded = np.isfinite(prior.low).astype(int) + np.isfinite(prior.high)
    need = {"log": 1, "interval": 2, "periodic": 2, "reflect": 2}.get(kind or "")
    if need is not None and not (bounded == need).all():
        i = int(np.argmax(bounded != need))
        what = {1: "a half-line", 2: "two finite bounds"}[need]
        raise ValueError(f"transforms[{name!r}] = {shown(transform)} is for {what}, and the "
                         f"support of {name!r} is ({prior.low[i]:g}, {prior.high[i]:g})")


def own_row(name: str, transform: Transform, prior: ParameterPrior) -> Row:
    """The segment of a user's own transform."""
    n = prior.size
    n_z = transform.size(n)
    if not isinstance(n_z, (int, np.integer)) or n_z < 1:
        raise ValueError(f"size of transforms[{name!r}] must return a positive integer, not "
                         f"{shown(n_z)}")
    if n_z != n and not prior.flat:
        raise ValueError(f"transforms[{name!r}] has {n_z} coordinates for {n} numbers, so that "
                         "their prior is no density of theirs: give None as the prior, and add "
                         "it to the log density")
    check_inverse(name, transform, int(n_z))
    if n_z == n <= MOST_CHECKED:
        check_jacobian(name, transform, n)
    logs = int(np.bitwise_or.reduce(prior.logs, initial=0))
    return ("python", "identity", logs, int(n_z), n, float(prior.low.min()),
            float(prior.high.max()), transform)


def check_inverse(name: str, transform: Transform, n: int) -> None:
    """Refuse a transform whose unconstrain is not the inverse of constrain at all of three points.

    With a wrong one chains would not start at `x0`. Errors are left to the run.
    """
    says = ""
    for z in 0.5 * np.random.default_rng(21).standard_normal((3, n)):
        try:
            with np.errstate(all="ignore"):
                x = np.array(transform.constrain(z), dtype=float).reshape(-1)
                back = np.array(transform.unconstrain(x.copy()), dtype=float).reshape(-1)
                again = np.array(transform.constrain(back), dtype=float).reshape(-1)
        except Exception:
            return
        if x.shape != again.shape or not (np.abs(again - x) > 1e-4 * (1 + np.abs(x))).any():
            return
        says = (f"unconstrain of transforms[{name!r}] must be the inverse of constrain: for x = "
                f"{np.array2string(x, threshold=8)} it gives a z whose x is "
                f"{np.array2string(again, threshold=8)}")
    raise ValueError(says)


def check_jacobian(name: str, transform: Transform, n: int) -> None:
    """Refuse a transform whose log_jacobian disagrees with differences at all of three points.

    With a wrong one the draws are those of another density. Errors are left to the run.
    """
    rng, h = np.random.default_rng(20), 1e-5
    says = ""
    for z in 0.5 * rng.standard_normal((3, n)):
        try:
            with np.errstate(all="ignore"):
                differences = [np.subtract(transform.constrain(z + e), transform.constrain(z - e))
                               for e in h * np.eye(n)]
                numerical = np.linalg.slogdet(np.reshape(differences, (n, n)) / (2 * h))[1]
                own = float(transform.log_jacobian(z))
        except Exception:
            return
        if not np.isfinite(numerical) or abs(own - numerical) < 1e-3 * (n + abs(numerical)):
            return
        says = (f"log_jacobian of transforms[{name!r}] must be log |dx/dz|: it is {own:.6g} at "
                f"z = {np.array2string(z, threshold=8)}, and differences of constrain give "
                f"{numerical:.6g}")
    raise ValueError(says)


# ---- vectors ----


def last_axis(name: str, kind: str, prior: ParameterPrior) -> tuple[int, int]:
    """Number of vectors along the last axis, and their length."""
    if not prior.shape or prior.shape[-1] < 2:
        raise ValueError(f"transforms[{name!r}] = {kind!r} is for vectors of two elements or more, "
                         f"and {name!r} has shape {prior.shape}")
    return prod(prior.shape[:-1]), prior.shape[-1]


def simplex(name: str, prior: ParameterPrior) -> list[Row]:
    k, n = last_axis(name, "simplex", prior)
    if prior.transform != "simplex" and not (prior.flat and unbounded(prior)):
        raise ValueError(f"transforms[{name!r}] = 'simplex' needs a prior of a simplex, such as "
                         "scipy.stats.dirichlet, or None for a uniform one")
    return [("simplex", "identity", 0, n - 1, n, 0.0, 1.0, None)] * k


def ordered(name: str, prior: ParameterPrior) -> list[Row]:
    k, n = last_axis(name, "ordered", prior)
    low, high = float(prior.low[0]), float(prior.high[0])
    if not prior.exchangeable:
        raise ValueError(f"transforms[{name!r}] = 'ordered' needs elements that are independent "
                         "and have one distribution, as (distribution, shape) describes them; "
                         f"or give (None, {n}) as the prior of {name!r}, and add the log prior to "
                         "the function")
    row: Row = ("ordered", by_support(low, high), int(prior.logs[0]), n, n, low, high, None)
    return [row] * k


def cholesky_corr(name: str, prior: ParameterPrior) -> list[Row]:
    shape = prior.shape
    if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] < 2:
        raise ValueError(f"transforms[{name!r}] = 'cholesky_corr' is for matrices (n, n), n at "
                         f"least 2, and {name!r} has shape {shape}")
    if prior.transform != "cholesky_corr" and not (prior.flat and unbounded(prior)):
        raise ValueError(f"transforms[{name!r}] = 'cholesky_corr' needs fastkam.LKJ as its prior, "
                         "or None for a uniform density of the elements below the diagonal")
    n = shape[-1]
    return [("cholesky_corr", "identity", 0, n * (n - 1) // 2, n * n, -inf, inf, None)] * prod(
        shape[:-2])


def unbounded(prior: ParameterPrior) -> bool:
    return not (np.isfinite(prior.low).any() or np.isfinite(prior.high).any())


VECTORS = {"simplex": simplex, "ordered": ordered, "cholesky_corr": cholesky_corr}
