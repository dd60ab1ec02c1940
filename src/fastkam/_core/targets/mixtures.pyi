import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.target import Target

class GaussianMixtureDensity(Target):
    def set_up(
        self,
        weights: NDArray[np.float64],
        means: NDArray[np.float64],
        factors: NDArray[np.float64],
    ) -> None: ...

class LatticeMixtureDensity(Target):
    def set_up(self, d: int, K: int, spacing: float, variance: float) -> None: ...
