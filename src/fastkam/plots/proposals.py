"""Proposals of a sampler from some of its draws, drawn over all draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam._core.engine.chain import ChainState
from fastkam._core.engine.fault import Fault
from fastkam._core.engine.group import Group
from fastkam.arguments import check_flag, check_generator, check_integer, checked_names, shown
from fastkam.density.forms import as_target
from fastkam.density.target import Target
from fastkam.diagnostics.distances import check_bounds
from fastkam.plots.pair import CELLS, check_pair, contours, size_of
from fastkam.plots.select import MOST_POINTS, check_some, range_of, thinned
from fastkam.plots.style import COLORS, LINES, finite, grid, plain, size_of_points
from fastkam.samplers import SAMPLERS
from fastkam.schedules import Plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fastkam.result import Result

PROPOSALS = 400  # per point: the ellipse is accurate to about 5 %
MASS = 0.95
# of the ellipse, in standard deviations: the square of the radius of a normal distribution in the
# plane is exponential
RADIUS = np.sqrt(-2 * np.log1p(-MASS))
MOST_CENTERS = 50
MOST_OBLONG = 10  # ratio of the lengths of axes that have the same scale by default
NORMAL = ("rwm", "am", "rbam", "gam", "ram", "arwm", "cholam", "kam", "ckam", "gadrwm", "mala",
          "gadmala", "fishermala")


@checked_names
def plot_proposals(
    result: Result,
    pair: Sequence[int | str] = (0, 1),
    *,
    points: int | ArrayLike = 6,
    logp: Callable[[NDArray[np.float64]], ArrayLike] | None = None,
    bounds: ArrayLike | None = None,
    equal: bool | None = None,
    seed: Any = 1,
    ax: Any = None,
    figsize: tuple[float, float] | None = None,
) -> Figure:
    """Proposals from some of the draws, by the sampler as it was at the end of the run.

    From each of the `points`, marked by a cross, 400 proposals are drawn with the state of the
    first chain. Normal proposals are shown as the ellipse that holds 95 % of them in these two
    coordinates; for other samplers the proposals themselves are shown. A proposal that follows the
    local shape of the density has another ellipse at each cross.

    Parameters
    ----------
    result : Result
        A result with its density: not one from a file.
    pair : tuple of two
        The coordinates, by their numbers or their labels.
    points : int or array of int (k,)
        Number of draws of the first chain, spread over the region that it has visited; or their
        indices.
    logp, bounds
        As in `plot_2d`.
    equal : bool, optional
        Whether both axes have the same scale; by default if neither is more than 10 times as long
        as the other.
    seed : int
        Seed of the proposals.
    ax : Axes, optional
        To draw into.
    figsize : tuple of two float, optional
        Inches.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        For a sampler that evaluates the density more than once a step, whose proposals are not
        single points; for an estimated density; and for a result without its density.
    """
    draws, (i, j) = check_some(result), check_pair(result, pair)
    equal = None if equal is None else check_flag("equal", equal)
    if logp is not None and not callable(logp):
        raise TypeError(f"logp must be a function, not {shown(logp)}")
    rows = check_points(points, draws)
    proposals = Proposals(result, seed)
    where = [proposals.at(result.trace.draws[0, row]) for row in rows]
    shown_draws, _ = thinned(draws[:, :, [i, j]], max(1, MOST_POINTS // len(draws)))
    if bounds is None:
        limits = np.array([range_of(finite(shown_draws[..., k]), CELLS) for k in range(2)])
        limits = with_proposals(limits, [cloud[:, [i, j]] for cloud in where])
    else:
        limits = check_bounds(bounds, 2)
    if equal is None:
        width, height = np.diff(limits, axis=1)[:, 0]
        equal = max(width, height) <= MOST_OBLONG * min(width, height)
    figure, axes = grid(1, 1, size_of(limits, equal), ax=ax, figsize=figsize)
    one, n = axes[0, 0], shown_draws[..., 0].size
    one.plot(*shown_draws.reshape(-1, 2).T, ".", ms=size_of_points(n), mew=0, color="0.75",
             rasterized=True)
    if logp is not None:
        contours(one, logp, limits, 200)
    for k, (row, cloud) in enumerate(zip(rows, where, strict=True)):
        mark(one, draws[0, row, [i, j]], cloud[:, [i, j]], proposals.normal, k)
    labels = result.state.layout.labels
    one.set(xlim=limits[0], ylim=limits[1], xlabel=plain(labels[i]), ylabel=plain(labels[j]))
    if equal:
        one.set_aspect("equal", adjustable="box")
    return figure


def with_proposals(bounds, clouds):
    """Bounds of draws, widened to hold the ellipse of each cloud of proposals (n, 2).

    Each side is moved by at most the range of the draws.
    """
    width = bounds[:, 1] - bounds[:, 0]
    middle = np.array([cloud.mean(axis=0) for cloud in clouds])
    reach = 1.03 * RADIUS * np.array([cloud.std(axis=0, ddof=1) for cloud in clouds])
    low, high = (middle - reach).min(axis=0), (middle + reach).max(axis=0)
    return np.stack([np.clip(low, bounds[:, 0] - width, bounds[:, 0]),
                     np.clip(high, bounds[:, 1], bounds[:, 1] + width)], axis=1)


def check_points(points, draws):
    """The numbers of some draws of the first chain: those given, or k that lie far apart."""
    n = draws.shape[1]
    if np.ndim(points) == 0:
        k = check_integer("points", points, least=1, most=MOST_CENTERS)
        return far_apart(draws[0], k)
    listed = [check_integer("points", point, least=0) for point in points]
    if not listed or len(listed) > MOST_CENTERS or max(listed) >= n:
        raise ValueError(f"points must be 1 to {MOST_CENTERS} numbers of draws below {n}, not "
                         f"{shown(points)}")
    return listed


def far_apart(x, k):
    """The numbers of at most k rows of x (n, d), each far from those before it.

    The first is the one nearest to the middle, and each next one the farthest from all chosen.
    The 10 % of the rows that are farthest from the middle are excluded.
    """
    scale = x.std(axis=0)
    u = (x - np.median(x, axis=0)) / np.where(scale > 0, scale, 1.0)
    every = np.linspace(0, len(u) - 1, min(len(u), 1000)).astype(int)
    u = u[every]
    radius = np.square(u).sum(axis=1)
    inner = radius <= np.quantile(radius, 0.9)
    found = [int(np.argmin(radius))]
    distance = np.square(u - u[found[0]]).sum(axis=1)
    while len(found) < k:
        best = int(np.argmax(np.where(inner, distance, -1.0)))
        if distance[best] <= 0:
            break
        found.append(best)
        distance = np.minimum(distance, np.square(u - u[best]).sum(axis=1))
    return [int(every[row]) for row in found]


class Proposals:
    """Proposals of the first chain's kernel, with the state that it had at the end of the run.

    They are seen as the points at which one step evaluates the density.
    """

    def __init__(self, result, seed):
        if result.target is None:
            raise ValueError("the result must have its density, and one from a file has none: "
                             "proposals may depend on it")
        state, self.result = result.state, result
        self.normal = isinstance(state.sampler, tuple(SAMPLERS[name] for name in NORMAL))
        if result.target.is_estimate:
            raise ValueError("proposals of a density that is estimated cannot be shown")
        self.scales, self.evaluated = state.scales, []
        kernel = state.own_sampler.build(state.x0[0] / self.scales)
        if kernel.several or kernel.width > 1:
            raise ValueError(f"{type(state.sampler).__name__} evaluates several points a step: "
                             "its proposals are no single points")
        self.first = {name.removeprefix("kernel."): value
                      for name, value in state.states[0].items() if name.startswith("kernel.")}
        self.kernel = kernel
        self.target = Target.from_python(self.density, state.d, gradient=kernel.gradient)
        start = state.x0[0] / self.scales
        self.chain = ChainState(kernel, check_generator("seed", seed).bit_generator, start, n_aux=0)
        self.group = Group(as_target(self.target, state.d).bind(), [self.chain], Plan())

    def density(self, u):
        """The density of the result at u, in units of the scales; the point is remembered."""
        x = u * self.scales
        self.evaluated.append(x.copy())
        if self.kernel.gradient:
            value, gradient = self.result.target.logp_grad(x)
            return value, gradient * self.scales
        return self.result.target.logp(x)

    def at(self, point):
        """Proposals (n, d) from a point, in the user's coordinates."""
        found = []
        for _ in range(PROPOSALS):
            self.kernel.restore(self.first)
            self.chain.place(point / self.scales)
            try:
                self.group.start()
                self.evaluated.clear()
                self.group.run(1)
            except Fault as fault:
                raise ValueError(f"the density fails at {shown(point)}") from fault
            found += self.evaluated[-1:]
        return self.result.state.constrain(np.array(found).reshape(-1, len(point)))


def mark(axes, point, cloud, normal, k):
    """Draw a point, and its proposals (n, 2) or the ellipse that holds MASS of them."""
    from matplotlib.patches import Ellipse

    color, line = COLORS[k % len(COLORS)], LINES[k // len(COLORS) % len(LINES)]
    if normal:
        values, vectors = np.linalg.eigh(np.cov(cloud.T))
        width, height = 2 * RADIUS * np.sqrt(np.maximum(values, 0))
        angle = np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0]))
        axes.add_patch(Ellipse(cloud.mean(axis=0), width, height, angle=angle, fill=False,
                               lw=1.6, color=color, ls=line, zorder=3))
    else:
        axes.plot(*cloud.T, ".", ms=2.5, mew=0, alpha=0.6, color=color, zorder=3)
    axes.plot(*point, "x", ms=7, mew=2, color=color, zorder=4)
