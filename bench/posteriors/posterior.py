"""The class of posteriors of the benches, and their registry."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Posterior:
    """A log density on the real line, with or without its gradient.

    Attributes
    ----------
    evaluate : callable
        evaluate(x, gradient) of x (d,) returns the log density, up to a constant, and where
        `gradient` is true the pair of it and its gradient (d,).
    x0 : array (d,)
        A start that a new user would choose.
    uses : tuple of bool
        Whether it is sampled without (False) and with (True) its gradient.
    tolerance : float
        By how many standard deviations means and standard deviations may be off: 0.1, and 0.15
        where tails are heavy or a funnel is narrow.
    """

    evaluate: Callable[[Any, bool], Any]
    x0: Any
    uses: tuple[bool, ...] = (False, True)
    tolerance: float = 0.1

    @property
    def d(self):
        return len(self.x0)

    def logp(self, x):
        return self.evaluate(x, False)

    def logp_and_grad(self, x):
        return self.evaluate(x, True)


POSTERIORS: dict[str, Posterior] = {}


def posterior(name, x0, **options):
    """Register the function below as a posterior; a number in place of x0 is that many zeros."""
    x0 = np.zeros(x0) if isinstance(x0, int) else np.asarray(x0, float)

    def register(evaluate):
        POSTERIORS[name] = Posterior(evaluate, x0, **options)
        return evaluate

    return register
