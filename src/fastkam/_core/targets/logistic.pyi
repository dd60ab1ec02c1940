import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.target import Target

class LogisticDensity(Target):
    def set_up(
        self, X: NDArray[np.float64], t: NDArray[np.float64], variance: float
    ) -> None: ...
