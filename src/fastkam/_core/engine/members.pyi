from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.target import Target
from fastkam._core.engine.chain import ChainState
from fastkam._core.engine.fault import Fault
from fastkam._core.engine.kernel import Kernel

N_SEARCH: int
NO_STEPS: NDArray[np.int64]

def check_fit(kernel: Kernel, target: Target) -> None: ...

class Members:
    @property
    def target(self) -> Target: ...
    @property
    def chains(self) -> list[ChainState]: ...
    @property
    def shares(self) -> bool: ...
    def __init__(
        self,
        target: Target,
        chains: list[ChainState],
        schedule: tuple[Any, ...],
        *,
        share: bool = False,
        snapshot_steps: NDArray[np.int64] = ...,
    ) -> None: ...
    def start(self) -> None: ...
    def search(
        self, origins: NDArray[np.float64], generators: dict[int, dict[str, Any]]
    ) -> None: ...
    def error(self) -> Fault: ...
