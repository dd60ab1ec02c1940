"""The graph of a PyMC model as functions of one flat unconstrained point."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from math import inf, prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.python_target import PythonTarget
from fastkam.density.target import Target
from fastkam.interop import pymc_numba
from fastkam.problem.coordinates import Coordinates
from fastkam.problem.priors import flat_prior
from fastkam.problem.transforms import Row, rows_of

Array = NDArray[np.float64]
Rows = Callable[[Array], Array]

SAME = 1e-12  # tolerance for the difference of two maps of a point
QUICK = "FAST_COMPILE"  # for functions that are called a few times


class NotCompiled(Exception):
    """The reason why numba cannot compile a model."""


class Graph:
    """A PyMC model whose free variables stand in one vector, in the order of `model.free_RVs`.

    Attributes
    ----------
    shapes : dict of str to tuple of int
        Shape of each free variable.
    transforms : dict of str to (str, int)
        The name of its transform, and how many unconstrained coordinates it has.
    initial : ndarray, shape (dim,)
        PyMC's initial point.
    """

    def __init__(self, model: Any) -> None:
        names = [rv.name for rv in model.free_RVs]
        self.model = frozen(model)  # its variables may have another order
        self.free = [self.model[name] for name in names]
        values = [self.model.rvs_to_values[rv] for rv in self.free]
        self.start = model.initial_point()
        self.values = values
        self.initial = np.concatenate(
            [np.ravel(self.start[value.name]) for value in values]).astype(float)
        self.dim = len(self.initial)
        given = dict(zip(names, self.evaluated(self.model.replace_rvs_by_values(self.free)),
                         strict=True))
        self.shapes = {name: tuple(map(int, value.shape)) for name, value in given.items()}
        self.transforms = {
            rv.name: (type(self.model.rvs_to_transforms[rv]).__name__,
                      int(np.size(self.start[value.name])))
            for rv, value in zip(self.free, values, strict=True)}

    def evaluated(self, outputs: list[Any]) -> list[Any]:
        """Outputs that depend on the value variables, at the initial point."""
        from pymc.pytensorf import compile

        f = compile(self.values, outputs, mode=QUICK, on_unused_input="ignore")
        return cast(list[Any], f(*(self.start[value.name] for value in self.values)))

    def flat(self, outputs: list[Any]) -> tuple[list[Any], Any]:
        """Outputs as functions of one vector, and that vector."""
        from pymc.pytensorf import join_nonshared_inputs

        found, z = join_nonshared_inputs(self.start, outputs, self.values)
        return list(found), z

    def vector(self, outputs: list[Any]) -> tuple[Any, Any]:
        """All outputs in one vector, as a function of one vector."""
        import pytensor.tensor as pt

        found, z = self.flat(outputs)
        return pt.concatenate([one.ravel().astype("float64") for one in found]), z

    # ---- the density ----

    @cached_property
    def density(self) -> tuple[Any, Any | None, Any]:
        """The log density, its gradient or None where PyTensor has none, and the vector."""
        from pytensor.gradient import DisconnectedInputError, NullTypeGradError, grad

        (logp,), z = self.flat([self.model.logp()])
        try:
            return logp, grad(logp, z), z
        except (NotImplementedError, NullTypeGradError, DisconnectedInputError):
            return logp, None, z

    def compiled_target(self) -> Target:
        """Value and gradient as C pointers; NotCompiled if that is impossible."""
        try:
            from fastkam.density.numba import graph_target
        except ImportError as error:
            raise NotCompiled(str(error)) from error
        pymc_numba.register()
        logp, gradient, z = self.density
        value = jitted([z], [logp])
        pair = None if gradient is None else jitted([z], [logp, gradient])
        try:
            with without_hints():
                made = graph_target(value, pair, self.dim)
            found = made.logp(self.initial)
        except Exception as error:  # numba raises errors of many types
            raise NotCompiled(first_line(error)) from error
        if not np.isfinite(found) and np.isfinite(float(self.evaluated([self.model.logp()])[0])):
            raise NotCompiled("the compiled function is not finite where PyTensor's own is")
        return made

    def python_targets(self) -> tuple[Target, Target | None]:
        """The value, and value with gradient, as functions of PyTensor."""
        from pymc.pytensorf import compile

        logp, gradient, z = self.density
        value = Single(compile([z], [logp]))
        first: Any = PythonTarget(value, self.dim, vectorized=False, gradient=False)
        if gradient is None:
            return first, None
        second: Any = PythonTarget(Pair(compile([z], [logp, gradient])), self.dim,
                                   vectorized=False, gradient=True)
        return first, second

    # ---- the map ----

    @cached_property
    def constrain(self) -> Callable[[Array], Array]:
        """x (n,) of z (dim,)."""
        from pymc.pytensorf import compile

        x, z = self.vector(self.model.replace_rvs_by_values(self.free))
        return compile([z], x, mode=QUICK)

    @property
    def forwards(self) -> list[Any]:
        """The unconstrained value of each free variable, in terms of the variables."""
        transforms = [self.model.rvs_to_transforms[rv] for rv in self.free]
        return [rv if one is None else one.forward(rv, *rv.owner.inputs)
                for rv, one in zip(self.free, transforms, strict=True)]

    @cached_property
    def unconstrain(self) -> Callable[[Array], Array]:
        """z (dim,) of x (n,)."""
        import pytensor.tensor as pt
        from pymc.pytensorf import compile
        from pytensor.graph.replace import clone_replace

        stand_ins = [rv.type(name=rv.name) for rv in self.free]
        found = clone_replace(self.forwards, dict(zip(self.free, stand_ins, strict=True)))
        f = compile(stand_ins, pt.concatenate([one.ravel() for one in found]), mode=QUICK,
                    on_unused_input="ignore")

        def unconstrain(x: Array) -> Array:
            parts, start = [], 0
            for shape in self.shapes.values():
                parts.append(x[start : start + prod(shape)].reshape(shape))
                start += prod(shape)
            with np.errstate(all="ignore"):
                return np.asarray(f(*parts))

        return unconstrain

    def rows(self) -> Coordinates | None:
        """fastkam's own transforms, or None where they are not those of the model."""
        rows: list[Row] = []
        parts = []
        for rv in self.free:
            some = self.rows_of(rv)
            if some is None:
                return None
            rows += some
            parts.append((rv.name, len(some)))
        made = Coordinates(tuple(parts), rows)
        rng = np.random.default_rng(0)
        for z in (self.initial, *rng.normal(size=(3, self.dim))):
            if made.n_z != self.dim or not np.allclose(made.constrain(z), self.constrain(z),
                                                       rtol=SAME, atol=SAME):
                return None
        return made

    def rows_of(self, rv: Any) -> list[Row] | None:
        """The segments of one variable."""
        transform, shape = self.model.rvs_to_transforms[rv], self.shapes[rv.name]
        kind = type(transform).__name__
        if kind == "Ordered" and shape and shape[-1] > 1:
            n = shape[-1]
            return [("ordered", "identity", 0, n, n, -inf, inf, None)] * prod(shape[:-1])
        bounds = {"NoneType": (None, None), "LogTransform": (0.0, None),
                  "LogOddsTransform": (0.0, 1.0)}.get(kind)
        if bounds is None and hasattr(transform, "args_fn"):
            bounds = self.bounds(transform.args_fn(*rv.owner.inputs))
        if bounds is None:
            return None
        low, high = (np.broadcast_to(end if one is None else np.asarray(one, float), shape)
                     for one, end in zip(bounds, (-inf, inf), strict=True))
        return rows_of(rv.name, None, flat_prior(shape, low, high))

    def bounds(self, ends: Any) -> tuple[Any, Any] | None:
        """The ends of an interval where they are constants, or None."""
        from pytensor.graph.basic import Variable
        from pytensor.graph.traversal import ancestors

        found: list[Any] = []
        for one in ends:
            if isinstance(one, Variable):
                if any(part in self.model.basic_RVs for part in ancestors([one])):
                    return None
                one = one.eval()
            found.append(one)
        return (found[0], found[1]) if len(found) == 2 else None

    # ---- draws from the prior ----

    @cached_property
    def drawing(self) -> tuple[Callable[[], Array], list[Any]]:
        """A function that draws z (dim,) from the prior, and its generators."""
        import pytensor.tensor as pt
        from pymc.pytensorf import compile

        f = compile([], pt.concatenate([one.ravel() for one in self.forwards]), mode=QUICK,
                    random_seed=0)
        return f, [one for one in f.get_shared() if isinstance(
            one.get_value(borrow=True), np.random.Generator)]

    def prior_draw(self, rng: np.random.Generator) -> Array:
        """A draw from the prior as an unconstrained point, (dim,)."""
        from pymc.pytensorf import reseed_rngs

        f, generators = self.drawing
        reseed_rngs(generators, rng.integers(2**62))
        with np.errstate(all="ignore"):
            return np.array(f(), dtype=float)

    # ---- what is recorded ----

    def quantities(
        self, deterministics: list[str], prefix: str | None, *, numba: bool
    ) -> Callable[[Array], dict[str, Any]]:
        """A function of Z (k, dim) that returns quantities {name: (k, *shape)}."""
        named = {}
        if deterministics:
            some = self.model.replace_rvs_by_values([self.model[name] for name in deterministics])
            named = dict(zip(deterministics, some, strict=True))
        if prefix is not None:
            observed = self.model.observed_RVs
            each = self.model.logp(vars=observed, sum=False) if observed else []
            named |= {prefix + rv.name: one for rv, one in zip(observed, each, strict=True)}
        types = [(name, tuple(np.shape(value)), one.dtype) for (name, one), value in
                 zip(named.items(), self.evaluated(list(named.values())), strict=True)]
        vector, z = self.vector(list(named.values()))
        width = sum(prod(shape) for _, shape, _ in types)
        rows = self.every_row(vector, z, width, numba=numba)

        def quantities(Z: Array) -> dict[str, Any]:
            found, start, table = {}, 0, rows(Z)
            for name, shape, dtype in types:
                some = table[:, start : start + prod(shape)].reshape(len(Z), *shape)
                found[name] = some if dtype.startswith("float") else some.astype(dtype)
                start += prod(shape)
            return found

        return quantities

    def every_row(self, vector: Any, z: Any, width: int, *, numba: bool) -> Rows:
        """A function of Z (k, dim) that returns the values (k, width) of a vector."""
        if numba:
            from fastkam.density.numba import graph_rows

            # PyTensor's own function computes what numba cannot compile
            with suppress(Exception), without_hints():
                rows: Rows = graph_rows(jitted([z], [vector]), width)
                rows(self.initial.reshape(1, -1))
                return rows
        from pymc.pytensorf import compile

        f = compile([z], vector)
        return lambda Z: np.array([f(one) for one in Z]).reshape(len(Z), width)


