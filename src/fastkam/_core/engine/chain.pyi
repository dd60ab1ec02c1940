from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam._core.engine.fields import Field
from fastkam._core.engine.kernel import Kernel
from fastkam._core.engine.ranges import Step
from fastkam._core.engine.state import State

REJECTED: tuple[str, ...]
NUMBERS: dict[str, Field]

@final
class ChainState(State):
    STEP: ClassVar[dict[str, Field]]
    GRADIENTS: ClassVar[dict[str, Field]]
    NOISE: ClassVar[dict[str, Field]]
    t: int
    pending: int
    answer: int
    frozen: int
    n_adapted: int
    next_adaptation: int
    n_accepted: int
    n_evaluations: int
    @property
    def kernel(self) -> Kernel: ...
    @property
    def bit_generator(self) -> np.random.BitGenerator: ...
    def __init__(
        self,
        kernel: Kernel,
        bit_generator: np.random.BitGenerator,
        x0: ArrayLike,
        *,
        n_aux: int = 0,
    ) -> None: ...
    @property
    def position(self) -> NDArray[np.float64]: ...
    @property
    def gradient_at_x(self) -> NDArray[np.float64]: ...
    @property
    def noise_at_x(self) -> NDArray[np.float64]: ...
    @property
    def count(self) -> int: ...
    @property
    def rejected(self) -> dict[str, int]: ...
    def check(self, state: dict[str, NDArray[Any]], step: Step | None = None) -> None: ...
    def attach(
        self, arrays: dict[str, NDArray[Any]], capacity: int = 0, thin: int = 1, *,
        noting: bool = False,
    ) -> None: ...
    def take_notes(self) -> dict[int, NDArray[Any]]: ...
    def take_note_error(self) -> BaseException | None: ...
    def keep_history(self, n: int) -> None: ...
    def snapshot(self, i: int) -> None: ...
    def place(
        self, x: ArrayLike, noise: ArrayLike | None = None, logp: float = ...
    ) -> None: ...
