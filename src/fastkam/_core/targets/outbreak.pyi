import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam._core.density.target import Target

class OutbreakDensity(Target):
    def set_up(
        self,
        days: NDArray[np.float64],
        counts: NDArray[np.float64],
        population: float,
        prior_mean: NDArray[np.float64],
    ) -> None: ...
    def solve(
        self, beta: float, gamma: float, i0: float, days: ArrayLike
    ) -> NDArray[np.float64] | None: ...