def frozen(model: Any) -> Any:
    """The model with its data and dimensions as constants, which PyTensor makes use of.

    PyMC refuses to copy a model with initial values, so these are taken out meanwhile.
    """
    from pymc.model.transform.optimization import freeze_dims_and_data

    given = dict(model.rvs_to_initial_values)
    try:
        model.rvs_to_initial_values.update(dict.fromkeys(given))
        return freeze_dims_and_data(model)
    finally:
        model.rvs_to_initial_values.update(given)


def jitted(inputs: list[Any], outputs: list[Any]) -> Any:
    """The numba function of a graph; NotCompiled if it needs Python or is not available."""
    from pymc.pytensorf import compile

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            f = compile(inputs, outputs, mode="NUMBA")
        except Exception as error:  # PyTensor raises errors of many types
            raise NotCompiled(first_line(error)) from error
    objects = [str(one.message) for one in said if "object mode" in str(one.message)]
    if objects:
        raise NotCompiled(objects[0].splitlines()[0])
    if len(f.maker.fgraph.inputs) != len(inputs):
        raise NotCompiled("it has shared variables besides its data")
    made = getattr(f.vm, "jit_fn", None)
    if made is None or not hasattr(made, "py_func"):
        raise NotCompiled("this version of PyTensor does not hand out its compiled function")
    return made


@contextmanager
def without_hints() -> Iterator[None]:
    """A context without numba's hints at slow code, which is PyTensor's and not the user's."""
    from numba.core.errors import NumbaPerformanceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaPerformanceWarning)
        yield


def first_line(error: BaseException) -> str:
    """The kind of an error and its first line."""
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]:.200}"


class Single:
    """``f(z) -> log density`` of a function of PyTensor."""

    def __init__(self, f: Any) -> None:
        self.f = f

    def __call__(self, z: Array) -> float:
        return without_overflow(self.f(z)[0])


class Pair:
    """``f(z) -> (log density, gradient)`` of a function of PyTensor."""

    def __init__(self, f: Any) -> None:
        self.f = f

    def __call__(self, z: Array) -> tuple[float, Array]:
        value, gradient = self.f(z)
        return without_overflow(value), gradient


def without_overflow(value: Any) -> float:
    """A log density, NaN where it is +inf: a graph overflows far from where its density is."""
    return np.nan if value == np.inf else float(value)
