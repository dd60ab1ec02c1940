from typing import final

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.target import Target

N_TIMED: int

@final
class Evaluation:
    def __init__(self, target: Target, n: int, gradient: bool) -> None: ...
    def call_helpers(self, threads: int) -> None: ...
    def dismiss_helpers(self) -> None: ...
    def values_of(
        self, X: NDArray[np.float64], noise: NDArray[np.float64] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.intc]]: ...
