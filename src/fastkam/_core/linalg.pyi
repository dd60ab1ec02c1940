import numpy as np
from numpy.typing import NDArray

def named_level() -> bytes: ...
def factorise(A: NDArray[np.float64], begin: int, end: int) -> int: ...
def update(L: NDArray[np.float64], v: NDArray[np.float64], a: float, s: float) -> bool: ...
def log_densities(
    x: NDArray[np.float64],
    mean: NDArray[np.float64],
    L: NDArray[np.float64],
    which: NDArray[np.int64],
    out: NDArray[np.float64],
    begin: int,
    end: int,
) -> None: ...
