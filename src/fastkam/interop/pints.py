"""PINTS: its log densities, with their sensitivities as the gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import shown
from fastkam.interop.differentiable import Differentiable


def from_pints(log_pdf: Any) -> PintsDensity:
    """A PINTS log density: LogPDF, LogLikelihood, LogPrior or LogPosterior.

    `fastkam.sample` and `fastkam.Problem` take such an object directly. Chains start at draws from
    the prior of a LogPosterior, or of a LogPrior, if `x0` is not given.

    Parameters
    ----------
    log_pdf : pints.LogPDF

    Raises
    ------
    TypeError
        If it is not such an object.
    """
    if isinstance(log_pdf, type) or not all(
            hasattr(log_pdf, name) for name in ("n_parameters", "evaluateS1", "__call__")):
        raise TypeError(f"log_pdf must be a log density of PINTS, not {shown(log_pdf)}")
    return PintsDensity(log_pdf)


class PintsDensity(Differentiable):
    """A PINTS log density; made by `from_pints`.

    Parameters
    ----------
    log_pdf : pints.LogPDF
    differentiable : bool, optional
        Whether `evaluateS1` works; by default one call shows it.
    """

    def __init__(self, log_pdf: Any, differentiable: bool | None = None) -> None:
        self.log_pdf = log_pdf
        self.dim = d = int(log_pdf.n_parameters())
        prior = getattr(log_pdf, "log_prior", None)
        self.prior = prior() if callable(prior) else log_pdf if hasattr(log_pdf, "sample") else None
        self.draw = None if self.prior is None else self.draws
        self.differentiable = (self.is_differentiable(d) if differentiable is None
                               else differentiable)
        self.pair = self.with_gradient if self.differentiable else None

    def is_differentiable(self, d: int) -> bool:
        """Whether the model has derivatives, without which `evaluateS1` fails at any point (d,)."""
        x = np.ones(d) if self.prior is None else self.draws(1, 0)[0]
        try:
            self.with_gradient(x)
        except (AttributeError, NotImplementedError):  # of models and densities that have none
            return False
        except Exception:  # the model may fail at that point
            pass
        return True

    def value(self, x: NDArray[np.float64]) -> float:
        """The log density at x (d,)."""
        return float(self.log_pdf(x.copy()))

    def with_gradient(self, x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The log density and its gradient (d,), by `evaluateS1`."""
        logp, gradient = self.log_pdf.evaluateS1(x.copy())
        return float(logp), np.asarray(gradient, dtype=float).reshape(-1)

    def draws(self, n: int, seed: Any) -> NDArray[np.float64]:
        """Draws (n, d) from the prior: PINTS draws by NumPy's global generator, which is restored.
        """
        assert self.prior is not None
        before = np.random.get_state()  # noqa: NPY002
        try:
            np.random.seed(seed)  # noqa: NPY002
            return np.asarray(self.prior.sample(n), dtype=float).reshape(n, -1)
        finally:
            np.random.set_state(before)  # noqa: NPY002

    def __reduce__(self) -> Any:
        return PintsDensity, (self.log_pdf, self.differentiable)

    def __repr__(self) -> str:
        return f"<PintsDensity of {type(self.log_pdf).__name__}, {self.dim} parameters>"
