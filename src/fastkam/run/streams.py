"""Random numbers of a run beside those of its chains: each use has a stream of its own.

A stream belongs to a child of the run's seed, after the children of all chains.
"""

from __future__ import annotations

from enum import IntEnum, unique

import numpy as np


@unique
class Stream(IntEnum):
    """Uses of random numbers, each with the number of a child of the seed."""

    SEARCH = 2**32 - 1
    AFTER = 2**32 - 2  # resampling after the run, and other uses of its result
    VERDICT = 2**32 - 3
    DRAWN_STARTS = 2**32 - 4  # one more number for each chain
    PRIOR_STARTS = 2**32 - 5  # one more number for each chain
    MODEL_STARTS = 2**32 - 6
    EVIDENCE = 2**32 - 7
    IMPLIED = 2**32 - 8
    BEYOND = 2**32 - 9
    LEFT_OUT = 2**32 - 10


def own_seed(seed: np.random.SeedSequence, stream: Stream, *more: int) -> np.random.SeedSequence:
    """The seed of a stream; `more` numbers tell apart the streams of chains."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, int(stream), *more),
                                  pool_size=seed.pool_size)


def generator_of(seed: np.random.SeedSequence, stream: Stream, *more: int) -> np.random.Generator:
    """The generator of a stream."""
    return np.random.default_rng(own_seed(seed, stream, *more))
