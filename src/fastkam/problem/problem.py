"""Problem: a likelihood with a prior, bounds and transforms, as a density of unconstrained points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam._core.density.joined import ZeroTarget
from fastkam._core.density.problem_target import ProblemTarget
from fastkam._core.density.target import Target as CompiledTarget
from fastkam.arguments import (
    check_flag,
    check_generator,
    check_integer,
    counted,
    real_array,
    shown,
)
from fastkam.density.estimator import Estimator
from fastkam.density.forms import as_target
from fastkam.density.pointers import is_numba_dispatcher, is_pointer
from fastkam.density.recipe import TargetRecipe
from fastkam.density.target import Target
from fastkam.interop.differentiable import Differentiable, OfFunction
from fastkam.problem.bounds import bounds_by_name
from fastkam.problem.call import Derived, UserFunction, arguments_of, noise_of, takes_names
from fastkam.problem.coordinates import Coordinates
from fastkam.problem.described import Described
from fastkam.problem.parameters import from_bounds, from_prior
from fastkam.problem.starts import Evaluate, first_points, none_finite, one_by_one
from fastkam.problem.transforms import check_transforms, rows_of
from fastkam.run.drawn_starts import Starts
from fastkam.run.shapes import check_layout, check_mapping, check_names

Array = NDArray[np.float64]

START_SD = 1.5  # of unconstrained coordinates; uniform within two bounds, nearly


class Problem(Described):
    """A log density of named parameters, with a prior or bounds, ready to be sampled.

    Samplers move an unconstrained point z; the parameters are x(z), and the density of z is

        logp(z) = log likelihood(x(z)) + log prior(x(z)) + log |dx/dz|

    The arguments of the function, `x0`, and the draws are in terms of x.

    Parameters
    ----------
    loglike : callable, pointer, Target or TargetRecipe
        The log likelihood, or without a prior the log density, of x (n,) in any form that
        `as_target` takes, `Target.from_estimator` included. It is not called where the prior is 0
        or x beyond the bounds. A Python function may return extras, which are recorded with each
        draw: ``(logp, extras)`` or ``(logp, gradient, extras)``, with extras a dict of numbers and
        arrays by name. It takes the array x, or the parameters by name; see `named`.
    prior : dict, optional
        The parameters by name, in their order in x. A value is a frozen distribution of
        scipy.stats, univariate (its parameters may be arrays) or multivariate; a pair
        (distribution, shape) for independent elements; `scipy.stats.gaussian_kde` or
        `fastkam.LKJ`; or None or (None, shape), for no prior. Without a shape a univariate one has
        that of its dimensions in `coords`.
    bounds : optional
        For parameters without a prior: a dict {name: (low, high)}, a list of (low, high) for each
        coordinate, an array (d, 2) or `scipy.optimize.Bounds`; None means no bound.
    transforms : dict or False, optional
        {name: transform}, with "identity", "log", "logit" or "interval", "ordered", "simplex",
        "cholesky_corr", "periodic", "reflect", or an object of a subclass of `fastkam.Transform`.
        By default the support determines it. False, or "identity", keeps hard bounds: the density
        is 0 beyond them.
    args, kwargs : tuple and dict, optional
        Further arguments of a Python or numba function, after x or the parameters.
    derived : callable, optional
        Python function of x, or of the parameters by name, that returns a dict of numbers and
        arrays; it is evaluated at each recorded draw, and its values become extras.
    vectorized : bool
        `loglike` and `derived` take points (k, n), or parameters (k, *shape), and return arrays
        with k rows.
    named : bool, optional
        Whether functions take the parameters by name. By default they do if each parameter is an
        argument of the function, and `args` and `kwargs` supply the others that it requires; but
        a function of one argument called x takes the array (d,), unless the only parameter is
        called so and has two axes or more.
    names, shapes, dims, coords : optional
        As in `sample`; names and shapes only without a prior.
    dim : int, optional
        Number of coordinates of x, if no other argument determines it.

    Attributes
    ----------
    layout : Layout
        Names and shapes of the parameters.
    coordinates : Coordinates
        The map between z and x.

    Raises
    ------
    TypeError, ValueError
        For a bad argument; the message names it.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> import fastkam as fk
    >>> y = np.array([4.1, 5.3, 4.6])
    >>> def loglike(mu, sigma):
    ...     return stats.norm(mu, sigma).logpdf(y).sum()
    >>> problem = fk.Problem(loglike, prior={"mu": stats.norm(0, 10), "sigma": stats.halfnorm()})
    >>> problem.dim, problem.constrain([5.0, 0.0])
    (2, array([5., 1.]))
    """

    def __init__(
        self,
        loglike: Any,
        prior: Mapping[str, Any] | None = None,
        *,
        bounds: Any = None,
        transforms: Any = None,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        derived: Callable[..., Mapping[str, Any]] | None = None,
        vectorized: bool = False,
        named: bool | None = None,
        names: Sequence[str] | None = None,
        shapes: Mapping[str, int | tuple[int, ...]] | None = None,
        dims: Mapping[str, str | Sequence[str]] | None = None,
        coords: Mapping[str, ArrayLike] | None = None,
        dim: int | None = None,
    ) -> None:
        # containers that change later must not change a copy
        given = {name: value.copy() if type(value) in (dict, list) else value for name, value in {
            "prior": prior, "bounds": bounds, "transforms": transforms, "args": args,
            "kwargs": kwargs, "derived": derived, "vectorized": vectorized, "named": named,
            "names": names, "shapes": shapes, "dims": dims, "coords": coords, "dim": dim}.items()}
        self.given = loglike, given
        self.vectorized = check_flag("vectorized", vectorized)
        if named is not None:
            named = check_flag("named", named)
        self.named = named
        if not isinstance(args, (tuple, list, type(None))):
            raise TypeError("args must be a tuple of arguments, as args=(data,), not "
                            f"{shown(args)}")
        self.args, self.kwargs = tuple(args or ()), check_mapping("kwargs", kwargs)
        if prior is not None and (names is not None or shapes is not None):
            raise ValueError("names and shapes must not be given with prior, which has them")
        if prior is None:
            self.priors, self.layout = from_bounds(bounds, names, shapes, dims, coords, dim)
        else:
            self.priors = from_prior(prior, bounds, dims, coords)
            own: Any = {name: one.shape for name, one in self.priors.items()}
            self.layout = check_layout(
                list(own), own, dims, coords, sum(one.size for one in self.priors.values()))
        self.coordinates = self.arrange(check_transforms(transforms, list(self.priors)))
        if taken := [name for name in self.kwargs if name in self.layout.shapes]:
            raise ValueError(f"kwargs names {taken}, which are parameters")
        self.loglike = self.called(loglike, named)
        self.derived = None if derived is None else self.derived_call(derived, named)
        self.targets: dict[bool, Target] = {}

    def arrange(self, transforms: dict[str, Any]) -> Coordinates:
        """The map; with the transform "ordered" the prior becomes that of ordered values."""
        rows, parts = [], []
        for name, one in self.priors.items():
            some = rows_of(name, transforms.get(name), one)
            rows += some
            parts.append((name, len(some)))
            if transforms.get(name) == "ordered":
                self.priors[name] = one.ordered()
        return Coordinates(tuple(parts), rows)

    # ---- the user's functions ----

    def called(self, f: Any, named: bool | None) -> Any:
        """The function as a function of the array x; other forms of a target are not changed."""
        plain = callable(f) and not (
            is_pointer(f) or hasattr(f, "__fk_target__")
            or isinstance(f, (TargetRecipe, CompiledTarget)))
        if isinstance(f, Estimator):
            return self.called_estimator(f, named)
        if not plain:
            self.refuse_arguments(f, named)
            return f
        function = f.f if isinstance(f, OfFunction) else f
        by_name = named if named is not None else takes_names(
            function, self.layout.shapes, self.args, self.kwargs)
        if isinstance(f, Differentiable):
            if not (by_name or self.args or self.kwargs):
                return f
            if not isinstance(f, OfFunction):
                raise TypeError("args, kwargs and named are for functions, not for "
                                f"{shown(f)}: give it data where it is made")
            return f.calling(self.args, self.kwargs, self.layout.shapes if by_name else None)
        if by_name:
            return UserFunction(f, self.args, self.kwargs, self.layout.shapes)
        if is_numba_dispatcher(f) and not self.vectorized and not self.kwargs:
            return Target.from_numba(f, self.n_x, args=self.args)
        return UserFunction(f, self.args, self.kwargs) if self.args or self.kwargs else f

    def called_estimator(self, estimator: Estimator, named: bool | None) -> Estimator:
        """The estimator of the array x."""
        f, shapes = estimator.f, self.layout.shapes
        if estimator.is_foreign or is_pointer(f):
            self.refuse_arguments(f, named)
            return estimator
        noise, others = noise_of(f, shapes, self.kwargs)
        if named is None:
            known = self.kwargs if noise is None else {**self.kwargs, noise: None}
            named = takes_names(f, shapes, self.args, known)
        if not (named or self.args or self.kwargs):
            return estimator
        name = getattr(f, "__name__", f)
        if noise is None:
            raise TypeError(f"{name!s} has no argument for its noise, such as u or rng, beside "
                            f"{'the parameters' if named else 'x'} and what is in kwargs")
        if self.args and others:
            raise TypeError(f"{name!s} must show which argument takes the noise, by calling it u "
                            f"or rng, or by kwargs in place of args: it could be {noise!r} or "
                            f"{others[0]!r}")
        return estimator.calling(
            UserFunction(f, self.args, self.kwargs, shapes if named else None, noise))

    def refuse_arguments(self, f: Any, named: bool | None) -> None:
        """Refuse arguments of Python functions where f is none."""
        if self.args or self.kwargs or named:
            given = "named=True" if named else "args" if self.args else "kwargs"
            raise TypeError(f"{given} is for functions of Python and numba, not for {shown(f)}")

    def derived_call(self, f: Any, named: bool | None) -> Derived:
        if not callable(f):
            raise TypeError(f"derived must be a function, not {shown(f)}")
        if named is None:
            try:
                named = takes_names(f, self.layout.shapes, (), {})
            except TypeError as error:
                raise TypeError(f"derived: {error}; derived takes the parameters alone, so that "
                                "data go in by functools.partial, or lambda") from None
        return Derived(f, self.layout.shapes if named else None, self.vectorized)

    @property
    def dim(self) -> int:
        """Number of coordinates of the unconstrained z."""
        return self.coordinates.n_z

    @property
    def has_prior(self) -> bool:
        """Whether every parameter has a prior, from which points can be drawn."""
        return not self.without_prior

    @property
    def without_prior(self) -> list[str]:
        """The names of the parameters that have no prior."""
        return [name for name, one in self.priors.items() if one.draw is None]

    # ---- densities ----

    def log_prior(self, x: Any) -> Any:
        """The log density of the prior at x (..., n) in the user's coordinates, (...).

        For a simplex it is the density of all coordinates except the last; for a Cholesky factor
        that of the elements below the diagonal; for ordered elements n! times that of n independent
        ones. It is -inf outside the support; parameters without a prior add nothing.
        """
        X = self.coordinates.points("x", self.as_array("x", x), self.n_x)
        flat = np.ascontiguousarray(X.reshape(-1, self.n_x))
        values = self.prior_target.log_prior_x(flat)
        values[self.coordinates.invalid(flat)] = -np.inf
        return values.reshape(X.shape[:-1])[()]

    def log_prior_z(self, z: ArrayLike) -> Any:
        """The log density of the prior at z (..., dim) in unconstrained coordinates, (...).

        log prior(x(z)) + log |dx/dz|, the density of the draws of `sample_prior`; but for periodic
        and reflected coordinates these are from one period, and this density has several.
        """
        Z = self.coordinates.points("z", z, self.dim)
        flat = np.ascontiguousarray(Z.reshape(-1, self.dim))
        return self.prior_target.log_prior_z(flat).reshape(Z.shape[:-1])[()]

    def log_likelihood(self, x: Any) -> Any:
        """Call `loglike` at x (n,): a float; or at each row of x (k, n): an array (k,)."""
        return self.inner(gradient=False).logp(self.as_array("x", x))

    def sample_prior(self, n: int, rng: Any = None) -> Array:
        """Independent draws from the prior as unconstrained points, (n, dim), without a chain.

        Parameters
        ----------
        n : int
        rng : int, SeedSequence or Generator, optional

        Raises
        ------
        ValueError
            If a parameter has no prior.
        """
        n = check_integer("n", n, least=0)
        self.need_prior("sample_prior")
        rng = check_generator("rng", rng)
        parts = []
        for one in self.priors.values():
            assert one.draw is not None
            parts.append(one.draw(n, rng) if n else np.empty((0, one.size)))
        return self.coordinates.unconstrain(self.off_edges(np.concatenate(parts, axis=1)))

    @np.errstate(under="ignore")
    def off_edges(self, x: Array) -> Array:
        """Draws (n, n_x), moved off the edges of the support, where z would be infinite."""
        start = 0
        for kind, inner, _, _, n, low, high, _ in self.coordinates.rows:
            if {kind, inner} & {"log", "upper", "interval", "simplex"}:
                x[:, start : start + n] = np.clip(
                    x[:, start : start + n], np.nextafter(low, np.inf), np.nextafter(high, -np.inf))
            start += n
        return x

    def need_prior(self, who: str) -> None:
        """Refuse to draw a parameter without a prior."""
        if missing := self.without_prior:
            raise ValueError(f"{who} needs a prior of every parameter, and {missing} have none")

    # ---- targets ----

    def target(self, *, gradient: bool = False) -> Target:
        """The density of z as a Target.

        Parameters
        ----------
        gradient : bool
            The gradient of a Python function is needed: it must return the pair.
        """
        if gradient not in self.targets:
            inner = self.inner(gradient=gradient)
            made: Any = ProblemTarget(inner, self.coordinates.rows, self.factors, self.derived,
                                      self.without_prior)
            self.targets[gradient] = made
        return self.targets[gradient]

    def beside(self, surrogate: Any) -> Target:
        """The target of a cheap function that stands in for `loglike`, with the same prior.

        Like `loglike` it takes x or, if its arguments have the names of the parameters, these and
        what it has of `kwargs`.
        """
        shapes = self.layout.shapes
        try:
            kwargs = arguments_of(surrogate, self.kwargs)
            if self.named is not False and takes_names(surrogate, shapes, (), kwargs):
                surrogate = UserFunction(surrogate, kwargs=kwargs, shapes=shapes)
            inner = as_target(surrogate, self.n_x)
        except (TypeError, ValueError) as error:
            raise type(error)(f"surrogate: {error}") from None
        made: Any = ProblemTarget(inner, self.coordinates.rows, self.factors)
        return made

    @property
    def factors(self) -> list[Any]:
        """The factors of the prior, in the order of the parameters."""
        return [row for one in self.priors.values() for row in one.rows]

    def inner(self, *, gradient: bool) -> Target:
        """The function of x as a Target."""
        return as_target(self.loglike, self.n_x, vectorized=self.vectorized, gradient=gradient)

    @cached_property
    def prior_target(self) -> ProblemTarget:
        """A target used only for its prior."""
        target: Any = self.target()
        return target

    # ---- where chains start ----

    def start(
        self, x0: Any, chains: int, seed: np.random.SeedSequence, evaluate: Evaluate | None = None,
        *, at_once: bool = False,
    ) -> Array:
        """Starting points (chains, dim): x0 in the user's coordinates, or draws from the prior.

        Each chain draws from its own stream until the density is finite. A parameter without a
        prior is drawn within its bounds. `evaluate` and `at_once` say how the
        density is evaluated there: see `first_points`.
        """
        if x0 is not None:
            x = self.as_array("x0", x0)
            if x.ndim not in (1, 2) or x.size == 0:
                raise ValueError(f"x0 must have shape ({self.n_x},) or (chains, {self.n_x}), not "
                                 f"{x.shape}")
            if x.ndim == 2 and len(x) != chains:
                raise ValueError(f"x0 has {counted(len(x), 'row')}, but there are {chains} chains: "
                                 "give one point (d,) for all chains, or draws (m, n, d) to choose "
                                 "from as x0[None]")
            z = self.coordinates.unconstrain(x, "x0")
            return np.array(np.broadcast_to(z, (chains, self.dim)))
        target = self.target()
        points, tried = first_points(
            self.drawn_start, evaluate or partial(one_by_one, target),
            target.n_aux if target.is_estimate else 0, chains, seed, at_once=at_once)
        if tried:
            where = "draws from the prior" if self.has_prior else "points within bounds"
            raise ValueError(f"the log density {none_finite(tried, where)}")
        return points

    def drawn_start(self, rng: np.random.Generator) -> Array:
        """A draw from the prior, (dim,); of a parameter without one, a point within its bounds.

        The unconstrained coordinates of the latter are normal, with standard deviation START_SD.
        Within bounds that are not transformed they are uniform, or next to a single bound.
        """
        if self.has_prior:
            return self.sample_prior(1, rng)[0]
        x = self.constrain(START_SD * rng.standard_normal(self.dim))
        start = 0
        for one in self.priors.values():
            some = slice(start, start + one.size)
            if one.draw is not None:
                x[some] = one.draw(1, rng)[0]
            start += one.size
        start = 0
        for kind, *_, n, low, high, _ in self.coordinates.rows:
            if kind in ("identity", "periodic", "reflect") and np.isfinite([low, high]).any():
                inside = rng.random(n) if np.isfinite(low + high) else rng.exponential(size=n)
                x[start : start + n] = (low + (high - low) * inside if np.isfinite(low + high) else
                                        low + inside if np.isfinite(low) else high - inside)
            start += n
        return np.asarray(self.coordinates.unconstrain(self.off_edges(x[None]))[0])

    def __reduce__(self) -> Any:
        loglike, options = self.given
        return partial(Problem, **options), (loglike,)

    def __repr__(self) -> str:
        return f"<Problem of {', '.join(self.layout.labels[:8])}: {self.dim} unconstrained>"


# ---- for sample ----


def problem_of(distribution: Any, names: Any, shapes: Any, dims: Any, coords: Any) -> Problem:
    """A distribution of scipy as a Problem: one parameter, by default called x."""
    if shapes is not None:
        raise ValueError("shapes must not be given with a distribution, which has one")
    names = check_names(names, {}, {})
    if len(names) != 1:
        raise ValueError(f"names must be one name, that of the distribution's point, not {names}")
    prior = {names[0]: distribution}
    size = sum(one.size for one in from_prior(prior, None, dims, coords).values())
    return Problem(ZeroTarget(size), prior, dims=dims, coords=coords)


def problem_from(target: Any, x0: Any, arguments: dict[str, Any], vectorized: bool) -> Problem:
    """The Problem of the arguments of `sample`; x0 says how many coordinates there are."""
    if arguments.get("prior") is not None:
        return Problem(target, **arguments, vectorized=vectorized)
    dim = None
    if isinstance(x0, Mapping):
        if not x0:
            raise ValueError("x0 must have a value of at least one parameter, not {}")
        given = [{} if arguments[name] is None else arguments[name] for name in ("shapes", "dims")]
        plain = arguments["names"] is None and all(isinstance(one, Mapping) for one in given)
        known = {*given[0], *(name for name in given[1] if name in x0)} if plain else set()
        if plain and known <= x0.keys():
            chains = int(isinstance(x0, Starts))  # the number of axes that are not a parameter's
            bounds = arguments.get("bounds")
            arrays = bounds_by_name(bounds) if isinstance(bounds, Mapping) else {}
            shapes = {name: (arrays[name][0].shape if name in arrays else ())
                      or np.shape(x0[name])[chains:] for name in x0 if name not in known}
            arguments |= {"names": list(x0), "shapes": shapes | dict(given[0])}
    elif x0 is None:
        if arguments.get("bounds") is None and arguments.get("shapes") is None:
            raise ValueError("x0 must be the point where the search begins, not None; or give "
                             "prior, from which to draw it, or bounds, within which it is")
    else:
        x = real_array("x0", x0)
        if x.ndim not in (1, 2) or x.size == 0:
            raise ValueError(f"x0 must have shape (d,) or (chains, d), not {x.shape}")
        dim = x.shape[-1]
    return Problem(target, **arguments, vectorized=vectorized, dim=dim)
