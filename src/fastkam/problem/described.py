"""Base of densities with named parameters, importable without the modules that make one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam.arguments import no_attribute, real_array

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.problem.coordinates import Coordinates
    from fastkam.run.shapes import Layout

Array = NDArray[np.float64]

# names of other packages -> ours
ELSEWHERE = {
    **dict.fromkeys(["sample_from_prior", "draw_prior", "prior_samples"],
                    "constrain(sample_prior(n, rng))"),
    **dict.fromkeys(["sample", "draw", "run", "fit"], "fastkam.sample(problem)"),
    **dict.fromkeys(["log_prob", "log_density", "log_posterior", "logpdf", "lnprob"], "logp(z)"),
    **dict.fromkeys(["gradient", "grad", "log_density_gradient"], "logp_grad(z)"),
    **dict.fromkeys(["d", "ndim", "n_dim"], "dim"),
    **dict.fromkeys(["transform", "to_unconstrained", "param_unconstrain"], "unconstrain(x)"),
    **dict.fromkeys(["inverse_transform", "to_constrained", "param_constrain"], "constrain(z)"),
}
# what the parts of this package use of one another, and completion does not show
INTERNAL = {"arrange", "as_array", "beside", "called", "called_estimator", "derived_call",
            "drawn_start", "factors", "given", "inner", "need_prior", "off_edges", "prior_target",
            "refuse_arguments", "start", "targets"}


class Described(ABC):
    """A density of unconstrained points z whose parameters x(z) have names and shapes.

    The base class of `Problem`, which loads much of scipy, and of `Model`.

    Attributes
    ----------
    layout : Layout
        Names, shapes, dimensions and coordinates of the parameters.
    coordinates : Coordinates
        The map between z and x.
    """

    layout: Layout
    coordinates: Coordinates

    @abstractmethod
    def target(self, *, gradient: bool = False) -> Target:
        """The density of the unconstrained point."""

    def __getattr__(self, name: str) -> Any:
        """Refuse a name of other packages with ours, and others with one that is near."""
        return no_attribute(self, name, ELSEWHERE)

    def __dir__(self) -> list[str]:
        """The names that completion shows."""
        return [name for name in super().__dir__() if name not in INTERNAL]

    @property
    def names(self) -> list[str]:
        """The names of the parameters, in their order in x."""
        return list(self.layout.shapes)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each parameter."""
        return self.layout.shapes

    @property
    def n_x(self) -> int:
        """Number of coordinates of x."""
        return sum(prod(shape) for shape in self.shapes.values())

    def constrain(self, z: ArrayLike) -> Array:
        """The parameters x (..., n) of z (..., dim)."""
        return self.coordinates.constrain(z)

    def unconstrain(self, x: Any) -> Array:
        """z (..., dim) of the parameters x (..., n), an array or a dict by name.

        Raises
        ------
        ValueError
            If x is outside the support, or on an edge that no z reaches.
        """
        return self.coordinates.unconstrain(self.as_array("x", x))

    def as_array(self, what: str, x: Any) -> Array:
        """Parameters (..., n) from an array, or from a dict of arrays (..., *shape) by name."""
        return self.layout.join(what, x) if isinstance(x, Mapping) else real_array(what, x)

    def logp(self, z: ArrayLike) -> Any:
        """The log density of z (dim,), a float; at each row of z (k, dim), an array (k,)."""
        return self.target().logp(z)

    def logp_grad(self, z: ArrayLike) -> tuple[float, Array]:
        """The log density of z (dim,) and its gradient (dim,)."""
        return self.target(gradient=True).logp_grad(z)
