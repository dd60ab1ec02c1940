from typing import Any

from numpy.typing import ArrayLike, NDArray

from fastkam._core.density.target import Target

MOST_DIMENSIONS: int
DEGREES: int
FAR: float

def packed(points: Any) -> Any: ...
def made(given: dict[str, Any]) -> LearnedDensity: ...

class LearnedDensity(Target):
    def set_up(
        self, *, low: Any, high: Any, c: Any, T: Any, b0: float, b: Any, B: Any, U: Any, a: Any,
        out: Any, power: float, w: Any, m: Any, W: Any, flat: float = ..., flatter: float = ...,
    ) -> None: ...
    def parts(self, x: ArrayLike) -> NDArray[Any]: ...
