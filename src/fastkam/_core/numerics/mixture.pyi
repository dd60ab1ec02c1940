import numpy as np
from numpy.typing import NDArray

DEGREES: int
TAIL: float
TAIL_SCALE: float

class Mixture:
    def __init__(self, d: int, most: int) -> None: ...
    @property
    def d(self) -> int: ...
    @property
    def n(self) -> int: ...
    def log_densities(self, points: NDArray[np.float64]) -> NDArray[np.float64]: ...

def packed(
    weights: NDArray[np.float64], means: NDArray[np.float64], factors: NDArray[np.float64]
) -> Mixture: ...
def nearest(
    points: NDArray[np.float64], means: NDArray[np.float64], factors: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.intp]]: ...
def expect(
    states: NDArray[np.float64],
    weights: NDArray[np.float64],
    means: NDArray[np.float64],
    factors: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]: ...
