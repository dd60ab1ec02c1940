"""The samplers: one small class of plain parameters each, and the registry of their short names."""

from fastkam.samplers.autostep import AutoMALA, AutoStepRandomWalk
from fastkam.samplers.barker import BarkerProposal
from fastkam.samplers.delayed import DelayedAcceptance
from fastkam.samplers.divergence import DivergenceMinimization
from fastkam.samplers.exchange import ParallelTempering, Scout
from fastkam.samplers.gradient_adaptive import (
    GradientAdaptiveMALA,
    GradientAdaptiveRandomWalk,
)
from fastkam.samplers.hamiltonian import HMC, NUTS
from fastkam.samplers.jumps import ModeJumping
from fastkam.samplers.kernel_adaptive import (
    CyclicalKernelAdaptiveMetropolis,
    KernelAdaptiveMetropolis,
    KernelPCAMetropolis,
)
from fastkam.samplers.langevin import MALA, FisherAdaptiveMALA
from fastkam.samplers.metropolis import (
    AdaptiveMetropolis,
    AdaptiveRandomWalk,
    CholeskyAdaptiveMetropolis,
    DelayedRejectionAdaptiveMetropolis,
    GlobalAdaptiveMetropolis,
    RandomWalk,
    RaoBlackwellisedAdaptiveMetropolis,
    RobustAdaptiveMetropolis,
)
from fastkam.samplers.python_sampler import Decision, Field, Point, Proposal, PythonSampler
from fastkam.samplers.sampler import Sampler

SAMPLERS: dict[str, type[Sampler]] = {
    "rwm": RandomWalk,
    "am": AdaptiveMetropolis,
    "rbam": RaoBlackwellisedAdaptiveMetropolis,
    "gam": GlobalAdaptiveMetropolis,
    "ram": RobustAdaptiveMetropolis,
    "arwm": AdaptiveRandomWalk,
    "cholam": CholeskyAdaptiveMetropolis,
    "kam": KernelAdaptiveMetropolis,
    "kpca": KernelPCAMetropolis,
    "ckam": CyclicalKernelAdaptiveMetropolis,
    "mala": MALA,
    "fishermala": FisherAdaptiveMALA,
    "barker": BarkerProposal,
    "automala": AutoMALA,
    "autorwm": AutoStepRandomWalk,
    "dram": DelayedRejectionAdaptiveMetropolis,
    "hmc": HMC,
    "nuts": NUTS,
    "gadrwm": GradientAdaptiveRandomWalk,
    "gadmala": GradientAdaptiveMALA,
    "dm": DivergenceMinimization,
    "pt": ParallelTempering,
    "scout": Scout,
    "jumps": ModeJumping,
}


def as_sampler(sampler: Sampler | str) -> Sampler:
    """A Sampler from itself or from its short name."""
    if isinstance(sampler, Sampler):
        return sampler
    if isinstance(sampler, str) and sampler in SAMPLERS:
        return SAMPLERS[sampler]()
    names = ["auto", *SAMPLERS]
    raise ValueError(f"sampler must be a Sampler or one of {names}, not {sampler!r}")


__all__ = ["SAMPLERS", "Decision", "DelayedAcceptance", "Field", "Point", "Proposal",
           "PythonSampler", "Sampler", "as_sampler", *(cls.__name__ for cls in SAMPLERS.values())]
