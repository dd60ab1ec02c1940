"""Adaptive MCMC at compiled speed: draws from a density that can be evaluated but not sampled.

    res = fastkam.sample(logp, x0, sampler="ram", draws=5000, tune=5000, chains=4, seed=1)
    print(res.summary())
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from fastkam._version import __version__

if TYPE_CHECKING:   # for those who read this file; who runs it gets each name from __getattr__
    from fastkam import diagnostics, kernels, linalg, plots, samplers, schedules, stop, targets
    from fastkam._core.target import Target
    from fastkam.bank import CholeskyBank
    from fastkam.choice import choose_sampler
    from fastkam.errors import SamplingError, SamplingWarning
    from fastkam.gradient import check_gradient
    from fastkam.noise import NoiseCheck, check_noise
    from fastkam.recipe import TargetRecipe
    from fastkam.result import Result, load
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
        PythonSampler,
        RandomWalk,
        RaoBlackwellisedAdaptiveMetropolis,
        RobustAdaptiveMetropolis,
        Scout,
    )
    from fastkam.sampling import as_target, resume, sample
    from fastkam.temperatures import Tempering, tempering

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
    "PythonSampler",
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

MODULES = ("diagnostics", "kernels", "linalg", "plots", "samplers", "schedules", "stop", "targets")
MODULE_OF = {   # all other names of __all__ are those of samplers
    "CholeskyBank": "bank",
    "NoiseCheck": "noise",
    "Result": "result",
    "SamplingError": "errors",
    "SamplingWarning": "errors",
    "Target": "_core.target",
    "TargetRecipe": "recipe",
    "Tempering": "temperatures",
    "as_target": "sampling",
    "check_gradient": "gradient",
    "check_noise": "noise",
    "choose_sampler": "choice",
    "load": "result",
    "resume": "sampling",
    "sample": "sampling",
    "tempering": "temperatures",
}


def get_include() -> str:
    """The folder with ``fastkam/target.h`` and ``fastkam/target.pxd``, for C and for Cython.

    ``cython -I`` and the C compiler's ``-I`` take the same folder, whichever way fastkam is
    installed.
    """
    from pathlib import Path

    return str(Path(__file__).parent / "include")


if not TYPE_CHECKING:   # type checkers would take any name for one that __getattr__ finds

    def __getattr__(name):
        """A name of __all__, or a module of this package, imported when it is first asked for."""
        if name in __all__ and name not in MODULES:
            module = import_module(f"fastkam.{MODULE_OF.get(name, 'samplers')}")
            value = globals()[name] = getattr(module, name)
            return value
        path = f"fastkam.{name}"
        if not name.startswith("__") and find_spec(path):
            return import_module(path)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
