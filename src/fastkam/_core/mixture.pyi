import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

class Mixture:
    def __init__(self, d: int, most: int) -> None: ...
    @property
    def d(self) -> int: ...
    @property
    def n(self) -> int: ...

def expect(
    states: Array, weights: Array, means: Array, factors: Array
) -> tuple[Array, Array, Array, float]: ...
