"""A chain whose density is evaluated by another package: it asks for values at points.

The engine leaves a step that cannot be finished pending, with its proposal, and begins the next
call with the evaluation. Therefore the density raises `Waiting` if it has no value yet, and the
step continues once the value is known. The search for the scales is repeated with known values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.hosts.steps import Chains
from fastkam.search.scales import find_scales

Array = NDArray[np.float64]


class Waiting(Exception):
    """The value of the density at a point (d,) is not known yet."""


class Asking:
    """A chain that hands out the points at which it needs the density.

    First it finds the length of each coordinate in which the log density changes by 1.

    Parameters
    ----------
    x : array (d,)
        Starting point.
    **options
        Options of `Chains`, without the scales.

    Attributes
    ----------
    chains : Chains or None
        The chain, once the scales are known.
    """

    def __init__(self, x: Array, **options: Any) -> None:
        self.x, self.options = x, options
        self.chains: Chains | None = None
        self.point: Array | None = x  # to be evaluated
        self.values: dict[bytes, float] = {}  # values in the search, by points
        self.given: list[Any] = []  # what is known at the points of this step

    def ask(self) -> Array:
        """The point (d,) at which the density is needed next."""
        while self.point is None:  # a step may need no evaluation
            self.go_on()
        return self.point.copy()

    def tell(self, value: float, gradient: Array | None = None) -> bool:
        """Continue with the log density there, and its gradient (d,) if the sampler needs it.

        Returns
        -------
        bool
            Whether the chain has made a step, or is now ready for the first.
        """
        assert self.point is not None
        point, self.point = self.point, None
        if self.chains is not None:
            self.given.append((value, gradient))
            return self.go_on()
        self.values[point.tobytes()] = value
        try:
            scales, _ = find_scales(self.known, self.x, self.values[self.x.tobytes()])
        except Waiting:
            return False
        self.chains = Chains(self.evaluate, self.x.reshape(1, -1), scales=scales, **self.options)
        self.chains.place(self.chains.x, [self.values[self.x.tobytes()]])
        return True

    def known(self, X: Array) -> Array:
        """The log densities (k,) that the search has been given."""
        for x in X:
            if x.tobytes() not in self.values:
                self.point = x.copy()
                raise Waiting
        return np.array([self.values[x.tobytes()] for x in X])

    def evaluate(self, X: Array) -> Any:
        """Return the values given for the points X (k, d) of a step; ask for those not given yet.

        A step of several replicas has several points, which are asked for one after the other.
        """
        if len(self.given) < len(X):
            self.point = X[len(self.given)].copy()
            raise Waiting
        values, gradients = zip(*self.given, strict=True)
        self.given = []
        return np.array(values) if gradients[0] is None else (
            np.array(values), np.array(gradients))

    def go_on(self) -> bool:
        """Continue until the step is made, or a value is missing."""
        assert self.chains is not None
        try:
            self.chains.step()
        except Waiting:
            return False
        return True
