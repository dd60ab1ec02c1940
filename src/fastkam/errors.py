"""The exception and the warnings of a run."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fastkam.result import Result
    from fastkam.testing import Calibration


class SamplingError(RuntimeError):
    """The error of a run that cannot continue.

    Attributes
    ----------
    result : Result or None
        The draws made before the error; once its cause is fixed, ``result.resume()`` continues
        with the evaluation that failed. None if the search before the run has failed.
    chain, step : int
        The chain and the step at which it happened; steps count from 0 and include warm-up.
    x : ndarray, shape (d,)
        The point that was being evaluated.
    """

    def __init__(
        self,
        message: str,
        *,
        result: Result | None = None,
        chain: int | None = None,
        step: int | None = None,
        x: NDArray[np.float64] | None = None,
    ) -> None:
        super().__init__(message)
        self.result, self.chain, self.step, self.x = result, chain, step, x


class SamplingWarning(UserWarning):
    """A warning about a run, for example that chains disagree.

    Attributes
    ----------
    result : Result, fastkam.testing.Calibration or None
        The draws of the run, which are not lost if warnings are turned into errors. Its
        ``.warnings`` has the findings. For a calibration that ended early, its fits.
    """

    def __init__(self, message: str, *, result: Result | Calibration | None = None) -> None:
        super().__init__(message)
        self.result = result


class ConvergenceWarning(SamplingWarning):
    """The run was too short, and nothing else is wrong with it.

    R-hat is above 1.01, an effective sample size is below 400, a standard deviation is imprecise,
    the sampler's adaptation had not settled, or a stop rule ended the run early.
    """


def warn(warning: SamplingWarning) -> None:
    """Show a warning at the line, outside of this package, from which it was called."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and is_within(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    try:
        warnings.warn(warning, stacklevel=level)
    except ValueError:
        if not is_stderr_closed():
            raise


def is_stderr_closed() -> bool:
    """Whether a line for standard error is lost, with a ValueError, because it has been closed."""
    return bool(getattr(sys.stderr, "closed", False))


def is_within(module: str) -> bool:
    """Whether a module of this name is part of this package."""
    return module.partition(".")[0] == __name__.partition(".")[0]
