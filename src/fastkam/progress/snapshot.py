"""Progress: how far a run has come."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_integer


@dataclass(frozen=True)
class Progress:
    """The progress of a run, as a ``progress=`` function receives it.

    R-hat, ESS, step size, divergences and the forecast of a stop rule are computed first after 2
    seconds, then every second, unless that takes more than 1/200 of the time.

    Attributes
    ----------
    steps, total : int
        Steps made by all chains, warm-up included, and how many there will be; 0 in the search.
    draws : list of int
        Draws kept so far, for each chain.
    tuning : bool
        Whether any chain is still in warm-up, or has not begun.
    acceptance : float
        Fraction of proposals accepted so far.
    seconds : float
        Wall-clock time since the call.
    searched : int
        Evaluations of the search before the run.
    requested : int
        Draws that each chain will have.
    evaluations : int
        Evaluations of the density so far, those of the search included.
    rate : float
        Evaluations per second, over the last 15 seconds; NaN if it is not known.
    r_hat, ess : float
        The largest rank-normalized R-hat of a coordinate and the smallest bulk effective sample
        size, of at most 4000 equally spaced draws of all chains; NaN until there are some.
    r_hat_of, ess_of : str
        The parameters to which these belong.
    step_size : float
        Mean over the chains; NaN if the sampler records none.
    diverging : int
        Number of draws whose trajectory has diverged.
    seconds_left : float
        Time until the chains have their draws, or the stop rule is met if that is sooner; NaN if it
        is not known.
    stopped_by : str
        The stop rule that has ended the run; "" before.
    names : list of str
        Names of the coordinates of `last_draws`.
    advice : str
        How to shorten the search of a slow density; "" if it is not slow, and after the search.
    """

    steps: int
    total: int
    draws: list[int]
    tuning: bool
    acceptance: float
    seconds: float
    searched: int = 0
    requested: int = 0
    evaluations: int = 0
    rate: float = math.nan
    r_hat: float = math.nan
    r_hat_of: str = ""
    ess: float = math.nan
    ess_of: str = ""
    step_size: float = math.nan
    diverging: int = 0
    seconds_left: float = math.nan
    stopped_by: str = ""
    names: list[str] = field(default_factory=list)
    advice: str = ""
    _rows: Callable[[int, int], NDArray[np.float64]] | None = field(
        default=None, repr=False, compare=False)
    _stop: Callable[[], None] | None = field(default=None, repr=False, compare=False)

    def last_draws(self, n: int = 1) -> NDArray[np.float64]:
        """The last draws that every chain has, in the parameters of the user.

        Parameters
        ----------
        n : int
            Number of draws of each chain.

        Returns
        -------
        ndarray, shape (chains, m, d)
            m <= n: 0 during warm-up.

        Raises
        ------
        TypeError, ValueError
            If `n` is not a nonnegative integer.
        """
        n = check_integer("n", n, least=0)
        rows = min(self.draws, default=0)
        if self._rows is None:
            return np.zeros((len(self.draws), 0, len(self.names)))
        return self._rows(max(0, rows - n), rows)

    def stop(self) -> None:
        """End the run after this chunk of steps, as a stop rule does: with the draws so far."""
        if self._stop is not None:
            self._stop()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_rows": None, "_stop": None}
