import numpy as np
from numpy.typing import NDArray

COLUMNS: tuple[str, ...]

def measure(draws: NDArray[np.float64]) -> NDArray[np.float64]: ...
