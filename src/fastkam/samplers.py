"""The samplers: one small class of plain parameters each, and the registry of their short names."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar

import numpy as np

from fastkam.errors import check_covariance, check_number
from fastkam.schedules import Power, constant


@dataclass(frozen=True, kw_only=True, eq=False)
class Sampler:
    """The parameters of a sampler, checked; `kernel` makes its compiled form for one chain."""

    KERNEL: ClassVar[str] = ""  # module.Class below fastkam._core.samplers
    adaptive: ClassVar[bool] = True

    @classmethod
    def kernel_class(cls):
        """The compiled class: its FIELDS and STATS say what state there is."""
        module, name = cls.KERNEL.split(".")
        return getattr(import_module(f"fastkam._core.samplers.{module}"), name)

    def kernel(self, x0):
        """The compiled kernel of a chain that starts at `x0` (d,)."""
        raise NotImplementedError

    def default_gain(self, d):
        """The gain of its adaptation where the schedule names none."""
        return constant(1.0)

    def check_gain(self, gain):
        """Refuse a gain that the update cannot bear."""

    def check_run(self, schedule, tune):
        """Refuse a run that cannot work."""


def check_below_one(gain):
    if not gain(1) < 1:
        raise ValueError(f"the first gain must be below 1, not {gain(1)!r}: use an offset or a cap")


@dataclass(frozen=True, kw_only=True, eq=False)
class RandomWalk(Sampler):
    """Random-walk Metropolis, N(x, cov): nothing is learnt.

    Parameters
    ----------
    cov : float, array (d,) or array (d, d), optional
        Covariance of the proposal: a variance, variances, or a matrix; 2.38^2 / d by default, which
        is right for a target of unit scales.

    References
    ----------
    Metropolis, N. et al. (1953). Equation of state calculations by fast computing machines. Journal
    of Chemical Physics 21, 1087-1092.
    """

    cov: float | np.ndarray | None = None
    KERNEL: ClassVar[str] = "rwm.RandomWalk"
    adaptive: ClassVar[bool] = False

    def kernel(self, x0):
        d = len(x0)
        cov = 2.38**2 / d if self.cov is None else self.cov
        return self.kernel_class()(d, np.asarray(check_covariance("cov", cov, d)))


@dataclass(frozen=True, kw_only=True, eq=False)
class RobustAdaptiveMetropolis(Sampler):
    """Robust adaptive Metropolis: the shape of the proposal and its acceptance in one update.

    Parameters
    ----------
    cov : float, array (d,) or array (d, d), optional
        Covariance of the first proposal; 2.38^2 / d by default.
    target_acceptance : float
        The acceptance probability aimed at.

    References
    ----------
    Vihola, M. (2012). Robust adaptive Metropolis algorithm with coerced acceptance rate. Statistics
    and Computing 22, 997-1008. Eq. (1).
    """

    cov: float | np.ndarray | None = None
    target_acceptance: float = 0.234
    KERNEL: ClassVar[str] = "ram.RobustAdaptiveMetropolis"

    def __post_init__(self):
        check_number("target_acceptance", self.target_acceptance, above=0, below=1)

    def kernel(self, x0):
        d = len(x0)
        cov = 2.38**2 / d if self.cov is None else self.cov
        return self.kernel_class()(full_factor("cov", cov, d), self.target_acceptance)

    def default_gain(self, d):
        return Power(c=float(d), k=2 / 3, offset=0.0, cap=1.0)

    def check_gain(self, gain):
        if not gain(1) <= 1:
            raise ValueError(f"the gain must be at most 1, not {gain(1)!r}: use a cap")


def full_factor(name, cov, d):
    """The (d, d) lower factor of a covariance given as a number, (d,) or (d, d)."""
    factor = np.asarray(check_covariance(name, cov, d))
    return factor if factor.ndim == 2 else np.diag(np.broadcast_to(factor, d))


SAMPLERS = {
    "rwm": RandomWalk,
    "ram": RobustAdaptiveMetropolis,
}


def as_sampler(sampler):
    """A Sampler from itself or from its short name."""
    if isinstance(sampler, Sampler):
        return sampler
    if isinstance(sampler, str) and sampler in SAMPLERS:
        return SAMPLERS[sampler]()
    raise ValueError(f"sampler must be a Sampler or one of {list(SAMPLERS)}, not {sampler!r}")
