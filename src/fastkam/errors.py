"""The exception and the warnings of a run."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fastkam.result import Result


class SamplingError(RuntimeError):
    """A run that could not go on.

    Attributes
    ----------
    result : Result or None
        The draws made until then; ``result.resume()`` goes on from the very evaluation that
        failed, once its cause is fixed. None where the search before the run has failed.
    chain, step : int
        Where it happened; the step counts from 0 and includes warm-up.
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
    """Something about a run that its user should know.

    Attributes
    ----------
    result : Result or None
        The draws of the run: where warnings are made errors, they are here. What was found is in
        its ``.warnings``.
    """

    def __init__(self, message: str, *, result: Result | None = None) -> None:
        super().__init__(message)
        self.result = result


class ConvergenceWarning(SamplingWarning):
    """The one thing to know of a run is that it was too short.

    R-hat is above 1.01, an effective sample size below 400, a standard deviation hardly known, or
    what the sampler learns had not settled, or a rule ended it soon; and nothing else was found.
    """


def warn(warning: SamplingWarning) -> None:
    """Show a warning at the line, outside of this package, from which it was called."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and is_within(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def is_within(module: str) -> bool:
    """Whether a module of this name is part of this package."""
    return module.partition(".")[0] == __name__.partition(".")[0]
