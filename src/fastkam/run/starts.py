"""Starting points and seeds of the chains."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_array, counted, plain_seed, real_array, shown


def starting_points(x0: Any, chains: int) -> NDArray[np.float64]:
    """x0 as (chains, d)."""
    if x0 is None:
        raise ValueError("x0 must be the point where the search begins, not None; or give prior, "
                         "from which to draw it")
    x0 = real_array("x0", x0)
    if x0.ndim not in (1, 2) or x0.size == 0:
        mend = f": write [{x0}] where d = 1, numpy.zeros(d) for zeros" if x0.ndim == 0 else ""
        raise ValueError(f"x0 must have shape (d,) or (chains, d), not {x0.shape}{mend}")
    if x0.ndim == 2 and len(x0) != chains:
        mend = ": give its transpose, x0.T" if x0.shape[1] == chains and len(x0) > 1 else (
            f": give chains={len(x0)}, or one point (d,) for all chains, or draws (m, n, d) from "
            "which to choose, as x0[None]")
        raise ValueError(f"x0 has {counted(len(x0), 'row')}, but there are {chains} chains{mend}")
    return check_array("x0", np.broadcast_to(x0, (chains, x0.shape[-1])),
                       shape=(chains, x0.shape[-1]))


def seed_sequence(seed: Any) -> np.random.SeedSequence:
    """A SeedSequence from anything that numpy accepts as a seed."""
    if isinstance(seed, np.random.SeedSequence):
        return copy.deepcopy(seed)  # its owner may spawn more children
    if isinstance(seed, np.random.Generator):
        seed = seed.bit_generator
    if isinstance(seed, np.random.BitGenerator):
        # advances the generator: each run from it gets its own stream, which its state determines
        words = np.random.Generator(seed).integers(2**32, size=8, dtype=np.uint32)
        return np.random.SeedSequence(words.tolist())
    try:
        return np.random.SeedSequence(plain_seed(seed))
    except (TypeError, ValueError):
        raise TypeError(
            "seed must be an integer from 0 on, None, or a numpy seed or generator, not "
            f"{shown(seed)}"
            + (": write numpy.random.default_rng(...)"
               if isinstance(seed, np.random.RandomState) else "")
        ) from None
