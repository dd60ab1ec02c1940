from fastkam._core.engine.kernel import Kernel

class DelayedAcceptance(Kernel):
    log_s_x: float
    log_s_y: float
    passed: int
    inner: Kernel
    def __init__(self, inner: Kernel) -> None: ...

class SubchainAcceptance(DelayedAcceptance):
    last_log_s_x: float
    last_log_s_y: float
    last_log_q: float
    last_alpha: float
    last_accepted: int
    def __init__(self, inner: Kernel, steps: int) -> None: ...
