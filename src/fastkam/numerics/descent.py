"""The minimum of a function, by the method of Broyden, Fletcher, Goldfarb and Shanno (BFGS).

    x <- x - t H g,   H <- (I - s y' / c) H (I - y s' / c) + s s' / c,   c = s'y,

where s and y are the changes of x and of the gradient g.

Nocedal, J. and Wright, S. J. (2006). Numerical Optimization, 2nd edition, algorithms 3.1 and 6.1.
scipy.optimize has it, too, but takes longer to import than most runs take.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
SUFFICIENT = 1e-4  # share of the decrease by the slope, of a step that is taken
SHORTEST, LONGEST = 2.0**-40, 2.0**40  # factors of a step
LEAST_CURVATURE = 1e-10  # cosine of s and y
PROMISED = 100.0  # decrease by the slope where a minimum is reached, in units of the least
FLAT = 1e-5  # largest slope of a minimum


def minimized(
    value: Callable[[Array], float],
    slopes: Callable[[Array, float], Array],
    x: Array,
    *,
    most: int,
    least: float,
) -> tuple[Array, float, bool]:
    """Minimize a function from x (d,).

    Parameters
    ----------
    value : callable
        ``value(x)``, inf where it is not defined.
    slopes : callable
        ``slopes(x, value)``, the gradient (d,).
    x : array (d,)
    most : int
        Largest number of steps.
    least : float
        The decrease by a step, relative to the value or, if that is less than 1, to 1, at which
        the minimum is reached.

    Returns
    -------
    x : ndarray, shape (d,)
    value : float
    arrived : bool
        Whether this is a minimum, to within `least`.
    """
    f = value(x)
    g = slopes(x, f)
    H, known = np.eye(len(x)), False
    for _ in range(most):
        if not np.isfinite(g).all() or np.abs(g).max() <= FLAT:
            return x, f, bool(np.isfinite(g).all())
        p = -H @ g
        slope = float(g @ p)
        if not slope < 0:  # by rounding
            p, slope, known = -g, -float(g @ g), False
        t = 1.0 if known else 1 / max(1.0, float(np.sqrt(g @ g)))
        t, after = searched(value, x, p, f, slope, t, longer=not known)
        small = least * max(abs(f), 1.0)
        ends = -slope <= PROMISED * small
        if t == 0:
            return x, f, ends
        new, decrease = x + t * p, f - after
        g_new = slopes(new, after)
        s, y = new - x, g_new - g
        x, f, g = new, after, g_new
        if decrease <= small and ends:
            return x, f, True
        H, known = updated(H, s, y, known)
    return x, f, False


def searched(
    value: Callable[[Array], float], x: Array, p: Array, f: float, slope: float, t: float,
    *, longer: bool,
) -> tuple[float, float]:
    """Find a length t of the step along p that decreases f enough; (t, value), t = 0 if none does.

    With `longer` steps are doubled as long as that decreases f further.
    """
    found = value(x + t * p)
    while not found <= f + SUFFICIENT * t * slope:
        bend = found - f - t * slope  # the parabola through both values has its minimum there
        t *= min(0.5, max(0.1, -0.5 * t * slope / bend)) if np.isfinite(bend) else 0.1
        longer = False
        if t < SHORTEST:
            return 0.0, f
        found = value(x + t * p)
    while longer and t < LONGEST and (further := value(x + 2 * t * p)) < found:
        t, found = 2 * t, further
    return t, found


def updated(H: Array, s: Array, y: Array, known: bool) -> tuple[Array, bool]:
    """H after a step s that has changed the gradient by y, and whether it has learned anything."""
    curvature = float(s @ y)
    if not curvature > LEAST_CURVATURE * float(np.sqrt((s @ s) * (y @ y))):
        return np.eye(len(s)), False
    if not known:
        H = curvature / float(y @ y) * np.eye(len(s))
    Hy = H @ y
    cross = np.outer(Hy, s)
    H = H - (cross + cross.T) / curvature + (
        (1 + float(y @ Hy) / curvature) / curvature * np.outer(s, s))
    return H, True
