from collections.abc import Callable
from typing import Any

from fastkam._core.density.target import Target

class JoinedTarget(Target):
    def __init__(
        self, value: Target, gradient: Target | None = None, derived: Any = None,
        recipe: Callable[[], Any] | None = None,
    ) -> None: ...
    @property
    def gradient(self) -> bool | None: ...
    @property
    def function(self) -> Any: ...
    def bind(self) -> JoinedTarget: ...

class ZeroTarget(Target):
    def __init__(self, dim: int) -> None: ...
