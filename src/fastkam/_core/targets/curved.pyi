from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.target import Target

class BananaMixtureDensity(Target):
    def set_up(
        self,
        weights: NDArray[np.float64],
        bent: Any,
        along: Any,
        shift: NDArray[np.float64],
        curvature: NDArray[np.float64],
        variances: NDArray[np.float64],
    ) -> None: ...

class FlowerDensity(Target):
    def set_up(
        self,
        d: int,
        r0: float,
        A: float,
        w: int,
        s2: float,
        full_norm: bool,
        constant: float,
    ) -> None: ...

class FunnelDensity(Target):
    def set_up(self, d: int, variance: float) -> None: ...
