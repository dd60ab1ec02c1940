"""Replica exchange around any sampler: parallel tempering, and Scout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam.arguments import check_array, check_covariance, check_integer, check_number
from fastkam.samplers.metropolis import RandomWalk
from fastkam.samplers.sampler import Composite, Sampler, check_part

if TYPE_CHECKING:
    from fastkam._core.engine.kernel import Kernel

SCHEMES = ("even-odd", "random")


class Coupled(Composite):
    """What couplings of several samplers have in common."""

    KERNEL: ClassVar[str] = "exchange.Exchange"
    ALONE: ClassVar[str] = "its replicas learn for the temperatures of their own chain"

    @property
    def stat_names(self) -> tuple[str, ...]:
        return self.parts()[0].stat_names


@dataclass(frozen=True, kw_only=True, eq=False)
class ParallelTempering(Coupled, name="pt"):
    """Parallel tempering: replicas at several temperatures, each moved by a sampler of any kind.

    Parameters
    ----------
    sampler : str or Sampler
        What moves each replica; each learns for itself.
    rungs : int
        How many temperatures.
    least : float
        The smallest inverse temperature of a ladder that is geometric at first; by default 0, a
        draw from the reference, or 0.01 where that is "flat".
    ladder : array (rungs,), optional
        The inverse temperatures, from 1 down.
    tune_ladder : bool
        Move the rungs during warm-up so that all neighbours swap equally often.
    scheme : str
        "even-odd": all even and all odd pairs of neighbours alternately; "random": one pair of any
        two rungs.
    every : int
        Steps between swaps.
    reference : str or (mean, cov)
        What the hottest rungs tend to: "fitted" to the states of all rungs during warm-up, and
        N(x0, 100 (1 + |x0|)^2) before; "flat"; or a Gaussian, by its mean (d,) and its covariance,
        a number, (d,) or (d, d).
    widening : float, optional
        What the covariance of the fitted reference is multiplied by; 1 + 2/sqrt(d) by default. A
        curved density has ends that no Gaussian of its own covariance covers: there 10 to 100.

    References
    ----------
    Syed, S., Bouchard-Cote, A., Deligiannidis, G. and Doucet, A. (2022). Non-reversible parallel
    tempering. Journal of the Royal Statistical Society B 84, 321-350. The reference: Surjanovic, N.
    et al. (2022). Parallel tempering with a variational reference. NeurIPS 35.
    """

    sampler: Sampler | str = "ram"
    rungs: int = 8
    least: float | None = None
    ladder: ArrayLike | None = None
    tune_ladder: bool = True
    scheme: str = "even-odd"
    every: int = 1
    reference: Any = "fitted"
    widening: float | None = None

    def __post_init__(self) -> None:
        check_part("sampler", self.sampler)
        check_integer("rungs", self.rungs, least=2)
        most = self.kernel_class().LARGEST
        if self.rungs > most:
            raise ValueError(f"rungs must be at most {most}, not {self.rungs!r}")
        flat = isinstance(self.reference, str) and self.reference == "flat"
        if self.least is not None:
            check_number("least", self.least, least=0, below=1)
            if flat and self.least == 0:
                raise ValueError("least must be above 0 with a flat reference, not 0")
        if self.widening is not None:
            check_number("widening", self.widening, least=1)
        if self.ladder is not None:
            self.check_ladder(flat)
        if not isinstance(self.tune_ladder, (bool, np.bool_)):
            raise TypeError(f"tune_ladder must be True or False, not {self.tune_ladder!r}")
        if self.scheme not in SCHEMES:
            raise ValueError(f"scheme must be one of {SCHEMES}, not {self.scheme!r}")
        check_integer("every", self.every, least=1)
        if isinstance(self.reference, str):
            if self.reference not in ("fitted", "flat"):
                raise ValueError(f"reference must be \"fitted\", \"flat\" or (mean, cov), not "
                                 f"{self.reference!r}")
        elif not (isinstance(self.reference, (tuple, list)) and len(self.reference) == 2):
            raise ValueError(f'reference must be "fitted", "flat" or (mean, cov), not '
                             f"{self.reference!r}")

    def check_ladder(self, flat: bool) -> None:
        ladder = check_array("ladder", np.atleast_1d(np.asarray(self.ladder)), shape=(self.rungs,))
        if ladder[0] != 1 or (np.diff(ladder) >= 0).any() or ladder[-1] < 0:
            raise ValueError(f"ladder must fall from 1 to 0 or more, not {self.ladder!r}")
        if flat and ladder[-1] == 0:
            raise ValueError(f"ladder must stay above 0 with a flat reference: {self.ladder!r}")

    def parts(self) -> list[Sampler]:
        return [check_part("sampler", self.sampler)] * self.rungs

    def first_ladder(self) -> NDArray[np.float64]:
        """Inverse temperatures at the start, (rungs,)."""
        if self.ladder is not None:
            return np.asarray(self.ladder, dtype=float)
        flat = isinstance(self.reference, str) and self.reference == "flat"
        least = (0.01 if flat else 0.0) if self.least is None else self.least
        if least > 0:
            return np.asarray(least ** (np.arange(self.rungs) / (self.rungs - 1)))
        return np.r_[0.01 ** (np.arange(self.rungs - 1) / max(self.rungs - 2, 1)), 0.0]

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
            every=self.every,
            reference=first,
            widening=1 + 2 / np.sqrt(d) if self.widening is None else self.widening,
            fits=isinstance(reference, str) and reference == "fitted",
            tunes=bool(self.tune_ladder) and self.ladder is None,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Scout(Coupled, name="scout"):
    """Scout: two replicas, at inverse temperatures 1 and tau, that exchange states.

    Parameters
    ----------
    main : str or Sampler
        What moves the chain.
    scout : str or Sampler, optional
        What moves the scout; a random walk with steps of variance 9 by default.
    tau : float
        The scout's inverse temperature.
    every : int
        Steps between swaps.

    References
    ----------
    Dharamshi, A., Ngo, V. and Rosenthal, J. S. (2023). Sampling by divergence minimization.
    Communications in Statistics: Simulation and Computation. Algorithm 3, with the ratio of the
    text: min(1, (pi(s) / pi(x))^(1 - tau)).
    """

    main: Sampler | str = "ram"
    scout: Sampler | str | None = None
    tau: float = 0.1
    every: int = 20

    def __post_init__(self) -> None:
        self.parts()
        check_number("tau", self.tau, above=0, below=1)
        check_integer("every", self.every, least=1)

    def parts(self) -> list[Sampler]:
        scout = RandomWalk(cov=9.0) if self.scout is None else self.scout
        return [check_part("main", self.main), check_part("scout", scout)]

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        return self.kernel_class()(
            [part.build(x0) for part in self.parts()], [1.0, self.tau], scheme="even-odd",
            every=self.every, reference=None, widening=1, fits=False, tunes=False,
        )
