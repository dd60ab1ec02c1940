"""The samplers: one small class of plain parameters each, and the registry of their short names.

Each class registers itself, so that the order of the imports is that of the registry.
"""
# ruff: noqa: I001, F401

from fastkam.samplers.metropolis import (
    AdaptiveMetropolis,
    AdaptiveRandomWalk,
    CholeskyAdaptiveMetropolis,
    DelayedRejectionAdaptiveMetropolis,
    GlobalAdaptiveMetropolis,
    RandomWalk,
    RaoBlackwellizedAdaptiveMetropolis,
    RobustAdaptiveMetropolis,
)
from fastkam.samplers.kernel_adaptive import (
    CyclicalKernelAdaptiveMetropolis,
    KernelAdaptiveMetropolis,
    KernelPCAMetropolis,
)
from fastkam.samplers.langevin import MALA, FisherAdaptiveMALA
from fastkam.samplers.barker import BarkerProposal
from fastkam.samplers.autostep import AutoMALA, AutoStepRandomWalk
from fastkam.samplers.hamiltonian import HMC, NUTS
from fastkam.samplers.gradient_adaptive import GradientAdaptiveMALA, GradientAdaptiveRandomWalk
from fastkam.samplers.divergence import DivergenceMinimization
from fastkam.samplers.exchange import ParallelTempering, Scout
from fastkam.samplers.jumps import ModeJumping
from fastkam.samplers.delayed import DelayedAcceptance
from fastkam.samplers.python_sampler import Decision, Field, Point, Proposal, PythonSampler
from fastkam.samplers.sampler import SAMPLERS, Sampler, as_sampler

__all__ = ["SAMPLERS", "Decision", "DelayedAcceptance", "Field", "Point", "Proposal",
           "PythonSampler", "Sampler", "as_sampler", *(cls.__name__ for cls in SAMPLERS.values())]
