"""Chains of JAX, compiled before the clock runs."""

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)


def compiled(chain, x0, seed):
    """A function that runs chain(key, x) -> (draws, evaluations) from each row of x0 in turn."""
    chain = jax.jit(chain).lower(jax.random.key(0), x0[0]).compile()
    keys = jax.random.split(jax.random.key(seed), len(x0))

    def go():
        found = [jax.block_until_ready(chain(key, x)) for key, x in zip(keys, x0, strict=True)]
        draws, evaluations = (np.array(part) for part in zip(*found, strict=True))
        return draws, int(evaluations.sum())

    return go
