from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.target import Target

class MissingGradient(TypeError):
    def __init__(self, value: object) -> None: ...

def paired(value: Any) -> Any: ...
def extras_in(value: Any) -> dict[str, Any] | None: ...
def as_float(value: Any) -> float: ...

class PythonTarget(Target):
    @property
    def vectorized(self) -> bool: ...
    @property
    def gradient(self) -> bool: ...
    @property
    def function(self) -> Callable[[NDArray[np.float64]], Any]: ...
    def __init__(
        self,
        f: Callable[[NDArray[np.float64]], Any],
        dim: int,
        *,
        vectorized: bool,
        gradient: bool,
        hvp: Callable[[NDArray[np.float64], NDArray[np.float64]], Any] | None = None,
    ) -> None: ...
    def bind(self) -> PythonTarget: ...
