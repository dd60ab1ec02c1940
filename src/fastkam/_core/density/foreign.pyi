from collections.abc import Callable
from typing import Any

from fastkam._core.density.target import Target

SIGNATURES: tuple[str, ...]
ESTIMATOR: str
ESTIMATOR_TYPES: list[str]
SIZE_T: set[str]

class CFunctionTarget(Target):
    def __init__(
        self,
        function: object,
        dim: int,
        user_data: object,
        thread_safe: bool,
        n_aux: int = 0,
    ) -> None: ...

class AddressTarget(Target):
    def __init__(
        self,
        dim: int,
        logp: int,
        logp_grad: int = 0,
        data: int = 0,
        owner: object = None,
        noisy: int = 0,
        n_aux: int = 0,
        copies: bool = False,
        thread_safe: bool = True,
    ) -> None: ...

class CapsuleTarget(Target):
    def __init__(self, provider: object) -> None: ...

def low_level(function: object, user_data: object) -> Callable[..., Any]: ...
