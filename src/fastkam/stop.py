"""Rules that end a run early: `Done() | Time("10min")`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fastkam._core.diagnostics.convergence import COLUMNS, measure
from fastkam.arguments import check_choice, check_number, near, shown
from fastkam.run.rules import CURABLE, Evaluations, Limits, StopRule, Time

if TYPE_CHECKING:
    from fastkam.run.loop import Run
    from fastkam.run.shapes import Layout

__all__ = ["ESS", "MCSE", "Done", "Evaluations", "Limits", "Rhat", "StopRule", "Time"]

# A rule uses evenly spaced draws, 10 times the effective sample size that it requires: if all
# draws have that effective sample size, that of the thinned ones is smaller by at most 1/300.
DRAWS_PER_EFFECTIVE = 10
FEWEST_DRAWS = 4000  # of all chains, if there are more
FEWEST_ROWS = 100  # of each chain
MOST_PER_DRAW = 4.0  # effective draws for each draw, which antithetic chains may have
# An effective sample size of fewer draws than this, of all chains, is itself too uncertain: rules
# would end runs in which it happens to be large.
LEAST_FOR_SIZE = 800
LEAST_FOR_ERROR = 400  # effective draws, below which a Monte Carlo error is not known
TAILS = ("bulk", "tail", "both")


@dataclass(frozen=True)
class Measured(StopRule):
    """A rule about a statistic of the draws, which holds once there are enough rows.

    It uses evenly spaced draws, at least ``least`` if there are as many. The coordinate for which
    it last failed is examined first, mostly alone, to save time.
    """

    def needed(self, draws: Any, rows: int) -> Any:
        """Estimate the number of rows that a chain needs for each coordinate, (d,), from `rows`.

        The estimate is at most `rows` if the rule holds, and inf or NaN if it is unknown.
        """
        raise NotImplementedError

    def least(self) -> float:
        """Number of draws, of all chains, that are examined if there are as many."""
        return FEWEST_DRAWS

    def looked_at(self, draws: Any, least: float | None = None) -> Any:
        """Evenly spaced draws of (chains, rows, d), with the last row; `least` of them, or more."""
        chains, rows, _ = draws.shape
        least = self.least() if least is None else least
        step = max(1, min(int(chains * rows / least), rows // FEWEST_ROWS))
        return draws[:, rows - 1 :: -step][:, ::-1]

    def met(self, run: Run) -> bool:
        some = run.past.in_one_period(self.looked_at(run.trace.draws))
        return self.holds(run, some)

    def holds(self, run: Run, draws: Any) -> bool:
        """Whether the rule holds for draws (chains, n, d); the worst coordinate is tried first."""
        rows, d = run.trace.draws.shape[1], draws.shape[2]
        first = min(run.hardest, d - 1)
        if d > 1:
            alone = self.needed(draws[:, :, first : first + 1], rows)
            if not alone[0] <= rows:
                run.expected[id(self)] = float(alone[0])
                return False
        needed = self.needed(draws, rows)
        bad = np.flatnonzero(~(needed <= rows))
        if len(bad):
            run.hardest = int(bad[0])
        run.expected[id(self)] = float(needed.max()) if d else float("inf")
        return not len(bad)

    def forecast(self, run: Run) -> float | None:
        rows = run.expected.get(id(self))
        if rows is None or not math.isfinite(rows) or run.seconds_per_row is None:
            return None
        return max(0.0, rows - run.trace.rows) * run.seconds_per_row


def in_proportion(rows: int, ratio: Any) -> Any:
    """`rows` times a ratio (d,), above `rows` where the ratio is above 1 in spite of rounding."""
    needed = rows * ratio
    return np.where((ratio > 1) & ~(needed > rows), np.nextafter(rows, np.inf), needed)


def rows_for_r_hat(rows: int, r_hat: Any, most: float) -> Any:
    """The rows at which R-hat falls to `most`: R-hat^2 - 1 is roughly proportional to 1 / rows."""
    ratio = np.maximum((r_hat**2 - 1) / (most**2 - 1), 0.0)
    return in_proportion(rows, np.where(r_hat > most, np.maximum(ratio, 1 + 1e-9),
                                        np.minimum(ratio, 1.0)))


def columns_of(draws: Any, *, r_hat: bool = True, sizes: bool = True) -> dict[str, Any]:
    """The columns of the summary of draws, without the error of the standard deviation."""
    return dict(zip(COLUMNS, measure(draws, r_hat=r_hat, sizes=sizes, mcse_sd=False), strict=True))


@dataclass(frozen=True)
class ESS(Measured):
    """Every coordinate has at least this effective sample size, over all chains.

    In long runs evenly spaced draws are used: at least 10 times `size`, and at least 4000. The rule
    holds after 800 draws of all chains at the earliest, since fewer give too uncertain a size.

    Parameters
    ----------
    size : float
    of : str
        "bulk", of the center; "tail", of the 5 % and 95 % quantiles; or "both".
    """

    size: float = 400
    of: str = "bulk"

    def __post_init__(self) -> None:
        check_number("size", self.size, above=0)
        check_choice("of", self.of, TAILS)

    def least(self) -> float:
        return max(FEWEST_DRAWS, DRAWS_PER_EFFECTIVE * self.size)

    def needed(self, draws: Any, rows: int) -> Any:
        columns = columns_of(draws, r_hat=False)
        bulk, tail = columns["ess_bulk"], columns["ess_tail"]
        ess = {"bulk": bulk, "tail": tail, "both": np.minimum(bulk, tail)}[self.of]
        needed = in_proportion(rows, self.size / ess)  # NaN if nothing moved: not met
        return np.maximum(needed, -(-LEAST_FOR_SIZE // len(draws)))


@dataclass(frozen=True)
class Rhat(Measured):
    """Every coordinate's rank-normalized R-hat is at most this.

    In long runs 4000 to 8000 evenly spaced draws are used. There must be two chains or more.
    """

    most: float = 1.01

    def __post_init__(self) -> None:
        check_number("most", self.most, above=1)

    def check(self, layout: Layout, chains: int) -> None:
        if chains == 1:
            raise ValueError("stop must have no Rhat if there is one chain, since its R-hat is "
                             "unknown: give chains=2 or more, or stop by ESS")

    def needed(self, draws: Any, rows: int) -> Any:
        return rows_for_r_hat(rows, columns_of(draws, sizes=False)["r_hat"], self.most)


@dataclass(frozen=True)
class MCSE(Measured):
    """The Monte Carlo standard errors of means are at most those given in `errors`.

    In long runs evenly spaced draws are used: at least 10 times the effective sample size that the
    errors require, and at least 4000.

    Draws that happen to miss a tail have too small a standard deviation, autocorrelation and
    error all at once, and a run that ends as soon as its error looks small ends with such draws too
    often. Therefore the errors must also have been small enough a sixth of the draws earlier, and
    the coordinates must have effective sample sizes of at least 400, in the bulk and in the tails.

    Parameters
    ----------
    errors : dict of str to float
        The largest allowed error by name: of all elements of a parameter ("theta"), or of one
        coordinate ("theta[0]"). Parameters that are not named may have any error. Extras and
        derived quantities cannot be named.
    """

    errors: Mapping[str, float] = field(hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.errors, Mapping) or not self.errors:
            raise TypeError('errors must be a dict such as {"mu": 0.01}, not '
                            f"{shown(self.errors)}")
        for name, error in self.errors.items():
            if not isinstance(name, str):
                raise TypeError("errors must have names of parameters as its keys, not "
                                f"{shown(name)}")
            check_number(f"errors[{name!r}]", error, above=0)

    def check(self, layout: Layout, chains: int) -> None:
        for name in self.errors:
            if name not in layout.shapes and not layout.places(name):
                known = [*layout.shapes, *layout.labels]
                raise ValueError(f"errors of stop must name parameters: there is no {shown(name)}, "
                                 f"there are {list(layout.shapes)}{near(name, known)}")

    def met(self, run: Run) -> bool:
        which, most = self.named(run.past.layout)
        draws = run.trace.draws
        chains, rows, _ = draws.shape
        x = run.past.constrain(self.looked_at(draws))[:, :, which]
        size = float(((x.std(axis=(0, 1)) / most) ** 2).max(initial=0.0))
        if size > MOST_PER_DRAW * chains * rows:
            run.expected[id(self)] = size / chains
            return False
        if size * DRAWS_PER_EFFECTIVE > self.least():
            x = run.past.constrain(self.looked_at(draws, size * DRAWS_PER_EFFECTIVE))[:, :, which]
        needed = self.needed_for(x, rows, most)
        if (needed <= rows).all():
            needed = self.needed_for(x[:, : x.shape[1] * 5 // 6], rows, most)
        run.expected[id(self)] = float(needed.max()) if which else math.inf
        return bool(which and (needed <= rows).all())

    def named(self, layout: Layout) -> tuple[list[int], Any]:
        """The coordinates whose errors are limited, and the limits, (k,)."""
        asked: dict[int, float] = {}
        for name, error in self.errors.items():
            for k in layout.places(name):
                asked[k] = min(error, asked.get(k, math.inf))
        which = sorted(asked)
        return which, np.array([asked[k] for k in which])

    def needed_for(self, x: Any, rows: int, most: Any) -> Any:
        """The rows that each coordinate of draws x (chains, n, k) needs, measured at `rows`."""
        with np.errstate(all="ignore"):
            columns = columns_of(np.ascontiguousarray(x), r_hat=False)
            size = np.minimum(columns["ess_bulk"], columns["ess_tail"])
            return in_proportion(rows, np.maximum((columns["mcse_mean"] / most) ** 2,
                                                  LEAST_FOR_ERROR / size))


@dataclass(frozen=True)
class Done(Measured):
    """The draws suffice, and the checks find no fault in them that more draws could resolve.

    Every coordinate has effective sample sizes of at least `ess`, in the bulk and in the tails, and
    an R-hat of at most `r_hat`; and the checks at the end of every run find nothing that further
    draws may resolve, such as a drift, a long stay at one point, or groups of draws between which
    chains rarely move (see `fastkam.Result.verdict`).

    Parameters
    ----------
    ess : float
    r_hat : float
        Not required of a single chain, which has no R-hat.
    """

    ess: float = 400
    r_hat: float = 1.01

    def __post_init__(self) -> None:
        check_number("ess", self.ess, above=0)
        check_number("r_hat", self.r_hat, above=1)

    def least(self) -> float:
        return max(FEWEST_DRAWS, DRAWS_PER_EFFECTIVE * self.ess)

    def needed(self, draws: Any, rows: int) -> Any:
        columns = columns_of(draws)
        size = np.minimum(columns["ess_bulk"], columns["ess_tail"])
        needed = in_proportion(rows, self.ess / size)
        if len(draws) == 1:
            return needed
        return np.maximum(needed, rows_for_r_hat(rows, columns["r_hat"], self.r_hat))

    def met(self, run: Run) -> bool:
        if not super().met(run):
            return False
        return not any(one.kind in CURABLE for one in run.findings())
