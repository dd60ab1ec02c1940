"""Swap rates, round trips and log Z of a run of parallel tempering or Scout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import described
from fastkam.diagnostics.draws import geyer
from fastkam.samplers.exchange import Coupled
from fastkam.samplers.jumps import ModeJumping

if TYPE_CHECKING:
    from fastkam.result import Result

Array = NDArray[np.float64]
MOST_ERROR = 1.0  # of a log Z that is worth a line


@dataclass(frozen=True)
class Tempering:
    """Swaps, ladder and normalizing constant of a coupled run, since warm-up.

    Attributes
    ----------
    ladder : ndarray, shape (chains, rungs)
        Inverse temperatures.
    swap_rates : ndarray, shape (chains, rungs - 1)
        Mean acceptance probability of the swaps between neighbors; NaN if none was attempted.
    barrier : ndarray, shape (chains,)
        Sum of the rejection rates: with many rungs, the global communication barrier.
    round_trips : ndarray of int, shape (chains,)
        Number of times that a state has come from the hottest rung to the coldest.
    rungs_suggested : int
        About 2 * barrier + 1, which gives the most round trips for the same work.
    log_z, log_z_error : float
        log of the integral of the density, which need not be normalized, by stepping stones, and
        its standard error; NaN unless the ladder ends at 0, with the reference. The error follows
        from the autocorrelation of the states, or from the differences between chains if these are
        larger. The bias of a warm-up that was too short is not included.
    log_z_thermodynamic, log_z_thermodynamic_error : float
        The same by thermodynamic integration. The error also includes that of the quadrature, for
        which its correction term is taken; it is large if log pi falls far below the reference. If
        the density is 0 outside of a set, the probability of the set under the reference is taken
        into account.
    """

    ladder: Array
    swap_rates: Array
    barrier: Array
    round_trips: NDArray[np.int64]
    rungs_suggested: int
    log_z: float
    log_z_error: float
    log_z_thermodynamic: float
    log_z_thermodynamic_error: float

    def __str__(self) -> str:
        rates = np.nanmean(self.swap_rates, axis=0)
        lines = [
            f"rungs             {np.array2string(self.ladder.mean(axis=0), precision=3)}",
            f"swaps accepted    {np.array2string(rates, precision=2)}",
            f"barrier           {self.barrier.mean():.2f}, so that some {self.rungs_suggested} "
            "rungs are enough",
            f"round trips       {self.round_trips.tolist()}",
        ]
        if np.isfinite(self.log_z):
            other = (f"{self.log_z_thermodynamic:.4f} +- {self.log_z_thermodynamic_error:.4f} "
                     "(thermodynamic)" if self.log_z_thermodynamic_error < MOST_ERROR else
                     "no precise result of thermodynamic integration: it needs more rungs")
            lines.append(f"log Z             {self.log_z:.4f} +- {self.log_z_error:.4f} (stepping "
                         f"stones), {other}")
        return "\n".join(lines)


def tempering(result: Result) -> Tempering:
    """Return the `Tempering` of a result.

    Parameters
    ----------
    result : Result
        Of `ParallelTempering` or `Scout`, or of `ModeJumping` around one of these.

    Raises
    ------
    TypeError, ValueError
        If `result` is not a Result, or its sampler is not one of these.
    """
    if not hasattr(result, "sampler") or not hasattr(result, "states"):
        raise TypeError(f"result must be a Result, not {described(result)}")
    coupled, prefix = result.sampler, "kernel."
    if isinstance(coupled, ModeJumping):
        (coupled,), prefix = coupled.parts(), "kernel.inner."
    if not isinstance(coupled, Coupled):
        name = type(result.sampler).__name__
        raise ValueError(f"result must be of ParallelTempering or Scout, not of {name}")
    states = [Rungs(state, prefix) for state in result.states]
    barrier = np.array([np.nansum(1 - state.rates) for state in states])
    stones = [state.log_z(state.stepping_stones) for state in states]
    thermo = [state.log_z(state.thermodynamic) for state in states]
    quadrature = mean_of([(state.correction(), 0.0) for state in states])[0]
    volume = float(np.log(result.scales).sum())  # the replicas integrate in units of the scales
    return Tempering(
        ladder=np.array([state.ladder for state in states]),
        swap_rates=np.array([state.rates for state in states]),
        barrier=barrier,
        round_trips=np.array([int(state["swaps.round_trips"]) for state in states]),
        rungs_suggested=int(np.ceil(2 * barrier.mean())) + 1,
        log_z=mean_of(stones)[0] + volume,
        log_z_error=mean_of(stones)[1],
        log_z_thermodynamic=mean_of(thermo)[0] + volume,
        log_z_thermodynamic_error=float(np.hypot(mean_of(thermo)[1], quadrature)),
    )


def mean_of(estimates: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the mean of independent estimates, and its standard error.

    The standard error is computed from those of the estimates and from the spread of the estimates,
    and the larger of the two is returned: a chain that has missed a region has too small an error.
    """
    values, errors = np.array(estimates).T
    n = len(values)
    within, between = (errors**2).sum() / n**2, values.var(ddof=1) / n if n > 1 else 0.0
    return float(values.mean()), float(np.sqrt(np.maximum(within, between)))


