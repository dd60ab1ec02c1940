"""PyMC: a model compiled through PyTensor's numba backend, with its names, shapes and quantities.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterable
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.joined import JoinedTarget
from fastkam.arguments import check_flag, import_extra, near, shown
from fastkam.density.target import Target
from fastkam.errors import SamplingWarning, warn
from fastkam.interop.model import Model, Quantities, drawn_prior, whole
from fastkam.interop.pymc_graph import Graph, NotCompiled
from fastkam.problem.coordinates import Coordinates
from fastkam.run.shapes import Layout

Array = NDArray[np.float64]

ADVICE = "pip install fastkam[pymc]"
LOG_LIKELIHOOD = "log_likelihood."  # in front of the name of an observed variable
JITTER = 1.0  # added to the initial point where there is no prior to draw from
RECOVERED = 1e-8  # largest error of a point that is mapped back, relative to its largest coordinate
SUPPORTS = {"SimplexTransform": "positive numbers that add up to 1",
            "ZeroSumTransform": "numbers that add up to 0"}
log = logging.getLogger("fastkam")


def from_pymc(
    model: Any, *, deterministics: bool | Iterable[str] = True, log_likelihood: bool = False,
    backend: str = "auto",
) -> PyMCModel:
    """A PyMC model, ready to be sampled.

    `fastkam.sample` takes a PyMC model directly; call this to choose what is recorded, to compile
    once for several runs, or to send the model to workers. Data are those that the model has now.

    Parameters
    ----------
    model : pymc.Model
    deterministics : bool or list of str
        Which Deterministics are recorded with each draw, in ``result.extras``.
    log_likelihood : bool
        Whether the log likelihood of each observation is recorded too, as the extra
        ``"log_likelihood.y"`` for an observed variable y; `Result.to_datatree` puts it where ArviZ
        looks for it.
    backend : str
        "numba": value and gradient as C pointers, without Python in the loop; "python": PyTensor's
        default functions; "auto": numba if it is installed and compiles the model, and otherwise
        Python, with a warning that says why.

    Returns
    -------
    PyMCModel
        A `fastkam.interop.model.Model`.

    Raises
    ------
    ImportError
        Without PyMC.
    TypeError, ValueError
        If `model` is not a PyMC model, has no free variables, discrete ones or some with a circular
        transform, or computes in single precision.
    """
    pymc = import_extra("pymc", ADVICE)
    if isinstance(model, type) or not isinstance(model, pymc.Model):
        raise TypeError(f"model must be a pymc.Model, not {shown(model)}")
    if backend not in ("auto", "numba", "python"):
        raise ValueError(f"backend must be 'auto', 'numba' or 'python', not {shown(backend)}"
                         f"{near(backend, ('auto', 'numba', 'python'))}")
    check_free(model)
    return PyMCModel(model, check_deterministics(model, deterministics),
                     check_flag("log_likelihood", log_likelihood), backend)


def check_free(model: Any) -> None:
    """Refuse a model without free variables, with variables that are discrete, or the like."""
    if not model.free_RVs:
        raise ValueError("model must have free variables, and all that this one has are observed "
                         "or deterministic")
    discrete = [rv.name for rv in model.free_RVs if rv.dtype.startswith(("int", "uint", "bool"))]
    if discrete:
        raise ValueError(f"model must have continuous free variables, and {discrete} are discrete: "
                         "sum them out (pymc_extras.marginalize), or observe them")
    circular = [rv.name for rv in model.free_RVs
                if type(model.rvs_to_transforms[rv]).__name__ == "CircularTransform"]
    if circular:
        raise ValueError(f"model must have no circular transform, with which its density has no "
                         f"integral, and {circular} have one: give each default_transform="
                         "pm.distributions.transforms.Interval(-np.pi, np.pi)")
    single = [rv.name for rv in model.free_RVs if rv.dtype != "float64"]
    if single:
        raise ValueError(f"model must compute in double precision, and {single} are "
                         f'{model[single[0]].dtype}: set pytensor.config.floatX = "float64" before '
                         "the model is made")


def check_deterministics(model: Any, wanted: Any) -> list[str]:
    """The names of the Deterministics that are recorded."""
    names = [variable.name for variable in model.deterministics]
    if isinstance(wanted, (bool, np.bool_)):
        return names if wanted else []
    if isinstance(wanted, str) or not isinstance(wanted, Iterable):
        raise TypeError(f"deterministics must be True, False or a list of names, not "
                        f"{shown(wanted)}")
    wanted = list(wanted)
    if unknown := [name for name in wanted if name not in names]:
        raise ValueError(f"deterministics names {unknown}, and the model has {names}")
    return wanted


class PyMCModel(Model):
    """A PyMC model as a density of PyMC's own unconstrained values; made by `from_pymc`."""

    def __init__(
        self, model: Any, deterministics: list[str], log_likelihood: bool, backend: str
    ) -> None:
        self.given = model, deterministics, log_likelihood, backend
        self.deterministics, self.log_likelihood = deterministics, log_likelihood
        self.graph = Graph(model)
        self.dim = self.graph.dim
        self.layout = Layout(self.graph.shapes, self.dims(model), self.coords(model))
        self.value, self.pair, self.route = self.compiled(backend)
        self.lock = threading.Lock()  # functions of PyTensor are not for two threads at once
        self.coordinates = self.mapped()

    def compiled(self, backend: str) -> tuple[Target, Target | None, str]:
        """The targets of value and gradient, and how they are evaluated."""
        if backend != "python":
            try:
                made = self.graph.compiled_target()
            except NotCompiled as error:
                if backend == "numba":
                    raise TypeError(f"backend='numba' cannot compile this model: {error}") from (
                        error)
                warn(SamplingWarning("the PyMC model is evaluated in Python, some 10 to 100 times "
                                     f"as slowly as compiled: {error}"))
            else:
                log.info("PyMC: value and gradient are compiled by numba")
                return made, None, "numba"
        return *self.graph.python_targets(), "Python"

    # ---- names ----

    def dims(self, model: Any) -> dict[str, list[str]]:
        """Names of the dimensions of parameters and recorded quantities, where they all have one.
        """
        named = {name: list(dims) for name, dims in model.named_vars_to_dims.items()
                 if dims and all(isinstance(dim, str) for dim in dims)}
        found = {name: named[name] for name in [*self.graph.shapes, *self.deterministics]
                 if name in named}
        for rv in model.observed_RVs if self.log_likelihood else ():
            if rv.name in named and rv.owner.op.ndim_supp == 0:
                found[LOG_LIKELIHOOD + rv.name] = named[rv.name]
        return found

    def coords(self, model: Any) -> dict[str, NDArray[Any]]:
        """Values along those dimensions, where the model has them."""
        used = {dim for dims in self.dims(model).values() for dim in dims}
        return {dim: storable(values) for dim, values in model.coords.items()
                if dim in used and values is not None}

    # ---- the map ----

    def mapped(self) -> Coordinates:
        """fastkam's own transforms if they are PyMC's; otherwise the map of the model itself."""
        rows = self.graph.rows()
        if rows is not None:
            return rows
        about = [(name, shape, *self.graph.transforms[name])
                 for name, shape in self.layout.shapes.items()]
        key = hashlib.sha256(repr(about).encode()).hexdigest()[:16]
        names = ", ".join(self.names)
        return whole(self, f"PyMC model of {names} {key}", self.n_x, names)

    def constrain_one(self, z: Array) -> Array:
        with self.lock:
            return self.graph.constrain(z)

    def unconstrain_one(self, x: Array) -> Array:
        with self.lock:
            return self.graph.unconstrain(x)

    def check_support(self, name: str, x: Array) -> None:
        """Refuse points that PyMC's transforms project onto the support, such as a simplex."""
        if self.coordinates.rows[0][0] != "python" or x.shape[-1:] != (self.n_x,):
            return
        for one in x.reshape(-1, self.n_x):
            with np.errstate(all="ignore"):
                z = self.unconstrain_one(one)
                pairs = self.layout.split(np.stack([one, self.constrain_one(z)]))
            start = 0
            for variable, (value, back) in pairs.items():
                kind, size = self.graph.transforms[variable]
                error = np.abs(back - value).max(initial=0.0)
                if not (np.isfinite(z[start : start + size]).all()
                        and error <= RECOVERED * np.abs(value).max(initial=0.0)):
                    what = SUPPORTS.get(kind, "a point that its transform takes")
                    raise ValueError(f"{name} must have {variable!r} as {what}, not "
                                     f"{np.array2string(value, threshold=8)}")
                start += size

    # ---- starts ----

    @cached_property
    def has_prior(self) -> bool:  # type: ignore[override]
        """Whether every parameter can be drawn from its prior."""
        try:
            return bool(np.isfinite(self.graph.prior_draw(np.random.default_rng(0))).all())
        except Exception:  # Flat and the like have no draws
            return False

    def sample_prior(self, n: int, rng: Any = None) -> Array:
        """Draws from the prior as unconstrained points, (n, dim)."""
        with self.lock:
            return drawn_prior(self.graph.prior_draw, n, rng)

    def start_point(self, rng: np.random.Generator) -> Array:
        """A draw from the prior, or around PyMC's initial point if there is none."""
        if self.has_prior:
            return self.sample_prior(1, rng)[0]
        return self.graph.initial + rng.uniform(-JITTER, JITTER, self.dim)

    # ---- targets ----

    def target(self, *, gradient: bool = False) -> Target:
        """The density of z as a Target."""
        recipe = partial(target_of, *self.given)
        made: Any = JoinedTarget(self.value, self.pair, self.quantities, recipe)
        return made

    @cached_property
    def quantities(self) -> Quantities | None:
        """The quantities recorded with each draw, or None."""
        if not (self.deterministics or self.log_likelihood):
            return None
        evaluate = self.graph.quantities(
            self.deterministics, LOG_LIKELIHOOD if self.log_likelihood else None,
            numba=self.route == "numba")

        def locked(Z: Array) -> dict[str, Any]:
            with self.lock:
                return evaluate(Z)

        return Quantities(self, locked)

    def __reduce__(self) -> Any:
        return PyMCModel, self.given


def storable(values: Iterable[Any]) -> NDArray[Any]:
    """Values along a dimension as an array (n,) that a file can hold.

    Numbers and dates without a time zone are kept; others, such as periods and tuples, become
    strings.
    """
    import pandas  # which PyMC needs

    index = pandas.Index(list(values), tupleize_cols=False)
    if index.inferred_type == "date":
        return np.array(index, "datetime64[D]")
    array = index.to_numpy()
    return np.array([str(value) for value in index]) if array.dtype == object else array


def target_of(model: Any, deterministics: list[str], log_likelihood: bool, backend: str) -> Target:
    """The target of a model in another process."""
    return PyMCModel(model, deterministics, log_likelihood, backend).target()
