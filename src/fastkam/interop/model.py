"""Model: a density of another package, with the names and the shapes of its own parameters."""

from __future__ import annotations

import weakref
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_generator, check_integer, counted
from fastkam.density.target import Target
from fastkam.problem.call import Derived
from fastkam.problem.coordinates import Coordinates
from fastkam.problem.described import Described
from fastkam.problem.starts import Evaluate, first_points, none_finite, one_by_one
from fastkam.problem.transforms import Row, Transform

Array = NDArray[np.float64]

known: dict[str, weakref.WeakSet[Model]] = {}  # the models of this process, by their keys


class Model(Described):
    """A density of unconstrained points that another package defines and transforms itself.

    Samplers move an unconstrained point z, as with `fastkam.Problem`; the model's own density of z
    includes the log Jacobian. Draws, starts and files have the model's parameters x(z) by name.
    Accepted by `fastkam.sample` in place of a density.

    Attributes
    ----------
    dim : int
        Number of coordinates of the unconstrained z.
    route : str
        How the density is evaluated: "C" or "numba", both without Python in the loop, or "Python".
    """

    dim: int
    route: str
    log_prior_z = None  # the search needs it of a Problem alone

    # ---- what a package provides ----

    @abstractmethod
    def target(self, *, gradient: bool = False) -> Target:
        """The density of z as a Target."""

    @abstractmethod
    def constrain_one(self, z: Array) -> Array:
        """The parameters x (n,) of z (dim,)."""

    @abstractmethod
    def unconstrain_one(self, x: Array) -> Array:
        """z (dim,) of the parameters x (n,); NaN where they are impossible."""

    @abstractmethod
    def start_point(self, rng: np.random.Generator) -> Array:
        """A point z (dim,) at which a chain may start, drawn at random."""

    has_prior = False

    def sample_prior(self, n: int, rng: Any = None) -> Array:
        """Independent draws from the prior as unconstrained points, (n, dim)."""
        raise TypeError(f"{self!r} cannot draw from its prior")

    # ---- as a Problem has it ----

    def start(
        self, x0: Any, chains: int, seed: np.random.SeedSequence, evaluate: Evaluate | None = None,
        *, at_once: bool = False,
    ) -> Array:
        """Starting points (chains, dim): x0 in the model's parameters, or points of the model.

        Each chain draws from its own stream, up to 100 times, until the density is finite.
        """
        if x0 is None:
            return self.drawn(chains, seed, evaluate, at_once)
        x = self.as_array("x0", x0)
        if x.ndim not in (1, 2) or x.shape[-1] != self.n_x:
            raise ValueError(f"x0 must have shape ({self.n_x},) or (chains, {self.n_x}), not "
                             f"{x.shape}: the parameters are {self.shapes}")
        if x.ndim == 2 and len(x) != chains:
            raise ValueError(f"x0 has {counted(len(x), 'row')}, but there are {chains} chains")
        self.check_support("x0", x)
        z = self.coordinates.unconstrain(x, "x0")
        return np.array(np.broadcast_to(z, (chains, self.dim)))

    def unconstrain(self, x: Any) -> Array:
        x = self.as_array("x", x)
        self.check_support("x", x)
        return self.coordinates.unconstrain(x)

    def check_support(self, name: str, x: Array) -> None:
        """Refuse points x (..., n) that the package maps to a z but that no z is mapped to."""

    def drawn(
        self, chains: int, seed: np.random.SeedSequence, evaluate: Evaluate | None, at_once: bool
    ) -> Array:
        """Points of the model where the density is finite, (chains, dim)."""
        points, tried = first_points(
            self.start_point, evaluate or partial(one_by_one, self.target()), 0, chains, seed,
            at_once=at_once, passed=ArithmeticError)
        if not tried:
            return points
        why = "".join(f" (the last: {one})" for one in tried[-1:] if isinstance(one, Exception))
        raise ValueError(f"the log density of {self!r} "
                         f"{none_finite(tried, f'points drawn for a start{why}')}")

    def beside(self, surrogate: Any) -> Target:
        """The target of another model of the same parameters, which stands in for this one."""
        if isinstance(surrogate, Model) and surrogate.shapes == self.shapes:
            return surrogate.target()
        raise TypeError("surrogate must be another model of the same parameters and transforms "
                        f"beside {self!r}, not {surrogate!r:.100}")

    def __repr__(self) -> str:
        return (f"<{type(self).__name__} of {', '.join(self.names[:8])}: {self.dim} unconstrained, "
                f"through {self.route}>")


class Quantities(Derived):
    """Quantities that a model computes at each draw, as `derived` of a Problem.

    Parameters
    ----------
    model : Model
    evaluate : callable
        Returns a dict of arrays (k, *shape) of points Z (k, dim).
    """

    def __init__(self, model: Model, evaluate: Callable[[Array], dict[str, Any]]) -> None:
        super().__init__(evaluate, None, True)
        self.model = model

    def __reduce__(self) -> Any:
        raise TypeError(f"{self.model!r} evaluates its quantities in the process of the run")


# ---- the map of a model, for files ----


@dataclass(frozen=True)
class ModelTransform(Transform):
    """The transform of all parameters of a model, which a file holds by its key alone.

    The model itself must be made in the process that reads the file: a file cannot make code run.
    """

    key: str
    n_z: int

    def size(self, n: int) -> int:
        return self.n_z

    @property
    def model(self) -> Model:
        """The model of that key; ValueError if this process has not made it."""
        found = self.__dict__.get("own") or next(iter(known.get(self.key, ())), None)
        if found is None:
            what = self.key.rpartition(" ")[0]
            raise ValueError(f"the parameters are those of the {what}, which this process has not "
                             "made: make the model first, and keep it")
        return cast(Model, found)

    def __reduce__(self) -> Any:
        return ModelTransform, (self.key, self.n_z)

    def constrain(self, z: Array) -> Array:
        return self.model.constrain_one(z)

    def unconstrain(self, x: Array) -> Array:
        return self.model.unconstrain_one(x)

    def log_jacobian(self, z: Array) -> float:
        """0: the model's density has the log Jacobian."""
        return 0.0


def whole(model: Model, key: str, n_x: int, name: str) -> Coordinates:
    """Coordinates that the model itself maps."""
    known.setdefault(key, weakref.WeakSet()).add(model)
    transform = ModelTransform(key, model.dim)
    transform.__dict__["own"] = model  # lives as long as draws that are read by it
    row: Row = ("python", "identity", 0, model.dim, n_x, -inf, inf, transform)
    return Coordinates(((name, 1),), [row])


def drawn_prior(draw: Callable[[np.random.Generator], Array], n: Any, rng: Any) -> Array:
    """n draws of `draw`, (n, dim)."""
    n, rng = check_integer("n", n, least=0), check_generator("rng", rng)
    return np.array([draw(rng) for _ in range(n)])
