"""emcee: its EnsembleSampler, and all that uses one, with a sampler of fastkam for its walkers.

    from fastkam.hosts.emcee import EnsembleSampler     # in place of emcee's

The walkers are chains that learn as one. Everything else is emcee's own: states, blobs, backends,
pools, names of parameters and autocorrelation times.

Foreman-Mackey, D. et al. (2013). emcee: the MCMC hammer. Publications of the Astronomical Society
of the Pacific 125, 306-312.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastkam.arguments import import_extra

import_extra("emcee", "pip install fastkam[emcee]")

import emcee

from fastkam.hosts.emcee_move import AdaptiveMove

__all__ = ["AdaptiveMove", "EnsembleSampler", "replacing"]


class EnsembleSampler(emcee.EnsembleSampler):
    """emcee's sampler, whose walkers are moved by `AdaptiveMove` if no `moves` are given.

    All arguments, methods and attributes are emcee's.
    """

    def __init__(
        self, nwalkers: int, ndim: int, log_prob_fn: Any, pool: Any = None, moves: Any = None,
        *arguments: Any, **options: Any,
    ) -> None:
        super().__init__(nwalkers, ndim, log_prob_fn, pool,
                         AdaptiveMove() if moves is None else moves, *arguments, **options)


@contextmanager
def replacing() -> Iterator[None]:
    """A context in which ``emcee.EnsembleSampler`` is that of this module, for code that uses it.

    All threads see it.

    Examples
    --------
    >>> with replacing():                                                  # doctest: +SKIP
    ...     result = lmfit.minimize(residual, parameters, method="emcee")
    """
    original = emcee.EnsembleSampler
    emcee.EnsembleSampler = EnsembleSampler
    try:
        yield
    finally:
        emcee.EnsembleSampler = original
