"""The log density at many points, as a search needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam._core.engine.evaluation import Evaluation
from fastkam._core.engine.group import INFINITE, Fault

if TYPE_CHECKING:
    from fastkam._core.density.target import Target

Array = NDArray[np.float64]
MOST_POINTS = 256  # in one call of a vectorized function


class Evaluator:
    """Evaluates a target, and counts.

    Where the density is estimated, all estimates are made with the same noise, so that they differ
    by the points alone.

    Attributes
    ----------
    n : int
        How many points have been evaluated.
    """

    def __init__(self, target: Target, rng: np.random.Generator) -> None:
        self.target = target.bind()
        self.noise = rng.standard_normal(target.n_aux) if target.is_estimate else None
        self.evaluation = Evaluation(self.target, MOST_POINTS, False)
        self.n = 0

    @contextmanager
    def helped(self, threads: int) -> Iterator[None]:
        """A context in which other threads help with a compiled density that is slow."""
        self.evaluation.call_helpers(threads)
        try:
            yield
        finally:
            self.evaluation.dismiss_helpers()

    def __call__(self, X: Array) -> Array:
        """The log densities (n,) at the rows of X (n, d): -inf where there is none; or a Fault."""
        parts = [self.some(X[i : i + MOST_POINTS]) for i in range(0, len(X), MOST_POINTS)]
        return np.concatenate(parts) if parts else np.empty(0)

    def some(self, X: Array) -> Array:
        """The same for at most MOST_POINTS rows."""
        finite = np.isfinite(X).all(axis=1)
        values = np.full(len(X), -np.inf)
        found, codes = self.evaluation.values_of(np.ascontiguousarray(X[finite]), self.noise)
        self.n += len(found)
        codes = np.where((codes == 0) & (found == np.inf), INFINITE, codes)
        if (codes < 0).any():
            i = int(np.argmax(codes < 0))
            x = X[finite][i].copy()
            raise Fault(0, x, int(codes[i]), self.target.fault(int(codes[i]), x))
        values[finite] = np.where((codes == 0) & ~np.isnan(found), found, -np.inf)
        return values
