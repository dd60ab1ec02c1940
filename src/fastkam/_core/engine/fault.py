"""The error that stops a run: a density without a usable value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

INFINITE = -(2**31)  # the code of a log density of +inf


class Fault(Exception):
    """A run that cannot continue: the chain of the group, the point and the code."""

    def __init__(
        self,
        chain: int,
        x: NDArray[np.float64],
        code: int,
        cause: BaseException | None = None,
    ) -> None:
        self.chain, self.x, self.code, self.cause = chain, x, code, cause
        super().__init__(chain, x, code)

    def __str__(self) -> str:
        return f"chain {self.chain}, code {self.code}, x = {self.x}"

    def __reduce__(self) -> tuple[Any, ...]:
        return Fault, (self.chain, self.x, self.code, self.cause)
