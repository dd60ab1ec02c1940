from collections.abc import Callable
from typing import Any

from fastkam._core.density.python_target import PythonTarget
from fastkam._core.density.target import Target

KEY: int
OF_SURROGATE: str
WITHOUT_SURROGATE: int

class PythonEstimator(PythonTarget):
    def __init__(
        self,
        f: Callable[..., Any],
        dim: int,
        n_aux: int | None,
        *,
        vectorized: bool = False,
        correlation: float,
        blocks: int,
    ) -> None: ...
    def bind(self) -> PythonEstimator: ...

class ForeignEstimator(Target):
    def __init__(self, made: Target, *, correlation: float, blocks: int) -> None: ...

class SurrogateTarget(Target):
    def __init__(self, made: Target, surrogate: Target) -> None: ...
    def bind(self) -> SurrogateTarget: ...
