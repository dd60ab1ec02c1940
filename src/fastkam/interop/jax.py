"""JAX: a log density compiled with its gradient, for batches of points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_flag, import_extra, shown
from fastkam.interop.batches import is_single, padded, warn_single
from fastkam.interop.differentiable import OfFunction, check_number

ADVICE = "pip install fastkam[jax]"
MEND = 'jax.config.update("jax_enable_x64", True) at the start of the program'


def from_jax(f: Callable[..., Any], *, vectorized: bool = True) -> JaxDensity:
    """A log density in JAX, with its gradient by automatic differentiation.

    Parameters
    ----------
    f : callable
        ``f(x) -> number`` of an array x (d,), in operations that JAX can trace; or a function of
        named parameters and of data, as `fastkam.Problem` takes it.
    vectorized : bool
        Whether all chains are evaluated in one call, by `jax.vmap`; otherwise each by itself.

    Returns
    -------
    JaxDensity
        Accepted by `fastkam.sample` and, as a likelihood, by `fastkam.Problem`. Value and gradient
        are compiled by `jax.jit` when they are first called, and then for each power of two of
        points. In single precision it warns at the first call. A process that receives a density in
        double precision computes in double precision from then on.

    Raises
    ------
    ImportError
        Without JAX.
    TypeError
        If `f` is not a function.

    Examples
    --------
    >>> import fastkam as fk
    >>> import jax.numpy as jnp                                            # doctest: +SKIP
    >>> density = fk.from_jax(lambda x: -0.5 * jnp.sum(x**2))              # doctest: +SKIP
    >>> result = fk.sample(density, [0.0, 0.0], seed=1)                    # doctest: +SKIP
    """
    if not callable(f):
        raise TypeError(f"f must be a function, not {shown(f)}")
    return JaxDensity(f, check_flag("vectorized", vectorized))


class JaxDensity(OfFunction):
    """A function of JAX as a log density; made by `from_jax`."""

    def __init__(self, f: Callable[..., Any], vectorized: bool) -> None:
        self.jax = jax = import_extra("jax", ADVICE)
        self.f, self.vectorized, self.checked = f, vectorized, False

        def number(x: Any) -> Any:  # of an array with one element, whatever its shape
            made = f(x)
            check_number(f, made)
            return jax.numpy.reshape(made, ())

        both = jax.value_and_grad(number)
        self.of_value = jax.jit(jax.vmap(number) if vectorized else number)
        self.of_pair = jax.jit(jax.vmap(both) if vectorized else both)

    def value(self, x: NDArray[np.float64]) -> Any:
        """The log density at x (d,), or at each row of X (k, d), (k,)."""
        if not self.vectorized:
            return self.seen(self.of_value(x))
        return self.seen(self.of_value(padded(x)))[: len(x)]

    def pair(self, x: NDArray[np.float64]) -> Any:
        """The log density and its gradient."""
        if not self.vectorized:
            logp, gradient = self.of_pair(x)
            return self.seen(logp), np.asarray(gradient, dtype=float)
        logp, gradient = self.of_pair(padded(x))
        return self.seen(logp)[: len(x)], np.asarray(gradient, dtype=float)[: len(x)]

    def seen(self, logp: Any) -> Any:
        """A log density as float64, with a warning at the first that is not."""
        if not self.checked:
            self.checked = True
            if is_single(logp):
                warn_single("JAX", MEND)
        return np.asarray(logp, dtype=float) if self.vectorized else float(logp)

    def of(self, f: Callable[..., Any]) -> JaxDensity:
        return JaxDensity(f, self.vectorized)

    def __reduce__(self) -> Any:
        return received, (self.f, self.vectorized, self.jax.config.jax_enable_x64)

    def __repr__(self) -> str:
        return f"<JaxDensity of {getattr(self.f, '__name__', 'a function')}>"


def received(f: Callable[..., Any], vectorized: bool, double: bool) -> JaxDensity:
    """A density from another process, in that process's precision if it was double."""
    made = JaxDensity(f, vectorized)
    if double:
        made.jax.config.update("jax_enable_x64", True)
    return made
