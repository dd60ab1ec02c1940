from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.target import Target

LOG_2PI: float

class Forms:
    @property
    def K(self) -> int: ...
    @property
    def d(self) -> int: ...
    @property
    def log_det(self) -> Any: ...
    def __init__(self, means: NDArray[np.float64], factors: NDArray[np.float64]) -> None: ...

class GaussianDensity(Target):
    def set_up(self, mean: NDArray[np.float64], factor: NDArray[np.float64]) -> None: ...

class StudentTDensity(Target):
    def set_up(
        self, mean: NDArray[np.float64], factor: NDArray[np.float64], df: float
    ) -> None: ...

