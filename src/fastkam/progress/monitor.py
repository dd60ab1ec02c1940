"""Diagnostics of the draws during a run, computed so rarely that their cost is negligible."""

from __future__ import annotations

import math
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.diagnostics.convergence import COLUMNS, measure

if TYPE_CHECKING:
    from fastkam.run.loop import Run
    from fastkam.stop import StopRule

SHARE = 1 / 200  # largest share of a run's time for measurements
EVERY_SECONDS = 1.0  # shortest interval between measurements
LOOK_SECONDS = 0.01  # time limit of a measurement; of many coordinates, it takes some
FEWEST_ROWS = 20  # per chain, from which R-hat and ESS are computed
DRAWS, LEAST_ROWS = 4000, 20  # draws of all chains that are used, and of each at least
RATE_SECONDS = 15.0  # over which rates are averaged


class Monitor:
    """The measures of a run that Progress shows.

    A measurement uses equally spaced draws and all coordinates; if that takes longer than 10 ms,
    some coordinates in turn, and those that were worst. Neither a large dimension nor a long run
    therefore makes it slow. The first is made after 2 seconds.
    """

    def __init__(self) -> None:
        self.r_hat = self.ess = np.zeros(0)  # of each coordinate, NaN until it is measured
        self.names: list[str] = []
        self.step_size, self.diverging = math.nan, 0
        self.seen_rows = 0  # rows whose divergences are counted
        self.spent, self.longest, self.last = 0.0, LOOK_SECONDS, -math.inf  # times of measurements
        self.per_coordinate, self.turn = 0.0, 0
        self.forecast, self.forecast_at = math.nan, 0.0
        self.past: deque[tuple[float, int, int]] = deque()  # times, steps, evaluations

    def begin(self, run: Run) -> None:
        """Record that a run begins, or continues in another form."""
        self.names = run.past.layout.labels
        self.diverging, self.seen_rows = 0, 0
        self.past.clear()
        steps, _, evaluations, _ = run.counted()
        self.past.append((time.perf_counter(), steps, evaluations))

    def look(self, run: Run, stop: StopRule | None, *, last: bool = False) -> None:
        """Measure the draws if it is time; with `last`, at the end of a run, if time permits."""
        begun = time.perf_counter()
        if self.spent + self.longest > SHARE * (begun - run.called):
            return
        if not last and begun < self.last + EVERY_SECONDS:
            return
        self.learned(run)
        self.count_divergences(run)
        if run.trace.rows >= FEWEST_ROWS:
            self.measure(run)
        self.ask(run, stop)
        self.last = time.perf_counter()
        self.longest = max(LOOK_SECONDS, self.last - begun)
        self.spent += self.last - begun

    def measure(self, run: Run) -> None:
        """Compute R-hat and ESS of as many coordinates as there is time for."""
        begun = time.perf_counter()
        draws = thinned(run)
        d = draws.shape[-1]
        if len(self.r_hat) != d:
            self.r_hat, self.ess = np.full(d, np.nan), np.full(d, np.nan)
        left = LOOK_SECONDS - (time.perf_counter() - begun)
        n = d if not self.per_coordinate else int(np.clip(left / self.per_coordinate, 1, d))
        if not self.per_coordinate and d > 1:  # the time per coordinate is not known yet
            n = 1
        some = np.unique(np.concatenate([(self.turn + np.arange(n)) % d, self.worst()]))
        self.turn = (self.turn + n) % d
        columns = measure(np.ascontiguousarray(draws[:, :, some]), mcse_sd=False)
        self.r_hat[some] = columns[COLUMNS.index("r_hat")]
        self.ess[some] = columns[COLUMNS.index("ess_bulk")]
        first = not self.per_coordinate
        self.per_coordinate = max(1e-7, (time.perf_counter() - begun) / len(some))
        if first and d > 1:
            self.measure(run)

    def worst(self) -> NDArray[np.intp]:
        """The coordinates of the largest R-hat and of the smallest ESS, if there are any."""
        return np.array([int(pick(of)) for pick, of in (
            (np.nanargmax, self.r_hat), (np.nanargmin, self.ess)) if np.isfinite(of).any()],
            dtype=np.intp)

    def learned(self, run: Run) -> None:
        """Set the step size to the mean of those that the chains last recorded."""
        trace = run.trace if run.trace.rows else run.warmup
        names = trace.stat_names or ()
        rows = trace.counts - 1
        if "step_size" not in names or (rows < 0).any():
            return
        column = names.index("step_size")
        values = [float(np.asarray(trace.extra[k, row : row + 1, column])[0])
                  for k, row in enumerate(rows.tolist())]
        self.step_size = float(np.mean(values))

    def count_divergences(self, run: Run) -> None:
        """Count divergences among the new draws."""
        trace, rows = run.trace, run.trace.rows
        if "diverging" not in (trace.stat_names or ()):
            return
        column = trace.stat_names.index("diverging")
        new = trace.extra[:, self.seen_rows : rows, column]
        self.diverging += int(np.asarray(new).sum())
        self.seen_rows = rows

    def ask(self, run: Run, stop: StopRule | None) -> None:
        """Set the time until the stop rule holds, if the rule forecasts it."""
        seconds = None if stop is None else stop.forecast(run)
        self.forecast = math.nan if seconds is None else float(seconds)
        self.forecast_at = time.perf_counter()

    def shown(self, steps: int, total: int, evaluations: int) -> dict[str, Any]:
        """The fields of a Progress that are measured here."""
        now = time.perf_counter()
        if not self.past or now - self.past[-1][0] > RATE_SECONDS / 50:
            self.past.append((now, steps, evaluations))
            while len(self.past) > 2 and now - self.past[1][0] > RATE_SECONDS:
                self.past.popleft()
        then, earlier, before = self.past[0]
        elapsed = now - then
        rate = (evaluations - before) / elapsed if elapsed > 0 else math.nan
        pace = (steps - earlier) / elapsed if elapsed > 0 else 0.0
        left = [(total - steps) / pace] if pace > 0 else []
        if math.isfinite(self.forecast):
            left.append(max(0.0, self.forecast - (now - self.forecast_at)))
        fields: dict[str, Any] = {
            "rate": rate if evaluations > before else math.nan,
            "step_size": self.step_size, "diverging": self.diverging,
            "seconds_left": min(left, default=math.nan), "names": self.names}
        if np.isfinite(self.r_hat).any():
            k = int(np.nanargmax(self.r_hat))
            fields |= {"r_hat": float(self.r_hat[k]), "r_hat_of": self.name(k)}
        if np.isfinite(self.ess).any():
            k = int(np.nanargmin(self.ess))
            fields |= {"ess": float(self.ess[k]), "ess_of": self.name(k)}
        return fields

    def name(self, k: int) -> str:
        """The name of the k-th parameter."""
        return self.names[k] if k < len(self.names) else f"x[{k}]"


def thinned(run: Run) -> NDArray[np.float64]:
    """Equally spaced draws of a run, including the last, in the user's parameters."""
    draws = run.trace.draws
    chains, rows, _ = draws.shape
    step = max(1, rows // max(LEAST_ROWS, DRAWS // chains))
    some = run.past.in_one_period(np.asarray(draws[:, rows - 1 :: -step][:, ::-1]))
    return run.past.constrain(some)
