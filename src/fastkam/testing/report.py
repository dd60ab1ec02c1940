"""Calibration: the report of a simulation-based calibration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from textwrap import wrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import checked_names, counted
from fastkam.diagnostics.table import WIDTH, aligned
from fastkam.testing.figures import plot_ranks
from fastkam.testing.fits import LOG_LIKELIHOOD, SPARE, Fit
from fastkam.testing.ranks import deviation, uniformity

MOST_ROWS = 40  # of the table, the worst first
NAMED = 3  # failures that the text names


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """The report of `calibration`; prints as a table.

    Attributes
    ----------
    ranks : dict of str to ndarray of int, shape (fits,)
        For each quantity, in the fits that have not failed, the number of draws below its value at
        the parameters of the simulation.
    draws : int
        Number of draws of each fit: ranks are between 0 and this number.
    parameters : ndarray, shape (n, d)
        Draws from the prior, of every fit; NaN where `simulate` itself has failed.
    failures : dict of int to str
        The numbers of fits that have failed, and the exceptions.
    found : dict of str to int
        Number of fits with a finding, by its kind (see `fastkam.diagnostics.Finding`); findings
        that a run was short are not counted.
    correlated : int
        Number of fits whose draws are not nearly independent, because the chains moved too slowly.
    constant : list of str
        Quantities with one value in every draw of every fit, which are not ranked.
    false_alarm_rate : float
        False-alarm rate of `ok`, over all quantities together.
    """

    ranks: dict[str, NDArray[np.int64]]
    draws: int
    parameters: NDArray[np.float64]
    failures: dict[int, str]
    found: dict[str, int]
    correlated: int
    constant: list[str]
    false_alarm_rate: float

    @classmethod
    def of(cls, fits: Sequence[Fit], draws: int, false_alarm_rate: float) -> Calibration:
        """The report of fits, some of which have ranks."""
        good = [fit for fit in fits if not fit.failure]
        names = list(good[0].ranks)
        constant = [name for name in names if all(fit.ties.get(name) == draws for fit in good)]
        ranks = {name: np.array([fit.ranks[name] for fit in good])
                 for name in names if name not in constant}
        return cls(
            ranks=ranks, draws=draws, parameters=np.array([fit.parameters for fit in fits]),
            failures={i: fit.failure for i, fit in enumerate(fits) if fit.failure},
            found=dict(Counter(kind for fit in good for kind in sorted(fit.findings))),
            correlated=sum(not fit.effective >= SPARE * draws for fit in good),
            constant=constant, false_alarm_rate=false_alarm_rate)

    @cached_property
    def p_values(self) -> dict[str, float]:
        """The p-value of each quantity alone (see `uniformity`), the smallest first."""
        found = {name: uniformity(ranks, self.draws) for name, ranks in self.ranks.items()}
        return dict(sorted(found.items(), key=lambda item: item[1]))

    @property
    def p_value(self) -> float:
        """The smallest p-value, Bonferroni-corrected over the quantities."""
        return min(1.0, len(self.ranks) * min(self.p_values.values(), default=1.0))

    @property
    def worst(self) -> str:
        """The quantity with the smallest p-value."""
        return next(iter(self.p_values), "")

    @property
    def ok(self) -> bool:
        """Whether ranks are as uniform as they should be, and no fit has failed."""
        return not self.failures and not self.deviating

    @property
    def deviating(self) -> list[str]:
        """The quantities whose ranks are not uniform, the worst first.

        Their p-value is below the rate of false alarms divided by the number of quantities.
        """
        least = self.false_alarm_rate / max(1, len(self.ranks))
        return [name for name, p in self.p_values.items() if p < least]

    @checked_names
    def plot(self, kind: str = "ecdf", *, names: str | Sequence[str] | None = None,
             columns: int | None = None, width: float | None = None, ax: Any = None,
             figsize: tuple[float, float] | None = None) -> Any:
        """A figure with a panel for each quantity, the worst first; needs matplotlib.

        Parameters
        ----------
        kind : str
            "ecdf": the distribution function of the ranks less that of uniform ones. For a right
            model the bands hold the curves of all quantities with a probability of at least
            1 - `false_alarm_rate`. "histogram": the number of fits with ranks in each bin, relative
            to what is expected, with ranges that hold all of them with such a probability.
        names : str or list of str, optional
            Quantities to show; by default all, or the 16 worst if there are more.
        columns : int, optional
            Panels side by side; by default at most 4.
        width : float, optional
            Of the figure, in inches; by default 2.6 per panel, and 2 more if it is the only one.
        ax : array of Axes, optional
            To draw into, one for each quantity.
        figsize : tuple of two float, optional
            Inches, in place of `width`.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return plot_ranks(self, kind, names, columns, width, ax, figsize)

    # ---- as text ----

    def __str__(self) -> str:
        rows = [["", "p-value", "ranks"]]
        deviating = set(self.deviating)
        for name, p in list(self.p_values.items())[:MOST_ROWS]:
            says = deviation(self.ranks[name], self.draws) if name in deviating else "uniform"
            rows.append([name, f"{p:.2g}", says])
        lines = [line for note in self.notes() for line in wrap(note, WIDTH)]
        if (more := len(self.ranks) - MOST_ROWS) > 0:
            rows.append([f"... {more} more", "", ""])
        longest = max(len(row[2]) for row in rows)
        table = aligned([[*row[:2], row[2].ljust(longest)] for row in rows])
        return "\n".join([*wrap(self.verdict(), WIDTH), "", table, "", *lines]).rstrip()

    __repr__ = __str__

    def verdict(self) -> str:
        """The findings, in a sentence."""
        n, m = len(self.parameters) - len(self.failures), len(self.ranks)
        fits = f"{counted(n, 'fit')}, with ranks among {counted(self.draws, 'draw')}"
        if not self.deviating:
            over = "one quantity" if m == 1 else f"{m} quantities"
            return (f"no deviation found in {fits}: the p-value over {over} is "
                    f"{self.p_value:.2g}")
        return (f"not calibrated: the ranks of {len(self.deviating)} of {m} quantities are not "
                f"uniform, {self.worst} above all, in {fits}; the p-value over all quantities is "
                f"{self.p_value:.2g}, and that of a right model is below "
                f"{self.false_alarm_rate:g} with at most this probability")

    def notes(self) -> list[str]:
        """Further remarks about the fits, a sentence each."""
        n, found = len(self.parameters), []
        if self.failures:
            some = "; ".join(f"fit {i}: {text}" for i, text in list(self.failures.items())[:NAMED])
            found.append(f"{len(self.failures)} of {n} fits have failed and have no ranks ({some}"
                         f"{'; ...' if len(self.failures) > NAMED else ''}).")
        if self.correlated:
            found.append(f"In {self.correlated} of {n} fits the draws are not nearly independent: "
                         "their ranks are at the ends too often. Tune longer (tune=), thin more "
                         "(thin=), or choose another sampler.")
        if self.found:
            kinds = ", ".join(f"{kind} in {count}" for kind, count in self.found.items())
            found.append(f"Of {n} fits, runs have found: {kinds}.")
        if self.constant:
            found.append(f"Without a rank, as it never changes: {', '.join(self.constant)}."
                         + (" The log likelihood does not depend on the parameters."
                            if LOG_LIKELIHOOD in self.constant else ""))
        return found
