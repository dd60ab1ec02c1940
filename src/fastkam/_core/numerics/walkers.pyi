import numpy as np
from numpy.typing import NDArray

from fastkam.search.mixture import Mixture

INDEPENDENT: int
WALK: int
SCOUT: int

class Walkers:
    def __init__(
        self, generator: np.random.Generator, scales: NDArray[np.float64], n: int, optimal: float,
        scouts: float,
    ) -> None: ...
    def alone(
        self, x: NDArray[np.float64], lengths: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.intp]]: ...
    def propose(
        self, x: NDArray[np.float64], others: NDArray[np.float64], lengths: NDArray[np.float64],
        independent: float, walks: float, mixture: Mixture | None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]]: ...
