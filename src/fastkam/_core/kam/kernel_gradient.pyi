import numpy as np
from numpy.typing import ArrayLike, NDArray

CELLS: int
FIRST_OCTAVE: int
OCTAVES: int

class KernelFunction:
    def __init__(
        self,
        kind: str,
        length: float = 1.0,
        order: float = 1.0,
        table: NDArray[np.float64] | None = None,
        origin: float = 0.0,
        a: float = 0.0,
        b: float = 0.0,
    ) -> None: ...
    def moments(
        self, y: ArrayLike, z: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def covariances(
        self,
        y: NDArray[np.float64],
        blocks: NDArray[np.float64],
        n: int,
        step_size: float,
        noise: float,
        out: NDArray[np.float64],
        begin: int,
        end: int,
    ) -> None: ...

