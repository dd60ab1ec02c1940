import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.target import Target

class GaussianProcessDensity(Target):
    def set_up(
        self,
        X: NDArray[np.float64],
        y: NDArray[np.float64],
        variance: float,
        slope: float,
        draws: int = 0,
        ridge: float = 0.0,
    ) -> None: ...
    def estimate_logp(self, theta: NDArray[np.float64], u: NDArray[np.float64]) -> float: ...
