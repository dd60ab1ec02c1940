from numpy.typing import ArrayLike

from fastkam._core.density.target import Target

class ScaledTarget(Target):
    def __init__(self, made: Target, scales: ArrayLike) -> None: ...
