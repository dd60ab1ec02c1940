"""PyTorch: a log density with its gradient by automatic differentiation, for batches of points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_flag, import_extra, shown
from fastkam.interop.batches import is_single, padded, warn_single
from fastkam.interop.differentiable import OfFunction, check_number

ADVICE = "pip install fastkam[torch]"
MEND = "give its tensors and modules double precision, with .double()"


def from_torch(
    f: Callable[..., Any], *, vectorized: bool = True, compile: bool = False
) -> TorchDensity:
    """A log density in PyTorch, with its gradient by automatic differentiation.

    Parameters
    ----------
    f : callable
        ``f(x) -> tensor`` with one element, of a tensor x (d,) of float64; or a function of named
        parameters and of data, as `fastkam.Problem` takes it.
    vectorized : bool
        Whether all chains are evaluated in one call, by `torch.func.vmap`; otherwise each by
        itself, as is needed for functions that branch on values or change tensors in place.
    compile : bool
        Whether `f` is compiled by `torch.compile`, which needs a C++ compiler and takes seconds.

    Returns
    -------
    TorchDensity
        Accepted by `fastkam.sample` and, as a likelihood, by `fastkam.Problem`. In single precision
        it warns at the first call.

    Raises
    ------
    ImportError
        Without PyTorch.
    TypeError
        If `f` is not a function.

    Examples
    --------
    >>> import fastkam as fk
    >>> density = fk.from_torch(lambda x: -0.5 * (x**2).sum())             # doctest: +SKIP
    >>> result = fk.sample(density, [0.0, 0.0], seed=1)                    # doctest: +SKIP
    """
    if not callable(f):
        raise TypeError(f"f must be a function, not {shown(f)}")
    return TorchDensity(f, check_flag("vectorized", vectorized), check_flag("compile", compile))


class TorchDensity(OfFunction):
    """A function of PyTorch as a log density; made by `from_torch`."""

    def __init__(self, f: Callable[..., Any], vectorized: bool, compile: bool) -> None:
        self.torch: Any = import_extra("torch", ADVICE)
        self.f, self.vectorized, self.compile, self.checked = f, vectorized, compile, False
        made = self.torch.compile(f, dynamic=True) if compile else f

        def number(x: Any) -> Any:  # of a tensor with one element, whatever its shape
            found = made(x)
            check_number(f, found)
            if not isinstance(found, self.torch.Tensor):
                raise TypeError(f"{shown(f)} must return a tensor, not {shown(found)} of type "
                                f"{type(found).__name__}, which has no gradient")
            return found.reshape(())

        both = self.torch.func.grad_and_value(number)
        self.of_value = self.torch.func.vmap(number) if vectorized else number
        self.of_pair = self.torch.func.vmap(both) if vectorized else both

    def value(self, x: NDArray[np.float64]) -> Any:
        """The log density at x (d,), or at each row of X (k, d), (k,)."""
        with self.torch.no_grad():
            return self.seen(self.called(self.of_value, x))[: len(x) if self.vectorized else None]

    def pair(self, x: NDArray[np.float64]) -> Any:
        """The log density and its gradient."""
        gradient, logp = self.called(self.of_pair, x)
        rows = slice(len(x) if self.vectorized else None)
        return self.seen(logp)[rows], gradient.detach().numpy().astype(float)[rows]

    def called(self, f: Callable[..., Any], x: NDArray[np.float64]) -> Any:
        """Return f at a tensor of x; its errors suggest what may help."""
        points = padded(x) if self.vectorized and self.compile else x
        try:
            return f(self.torch.tensor(points))
        except RuntimeError as error:
            if "dtype" in str(error):
                error.add_note(f"x is a tensor of float64: {MEND}")
            elif self.vectorized:
                error.add_note("vectorized=False calls the function for each point by itself")
            raise

    def seen(self, logp: Any) -> Any:
        """A log density as float64, with a warning at the first that is not."""
        if not self.checked:
            self.checked = True
            if is_single(logp):
                warn_single("PyTorch", MEND)
        array = logp.detach().numpy().astype(float)
        return array if self.vectorized else array.reshape(1)

    def of(self, f: Callable[..., Any]) -> TorchDensity:
        return TorchDensity(f, self.vectorized, self.compile)

    def __reduce__(self) -> Any:
        return TorchDensity, (self.f, self.vectorized, self.compile)

    def __repr__(self) -> str:
        return f"<TorchDensity of {getattr(self.f, '__name__', 'a function')}>"
