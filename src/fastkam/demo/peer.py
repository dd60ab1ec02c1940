"""emcee, where it is installed, on the density of a demonstration."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

WALKERS = 32  # as in emcee's first example
SPREAD = 0.1  # sd of the walkers around the start
ABSENT = "emcee is not installed: with it (pip install emcee) its result stands beside ours."


@dataclass(frozen=True)
class Peer:
    """Draws (walkers, n, d) of the second half of a run of emcee, and its seconds."""

    draws: np.ndarray
    seconds: float


def emcee_run(logp, start, evaluations, seed):
    """A `Peer` with as many evaluations, of walkers around `start`; None without emcee."""
    try:
        import emcee
    except ImportError:
        return None
    rng = np.random.RandomState(seed)
    first = np.asarray(start) + SPREAD * rng.standard_normal((WALKERS, len(start)))
    sampler = emcee.EnsembleSampler(WALKERS, len(start), logp)
    state = emcee.State(first, random_state=rng.get_state())
    begin = perf_counter()
    sampler.run_mcmc(state, max(2, evaluations // WALKERS - 1))
    seconds = perf_counter() - begin
    chain = np.moveaxis(sampler.get_chain(), 0, 1)
    return Peer(chain[:, chain.shape[1] // 2 :], seconds)


def about(peer):
    """Settings of the run, as a text."""
    if peer is None:
        return ABSENT
    return (f"emcee: {WALKERS} walkers around the same start, as many evaluations, the first half "
            "left out.")
