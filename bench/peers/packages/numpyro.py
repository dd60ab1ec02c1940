"""NumPyro (Phan et al. 2019): NUTS and HMC compiled by XLA; chains in turn, or at once by `vmap`.
"""

import jax
from numpyro.infer import HMC, NUTS

from bench.peers.job import Contestant
from bench.peers.packages import xla

NAMES = ["numpyro", "jax", "numpy"]


def hamiltonian(algorithm, at_once=False, **options):
    def prepare(density, x0, tune, draws, thin, seed):
        kernel = algorithm(potential_fn=lambda x: -density(x), **options)

        def chain(key, x):
            state = kernel.init(key, tune, init_params=x, model_args=(), model_kwargs={})

            def one(state, _):
                state = kernel.sample(state, (), {})
                return state, (state.z, state.num_steps)

            state, (_, warm) = jax.lax.scan(one, state, length=tune)
            _, (positions, steps) = jax.lax.scan(one, state, length=draws)
            return positions, warm.sum() + steps.sum()

        return xla.compiled(chain, x0, seed, at_once)

    return prepare


SAMPLERS = {
    "NUTS, compiled": Contestant(hamiltonian(NUTS), "jax", parts=("banana", "neal")),
    "NUTS, compiled, vmap": Contestant(
        hamiltonian(NUTS, at_once=True), "jax", parts=("banana", "neal")),
    "HMC, 5 steps, compiled": Contestant(
        hamiltonian(HMC, num_steps=5, trajectory_length=None), "jax", parts=("neal",)),
}
