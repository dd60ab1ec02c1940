from typing import Any

from fastkam._core.engine.kernel import Kernel

class PythonKernel(Kernel):
    def __init__(self, own: Any, x0: Any, fields: Any, **options: Any) -> None: ...
    @property
    def own(self) -> Any: ...
