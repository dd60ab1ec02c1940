"""BlackJAX (Cabezas et al. 2024): compiled by XLA; chains in turn, or at once by `vmap`."""

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


def hamiltonian(algorithm, diagonal=True, at_once=False, **options):
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

        return xla.compiled(chain, x0, seed, at_once)

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


def adapted_walk(density, d, tune):
    """chain(key, x) of `tune` steps of warm-up, which return the point and the factor learned.

    BlackJAX adapts no random walk: its steps have here the covariance of the chain so far and a
    scale that leads to an acceptance of 0.234, both with the gain (1 + n)^(-0.6).
    """

    def step_with(cov, log_s):
        factor = jnp.exp(log_s) * jnp.linalg.cholesky(cov)
        return factor, blackjax.normal_random_walk(density, factor).step

    def one(carry, at):
        state, mean, cov, log_s = carry
        key, n = at
        state, info = step_with(cov, log_s)[1](key, state)
        gain = (1.0 + n) ** -0.6
        away = state.position - mean
        learned = (mean + gain * away, cov + gain * (jnp.outer(away, away) - cov),
                  log_s + gain * (jnp.minimum(info.acceptance_rate, 1.0) - 0.234))
        return (state, *learned), None

    def warm_up(key, x):
        first = (blackjax.normal_random_walk(density, jnp.eye(d)).init(x), x, jnp.eye(d),
                 jnp.log(2.38 / np.sqrt(d)))
        numbers = jnp.arange(1.0, tune + 1)
        (state, _, cov, log_s), _ = jax.lax.scan(one, first, (jax.random.split(key, tune), numbers))
        return state, step_with(cov, log_s)[1]

    return warm_up


def adapted(density, x0, tune, draws, thin, seed):
    """A random walk that is adapted in warm-up; all chains at once."""
    warm_up = adapted_walk(density, x0.shape[1], tune)

    def chain(key, x):
        first, second = jax.random.split(key)
        state, step = warm_up(first, x)
        return scanned(step, state, second, draws)[1], tune + draws

    return xla.compiled(chain, x0, seed, at_once=True)


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
    "random walk, adapted, compiled, vmap": Contestant(
        adapted, "jax", chains=64, parts=("banana",)),
    "NUTS, compiled": Contestant(hamiltonian(blackjax.nuts), "jax", parts=("banana", "neal")),
    "NUTS, compiled, vmap": Contestant(
        hamiltonian(blackjax.nuts, at_once=True), "jax", parts=("banana", "neal")),
    "HMC, 5 steps, compiled": Contestant(
        hamiltonian(blackjax.hmc, num_integration_steps=STEPS), "jax", parts=("neal",)),
    "HMC, 5 steps, compiled, vmap": Contestant(
        hamiltonian(blackjax.hmc, at_once=True, num_integration_steps=STEPS), "jax",
        parts=("neal",)),
}
