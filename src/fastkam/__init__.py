"""Adaptive MCMC at compiled speed: draws from a density that can be evaluated but not sampled.

    res = fastkam.sample(logp, x0, sampler="ram", draws=5000, tune=5000, chains=4, seed=1)
    print(res.summary())
"""

from pathlib import Path

from fastkam import diagnostics, kernels, linalg, plots, samplers, schedules, stop, targets
from fastkam._core.target import Target
from fastkam._version import __version__
from fastkam.bank import CholeskyBank
from fastkam.choice import choose_sampler
from fastkam.errors import SamplingError, SamplingWarning
from fastkam.gradient import check_gradient
from fastkam.noise import NoiseCheck, check_noise
from fastkam.recipe import TargetRecipe
from fastkam.result import Result, load
from fastkam.sample import as_target, resume, sample
from fastkam.samplers import (
    HMC,
    MALA,
    NUTS,
    AdaptiveMetropolis,
    AdaptiveRandomWalk,
    AutoMALA,
    AutoStepRandomWalk,
    BarkerProposal,
    CholeskyAdaptiveMetropolis,
    CyclicalKernelAdaptiveMetropolis,
    DelayedRejectionAdaptiveMetropolis,
    DivergenceMinimization,
    FisherAdaptiveMALA,
    GlobalAdaptiveMetropolis,
    GradientAdaptiveMALA,
    GradientAdaptiveRandomWalk,
    KernelAdaptiveMetropolis,
    KernelPCAMetropolis,
    ModeJumping,
    ParallelTempering,
    RandomWalk,
    RaoBlackwellisedAdaptiveMetropolis,
    RobustAdaptiveMetropolis,
    Scout,
)
from fastkam.tempering import Tempering, tempering


def get_include():
    """The folder with ``fastkam/target.h`` and ``fastkam/target.pxd``, for C and for Cython.

    ``cython -I`` and the C compiler's ``-I`` take the same folder, whichever way fastkam is
    installed.
    """
    return str(Path(__file__).parent / "include")


__all__ = [
    "HMC",
    "MALA",
    "NUTS",
    "AdaptiveMetropolis",
    "AdaptiveRandomWalk",
    "AutoMALA",
    "AutoStepRandomWalk",
    "BarkerProposal",
    "CholeskyAdaptiveMetropolis",
    "CholeskyBank",
    "CyclicalKernelAdaptiveMetropolis",
    "DelayedRejectionAdaptiveMetropolis",
    "DivergenceMinimization",
    "FisherAdaptiveMALA",
    "GlobalAdaptiveMetropolis",
    "GradientAdaptiveMALA",
    "GradientAdaptiveRandomWalk",
    "KernelAdaptiveMetropolis",
    "KernelPCAMetropolis",
    "ModeJumping",
    "NoiseCheck",
    "ParallelTempering",
    "RandomWalk",
    "RaoBlackwellisedAdaptiveMetropolis",
    "Result",
    "RobustAdaptiveMetropolis",
    "SamplingError",
    "SamplingWarning",
    "Scout",
    "Target",
    "TargetRecipe",
    "Tempering",
    "__version__",
    "as_target",
    "check_gradient",
    "check_noise",
    "choose_sampler",
    "diagnostics",
    "get_include",
    "kernels",
    "linalg",
    "load",
    "plots",
    "resume",
    "sample",
    "samplers",
    "schedules",
    "stop",
    "targets",
    "tempering",
]
