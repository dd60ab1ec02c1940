from fastkam._core.density.target import Target

class StanTarget(Target):
    def __init__(
        self, dim: int, model: int, density: int, gradient: int, free_error: int, owner: object,
        serial: bool,
    ) -> None: ...
    def take_error(self) -> str | None: ...