def standard_error(series: Array) -> float:
    """Return the standard error of the mean of a series (n,), from its effective sample size.

    It is infinite where a value is: one batch alone has seen the support.
    """
    if not np.isfinite(series).all():
        return np.inf
    n = geyer(series)
    return float(np.sqrt(series.var(ddof=1) / n)) if n > 0 else 0.0


class Rungs:
    """One chain's state of a coupled kernel."""

    def __init__(self, state: dict[str, Any], prefix: str) -> None:
        self.state, self.prefix = state, prefix
        self.ladder = self["ladder"]
        with np.errstate(invalid="ignore", divide="ignore"):
            self.rates = (self["swaps.swapped"] / self["swaps.attempted"])[:-1]
        self.n = int(self["evidence.batch"])
        self.length = int(self["evidence.batch_length"])

    def __getitem__(self, name: str) -> Any:
        return self.state[f"{self.prefix}{name}"]

    def log_z(self, estimate: Any) -> tuple[float, float]:
        """Return (estimate, standard error) by the jackknife over batches; NaN if there is none.

        In a short run the batches are not longer than the autocorrelation time of the states, so
        the pseudo-values, n f(all) - (n - 1) f(all but b), are taken for a correlated series.
        """
        if self.ladder[-1] > 0 or self.n < 4:
            return np.nan, np.nan
        every = np.arange(self.n)
        value = estimate(every)
        pseudo = np.array([self.n * value - (self.n - 1) * estimate(np.delete(every, b))
                           for b in every])
        return float(value), standard_error(pseudo)

    def stepping_stones(self, batches: NDArray[np.int64]) -> float:
        """sum_r log mean exp((beta_r - beta_r+1) W), W at rung r + 1."""
        logs = self["evidence.stones"][batches, 1:]
        sums = np.logaddexp.reduce(logs, axis=0)
        return float((sums - np.log(len(batches) * self.length)).sum())

    def thermodynamic(self, batches: NDArray[np.int64]) -> float:
        """The integral of E W over beta, by the trapezoidal rule with its correction.

        Friel, N., Hurn, M. and Wyse, J. (2014). Improving power posterior estimation of statistical
        evidence. Statistics and Computing 24, 709-723: the variance of W is the derivative of its
        mean.
        """
        mean, _ = self.moments(batches)
        rule = -np.diff(self.ladder) * (mean[1:] + mean[:-1]) / 2
        outside = self["evidence.outside"][batches].sum() / (len(batches) * self.length)
        with np.errstate(divide="ignore"):
            return float(rule.sum() + self.correction(batches) + np.log1p(-outside))

    def correction(self, batches: NDArray[np.int64] | slice = slice(None)) -> float:
        """-sum_r (beta_r - beta_r+1)^2 (var_r W - var_r+1 W) / 12"""
        if self.n == 0:
            return np.nan
        _, variance = self.moments(batches)
        return float(np.sum(np.diff(self.ladder) ** 2 * np.diff(variance)) / 12)

    def moments(self, batches: NDArray[np.int64] | slice) -> tuple[Array, Array]:
        """Mean and variance of W at each rung, of the states where it is finite."""
        sums = self["evidence.sums"][: self.n][batches]
        squares = self["evidence.squares"][: self.n][batches]
        n = np.full(len(self.ladder), float(len(sums) * self.length))
        n[-1] = max(1.0, n[-1] - self["evidence.outside"][: self.n][batches].sum())
        mean = sums.sum(axis=0) / n
        return mean, squares.sum(axis=0) / n - mean**2
