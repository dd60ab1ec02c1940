"""BlackJAX (Cabezas et al. 2024): samplers compiled by XLA; chains one after the other."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

from bench.peers.job import Contestant
from bench.peers.packages import xla

NAMES = ["blackjax", "jax", "numpy"]
STEPS = 5           # of a trajectory of HMC


def scanned(step, state, key, n):
    """Positions (n, d) and n statistics of a chain of `step`."""

    def one(state, key):
        state, info = step(key, state)
        return state, (state.position, getattr(info, "num_integration_steps", 1))

    state, found = jax.lax.scan(one, state, jax.random.split(key, n))
    return state, *found


def hamiltonian(algorithm, diagonal=True, **options):
    """NUTS or HMC: Stan's warm-up of step size and metric, target acceptance 0.8."""

    def prepare(density, x0, tune, draws, thin, seed):
        warmup = blackjax.window_adaptation(algorithm, density, is_mass_matrix_diagonal=diagonal,
                                            **options)

        def chain(key, x):
            first, second = jax.random.split(key)
            (state, parameters), info = warmup.run(first, x, num_steps=tune)
            step = algorithm(density, **parameters).step
            _, positions, steps = scanned(step, state, second, draws)
            warm = jnp.sum(info.info.num_integration_steps)
            return positions, warm + jnp.sum(steps)

        return xla.compiled(chain, x0, seed)

    return prepare


def random_walk(density, x0, tune, draws, thin, seed):
    """Steps of N(0, 2.38^2 / d I): BlackJAX has no adaptation of them."""
    d = x0.shape[1]
    algorithm = blackjax.normal_random_walk(density, 2.38 / np.sqrt(d) * jnp.ones(d))

    def chain(key, x):
        first, second = jax.random.split(key)
        state, *_ = scanned(algorithm.step, algorithm.init(x), first, tune)
        return scanned(algorithm.step, state, second, draws)[1], tune + draws

    return xla.compiled(chain, x0, seed)


def called_back(density, x0, tune, draws, thin, seed):
    """The random walk, on a Python function."""
    number = jax.ShapeDtypeStruct((), np.float64)

    def call(x):
        return np.asarray(density(np.asarray(x)))

    def wrapped(x):
        return jax.pure_callback(call, number, x)

    return random_walk(wrapped, x0, tune, draws, thin, seed)


SAMPLERS = {
    "random walk, callback": Contestant(called_back, "python", parts=("overhead",)),
    "random walk, not adapted, compiled": Contestant(random_walk, "jax", parts=("banana",)),
    "NUTS, compiled": Contestant(hamiltonian(blackjax.nuts), "jax", parts=("banana", "neal")),
    "HMC, 5 steps, compiled": Contestant(
        hamiltonian(blackjax.hmc, num_integration_steps=STEPS), "jax", parts=("neal",)),
}
