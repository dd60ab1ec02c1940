from typing import final

from fastkam._core.density.target import Target

N_TIMED: int

@final
class Evaluation:
    def __init__(self, target: Target, n: int, gradient: bool) -> None: ...
    def call_helpers(self, threads: int) -> None: ...
    def dismiss_helpers(self) -> None: ...
