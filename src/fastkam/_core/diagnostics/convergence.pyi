import numpy as np
from numpy.typing import NDArray

COLUMNS: tuple[str, ...]

def measure(
    draws: NDArray[np.float64], *, r_hat: bool = True, sizes: bool = True, mcse_sd: bool = True
) -> NDArray[np.float64]: ...
