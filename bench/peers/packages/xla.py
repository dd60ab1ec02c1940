"""Chains of JAX, compiled before the clock runs."""

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)


def compiled(chain, x0, seed, at_once=False):
    """A function that runs chain(key, x) -> (draws, evaluations) from each row of x0.

    One after another, or all at once, as one program (`jax.vmap`).
    """
    keys = jax.random.split(jax.random.key(seed), len(x0))
    if at_once:
        all_chains = jax.jit(jax.vmap(chain)).lower(keys, x0).compile()

        def together():
            draws, evaluations = jax.block_until_ready(all_chains(keys, x0))
            return np.array(draws), int(np.sum(evaluations))

        return together
    chain = jax.jit(chain).lower(keys[0], x0[0]).compile()

    def go():
        found = [jax.block_until_ready(chain(key, x)) for key, x in zip(keys, x0, strict=True)]
        draws, evaluations = (np.array(part) for part in zip(*found, strict=True))
        return draws, int(evaluations.sum())

    return go
