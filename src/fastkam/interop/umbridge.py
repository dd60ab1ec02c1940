"""UM-Bridge: a model behind HTTP, or of this process, whose one output is a log density."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import shown
from fastkam.interop.differentiable import Differentiable


def from_umbridge(model: Any, config: dict[str, Any] | None = None) -> UMBridgeDensity:
    """A model of UM-Bridge with one output, the log density.

    `fastkam.sample` and `fastkam.Problem` take such a model directly; call this to give it a
    configuration. Several input vectors are one point, one after the other.

    Parameters
    ----------
    model : umbridge.HTTPModel or umbridge.Model
    config : dict, optional
        The configuration of the model.

    Raises
    ------
    TypeError
        If `model` is not such a model, or cannot be evaluated.
    ValueError
        If its outputs are more than one number.
    """
    if isinstance(model, type) or not all(
            hasattr(model, name) for name in ("get_input_sizes", "get_output_sizes")):
        raise TypeError(f"model must be a model of UM-Bridge, not {shown(model)}")
    if config is not None and not isinstance(config, dict):
        raise TypeError(f"config must be a dict, not {shown(config)}")
    return UMBridgeDensity(model, config or {})


class UMBridgeDensity(Differentiable):
    """A model of UM-Bridge as a log density; made by `from_umbridge`."""

    def __init__(self, model: Any, config: dict[str, Any]) -> None:
        self.model, self.config = model, config
        if not model.supports_evaluate():
            raise TypeError(f"model {shown(model)} cannot be evaluated")
        sizes = [int(n) for n in model.get_input_sizes(config)]
        outputs = [int(n) for n in model.get_output_sizes(config)]
        if outputs != [1]:
            raise ValueError(f"model must have one number as its output, the log density, and has "
                             f"outputs of sizes {outputs}: write a function of it")
        self.dim, self.edges = sum(sizes), [0, *np.cumsum(sizes).tolist()]
        self.pair = self.both if model.supports_gradient() else None

    def parts(self, x: NDArray[np.float64]) -> list[list[float]]:
        """The input vectors of x (d,)."""
        return [x[start:stop].tolist() for start, stop in pairwise(self.edges)]

    def value(self, x: NDArray[np.float64]) -> float:
        """The log density at x (d,)."""
        return float(self.model(self.parts(x), self.config)[0][0])

    def both(self, x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The log density and its gradient (d,), a call for the value and for each input vector."""
        parts = self.parts(x)
        slopes = [self.model.gradient(0, i, parts, [1.0], self.config) for i in range(len(parts))]
        return self.value(x), np.concatenate([np.asarray(one, dtype=float) for one in slopes])

    def __reduce__(self) -> Any:
        return UMBridgeDensity, (self.model, self.config)

    def __repr__(self) -> str:
        name = getattr(self.model, "name", type(self.model).__name__)
        return f"<UMBridgeDensity of {name!s}, {self.dim} parameters>"
