"""Every sampler once more, in NumPy and from its formulas: slow, short, and independent.

Nothing is updated here that can be computed afresh: covariances are matrices, their factors come
from `numpy.linalg.cholesky`, densities from determinants and solves. A reference shares with the
compiled sampler only the order in which random numbers are drawn.
"""

from reference.adaptive_metropolis import (
    AdaptiveMetropolis,
    AdaptiveRandomWalk,
    GlobalAdaptiveMetropolis,
    RaoBlackwellisedAdaptiveMetropolis,
)
from reference.autostep import AutoMALA, AutoStepRandomWalk
from reference.barker import BarkerProposal
from reference.cholesky import CholeskyAdaptiveMetropolis
from reference.cyclical import CyclicalKernelAdaptiveMetropolis
from reference.delayed_rejection import DelayedRejectionAdaptiveMetropolis
from reference.divergence import DivergenceMinimization
from reference.exchange import ParallelTempering, Scout
from reference.gad import GradientAdaptiveMALA, GradientAdaptiveRandomWalk
from reference.hamiltonian import HMC, NUTS
from reference.jumps import ModeJumping
from reference.kernel_adaptive import KernelAdaptiveMetropolis
from reference.kernel_pca import KernelPCAMetropolis
from reference.langevin import MALA, FisherAdaptiveMALA
from reference.robust import RandomWalk, RobustAdaptiveMetropolis

REFERENCES = {
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
