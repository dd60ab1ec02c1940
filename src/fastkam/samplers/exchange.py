"""Replica exchange with any sampler: parallel tempering, and Scout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam.arguments import (
    check_array,
    check_choice,
    check_covariance,
    check_flag,
    check_integer,
    check_number,
    real_array,
    shown,
)
from fastkam.samplers.metropolis import RandomWalk
from fastkam.samplers.sampler import (
    Composite,
    Sampler,
    check_part,
    covariance_in_units,
    points_in_units,
)

if TYPE_CHECKING:
    from fastkam._core.engine.kernel import Kernel

SCHEMES = ("even-odd", "random")


class Coupled(Composite):
    """Base class of samplers that couple several samplers."""

    KERNEL: ClassVar[str] = "exchange.Exchange"
    ALONE: ClassVar[str] = "its replicas learn for the temperatures of their own chain"

    @property
    def stat_names(self) -> tuple[str, ...]:
        return self.parts()[0].stat_names

    def known_scales_gain(self, d: int) -> None:
        """None, since the scales of flatter powers of the density are not known."""
        return None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ParallelTempering(Coupled, name="pt"):
    """Parallel tempering: replicas at several temperatures, each moved by a sampler of any kind.

    Parameters
    ----------
    sampler : str or Sampler
        The sampler of each replica; each adapts separately.
    n_replicas : int
        Number of replicas, each at its own temperature.
    min_beta : float
        The smallest inverse temperature of the initial, geometric ladder; by default 0, at which
        the replica draws from the reference, or 0.01 if the reference is "flat".
    betas : array (rungs,), optional
        The inverse temperatures, in decreasing order from 1.
    tune_betas : bool
        Tune the inverse temperatures during warm-up so that all neighbors swap equally often.
    scheme : str
        "even-odd": all even and all odd pairs of neighbors alternately; "random": one pair of any
        two rungs.
    swap_interval : int
        Steps between swaps.
    reference : str or (mean, cov)
        The distribution at inverse temperature 0: a Gaussian "fitted" to the states of all replicas
        during warm-up, and N(x0, 100 (1 + |x0|)^2) before; "flat"; or a Gaussian, given by its mean
        (d,) and its covariance, a number, (d,) or (d, d).
    reference_scale : float, optional
        Factor on the covariance of the fitted reference; 1 + 2/sqrt(d) by default. For a curved
        density, whose ends are not covered by a Gaussian of its own covariance, take 10 to 100.

    Notes
    -----
    The reference distribution of the ladder is that of Surjanovic et al. (2022).

    References
    ----------
    Syed, S., Bouchard-Cote, A., Deligiannidis, G. and Doucet, A. (2022). Non-reversible parallel
    tempering. Journal of the Royal Statistical Society B 84, 321-350.

    Surjanovic, N. et al. (2022). Parallel tempering with a variational reference. NeurIPS 35.
    """

    sampler: Sampler | str = "ram"
    n_replicas: int = 8
    min_beta: float | None = None
    betas: ArrayLike | None = None
    tune_betas: bool = True
    scheme: str = "even-odd"
    swap_interval: int = 1
    reference: Any = "fitted"
    reference_scale: float | None = None
    LENGTHS = ()

    @property
    def is_placed(self) -> bool:
        return super().is_placed or not isinstance(self.reference, str)

    def in_units(self, scales: NDArray[np.float64]) -> ParallelTempering:
        own = super().in_units(scales)
        if own is self or isinstance(self.reference, str):
            return own
        mean, cov = self.reference
        return own.changed_to(reference=(points_in_units("reference", mean, scales),
                                         covariance_in_units("reference", cov, scales)))

    def __post_init__(self) -> None:
        check_part("sampler", self.sampler)
        check_integer("n_replicas", self.n_replicas, least=2)
        most = self.kernel_class().LARGEST
        if self.n_replicas > most:
            raise ValueError(f"n_replicas must be at most {most}, not {shown(self.n_replicas)}")
        flat = isinstance(self.reference, str) and self.reference == "flat"
        if self.min_beta is not None:
            check_number("min_beta", self.min_beta, least=0, below=1)
            if flat and self.min_beta == 0:
                raise ValueError("min_beta must be above 0 with a flat reference, not 0")
        if self.reference_scale is not None:
            check_number("reference_scale", self.reference_scale, least=1)
        if self.betas is not None:
            self.check_ladder(flat)
        check_flag("tune_betas", self.tune_betas)
        check_choice("scheme", self.scheme, SCHEMES)
        check_integer("swap_interval", self.swap_interval, least=1)
        if isinstance(self.reference, str):
            if self.reference not in ("fitted", "flat"):
                raise ValueError(f"reference must be \"fitted\", \"flat\" or (mean, cov), not "
                                 f"{shown(self.reference)}")
        elif not (isinstance(self.reference, (tuple, list)) and len(self.reference) == 2):
            raise ValueError(f'reference must be "fitted", "flat" or (mean, cov), not '
                             f"{shown(self.reference)}")

    def check_ladder(self, flat: bool) -> None:
        ladder = np.atleast_1d(real_array("betas", self.betas))
        if ladder.shape != (self.n_replicas,):
            raise ValueError(f"betas must be {self.n_replicas} numbers (n_replicas), not "
                             f"{shown(self.betas)}")
        ladder = check_array("betas", ladder, shape=(self.n_replicas,))
        if ladder[0] != 1 or (np.diff(ladder) >= 0).any() or ladder[-1] < 0:
            raise ValueError(f"betas must fall from 1 to 0 or more, not {shown(self.betas)}")
        if flat and ladder[-1] == 0:
            raise ValueError(f"betas must stay above 0 with a flat reference: {shown(self.betas)}")

    def parts(self) -> list[Sampler]:
        return [check_part("sampler", self.sampler)] * self.n_replicas

    def first_ladder(self) -> NDArray[np.float64]:
        """Inverse temperatures at the start, (rungs,)."""
        if self.betas is not None:
            return np.asarray(self.betas, dtype=float)
        flat = isinstance(self.reference, str) and self.reference == "flat"
        least = (0.01 if flat else 0.0) if self.min_beta is None else self.min_beta
        if least > 0:
            return np.array([least ** (i / (self.n_replicas - 1)) for i in range(self.n_replicas)])
        bold = max(self.n_replicas - 2, 1)
        return np.array([0.01 ** (i / bold) for i in range(self.n_replicas - 1)] + [0.0])

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        d, reference = len(x0), self.reference
        if isinstance(reference, str):
            first = None if reference == "flat" else (x0, np.diag(10 * (1 + np.abs(x0))))
        else:
            mean = check_array("reference", reference[0], shape=(d,))
            factor = np.asarray(check_covariance("reference", reference[1], d))
            first = (mean, factor if factor.ndim == 2 else np.diag(np.broadcast_to(factor, d)))
        return self.kernel_class()(
            [part.build(x0) for part in self.parts()],
            self.first_ladder(),
            scheme=self.scheme,
            every=self.swap_interval,
            reference=first,
            widening=1 + 2 / np.sqrt(d) if self.reference_scale is None else self.reference_scale,
            fits=isinstance(reference, str) and reference == "fitted",
            tunes=bool(self.tune_betas) and self.betas is None,
        )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Scout(Coupled, name="scout"):
    """Scout: two replicas, at inverse temperatures 1 and beta, that exchange states.

    Parameters
    ----------
    main : str or Sampler
        The sampler of the chain.
    scout : str or Sampler, optional
        The sampler of the scout; by default a random walk with steps of variance 9, in units of
        the scales.
    beta : float
        The scout's inverse temperature.
    swap_interval : int
        Steps between swaps.

    Notes
    -----
    It is algorithm 3 of the paper, with the ratio of the text: min(1, (pi(s) / pi(x))^(1 - beta)).

    References
    ----------
    Dharamshi, A., Ngo, V. and Rosenthal, J. S. (2023). Sampling by divergence minimization.
    Communications in Statistics: Simulation and Computation.
    """

    main: Sampler | str = "ram"
    scout: Sampler | str | None = None
    beta: float = 0.1
    swap_interval: int = 20
    LENGTHS = ()

    @property
    def relative(self) -> bool:
        """Whether its samplers run in units of the scales."""
        names = vars(type(self)).get("LENGTHS")
        some = [part for part, given in zip(self.parts(), (True, self.scout is not None),
                                            strict=True) if given]
        return names is not None and all(part.relative for part in some)

    def __post_init__(self) -> None:
        self.parts()
        check_number("beta", self.beta, above=0, below=1)
        check_integer("swap_interval", self.swap_interval, least=1)

    def parts(self) -> list[Sampler]:
        scout = RandomWalk(proposal_cov=9.0) if self.scout is None else self.scout
        return [check_part("main", self.main), check_part("scout", scout)]

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        return self.kernel_class()(
            [part.build(x0) for part in self.parts()], [1.0, self.beta], scheme="even-odd",
            every=self.swap_interval, reference=None, widening=1, fits=False, tunes=False,
        )
