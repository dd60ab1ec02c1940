import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.target import Target

class HorseshoeDensity(Target):
    def set_up(
        self, n: int, R: NDArray[np.float64], b: NDArray[np.float64], rss: float
    ) -> None: ...
