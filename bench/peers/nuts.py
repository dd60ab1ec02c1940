"""NUTS of fastkam, nutpie and BlackJAX on the same densities, in the same run.

    python -m bench.peers.nuts [--quick]

nutpie gets the very compiled function that fastkam samples; BlackJAX the same density in JAX,
compiled by XLA, compilation left out of the times. Each starts at one point, with 1000 steps of
warm-up and target acceptance 0.8, chains one after the other. Needs nutpie, blackjax and the
folder FASTKAM_DATA.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import nutpie

import fastkam as fk
from bench.papers.record import heading, table, write
from bench.peers.nutpie_target import Model

TUNE, CHAINS = 1000, 4
COLUMNS = ["target", "sampler", "metric", "seconds", "µs a gradient", "of which the density",
           "steps a draw", "gradients of warm-up", "min ESS", "min ESS / 1000 gradients",
           "min ESS / s"]

jax.config.update("jax_enable_x64", True)


def start(target):
    """Near 0, where the gradient of one target vanishes, which nutpie takes for an error."""
    return 0.1 * np.random.default_rng(1).standard_normal(target.dim)


def neal():
    """(fastkam's target, the same in JAX)"""
    s = jnp.arange(1, 101) / 100
    return fk.targets.neal_gaussian(), lambda w: -0.5 * jnp.sum((w / s) ** 2)


def logistic(name):
    target = fk.targets.logistic_regression(name)
    X, t = jnp.asarray(target.X), jnp.asarray(target.labels)

    def logp(w):
        return -0.5 * w @ w + jnp.sum(jax.nn.log_sigmoid(t * (X @ w)))

    return target, logp


def bare(target, calls):
    """Seconds of one gradient of the compiled density: a run that does hardly anything else."""
    sampler = fk.HMC(metric="fixed", step_size=1e-6, n_steps=1000, jitter=0.0)
    run = {"sampler": sampler, "tune": 0, "chains": 1, "progress": False, "check_gradient": False}
    result = fk.sample(target, start(target), draws=max(1, calls // 1000), **run)
    return result.seconds / result.evaluations


def row(name, sampler, metric, seconds, draws, steps, warm, density):
    ess = fk.diagnostics.ess_bulk(draws).min()
    gradients = steps.sum()
    a_gradient = seconds / (gradients + warm)
    return [name, sampler, metric, f"{seconds:.3g}", f"{1e6 * a_gradient:.3g}",
            f"{100 * density / a_gradient:.0f} %", f"{steps.mean():.3g}", f"{warm:,}",
            f"{ess:,.0f}", f"{1000 * ess / gradients:.3g}", f"{ess / seconds:,.0f}"]


def with_fastkam(name, target, density, draws, seed):
    for metric in ("low-rank", "dense", "diagonal"):
        result = fk.sample(target, start(target), sampler=fk.NUTS(metric=metric),
                           draws=draws, tune=TUNE, chains=CHAINS, seed=seed, threads=1,
                           progress=False)
        steps = result.stats["n_steps"]
        yield row(name, "fastkam", metric, result.seconds, result.draws, steps,
                  result.evaluations - int(steps.sum()), density)


def with_nutpie(name, target, density, draws, seed):
    model = Model(target, start(target))
    for metric in ("low-rank", "diagonal"):
        begun = time.perf_counter()
        trace = nutpie.sample(model, draws=draws, tune=TUNE, chains=CHAINS, cores=1, seed=seed,
                              progress_bar=False,
                              low_rank_modified_mass_matrix=metric == "low-rank")
        seconds = time.perf_counter() - begun
        yield row(name, "nutpie", metric, seconds, trace.posterior["x"].values,
                  trace.sample_stats["n_steps"].values,
                  int(trace.warmup_sample_stats["n_steps"].sum()), density)


def with_blackjax(name, logp, x0, density, draws, seed):
    import blackjax

    for metric in ("diagonal", "dense"):
        warmup = blackjax.window_adaptation(blackjax.nuts, logp,
                                            is_mass_matrix_diagonal=metric == "diagonal")

        def chain(key, warmup=warmup):
            first, second = jax.random.split(key)
            (state, parameters), info = warmup.run(first, x0, num_steps=TUNE)
            kernel = blackjax.nuts(logp, **parameters)

            def step(state, key):
                state, info = kernel.step(key, state)
                return state, (state.position, info.num_integration_steps)

            _, (draws_, steps) = jax.lax.scan(step, state, jax.random.split(second, draws))
            return draws_, steps, jnp.sum(info.info.num_integration_steps)

        compiled = jax.jit(chain).lower(jax.random.key(0)).compile()
        begun = time.perf_counter()
        chains = [jax.block_until_ready(compiled(key))
                  for key in jax.random.split(jax.random.key(seed), CHAINS)]
        seconds = time.perf_counter() - begun
        draws_, steps, warm = (np.array(part) for part in zip(*chains, strict=True))
        yield row(name, "BlackJAX", metric, seconds, draws_, steps, int(warm.sum()), density)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the draws, no caravan")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rows = []
    for name, (target, logp), draws in (
            ("Neal", neal(), 4000), ("German", logistic("german"), 4000),
            ("Caravan", logistic("caravan"), 500)):
        if options.quick and name == "Caravan":
            continue
        draws = draws // 10 if options.quick else draws
        density = bare(target, 10**6 if name == "Neal" else 10**4)
        for run in (with_fastkam(name, target, density, draws, options.seed),
                    with_nutpie(name, target, density, draws, options.seed),
                    with_blackjax(name, logp, start(target), density, draws, options.seed)):
            for one in run:
                print(*one, flush=True)
                rows.append(one)
    text = heading("NUTS beside its peers", "python -m bench.peers.nuts", options) + (
        f"\n{CHAINS} chains one after the other, {TUNE} steps of warm-up, target acceptance 0.8. "
        "ESS: bulk, the least over coordinates, of the draws; gradients: of the draws alone in "
        "ESS / gradients, with warm-up in µs a gradient. \"Of which the density\" compares with "
        "the compiled density alone, which nutpie calls too.\n\n") + table(COLUMNS, rows)
    if options.quick:
        print(text)
    else:
        write("bench/peers/results/nuts.md", text)


if __name__ == "__main__":
    main()
