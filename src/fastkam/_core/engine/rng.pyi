import numpy as np
from numpy.typing import NDArray

def standard_normal(bit_generator: np.random.BitGenerator, n: int) -> NDArray[np.float64]: ...
