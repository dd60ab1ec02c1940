"""fastkam: a run of `fk.sample`. To compare another sampler, add it to a list at the end."""

import fastkam as fk
from bench.peers.job import Contestant
from bench.samplers import tempered

NAMES = ["fastkam", "numpy"]


def sampling(sampler, vectorized=False):
    def prepare(density, x0, tune, draws, thin, seed):
        def go():
            result = fk.sample(
                density, x0, sampler=sampler, tune=tune, draws=draws // thin, thin=thin,
                chains=len(x0), seed=seed, vectorized=vectorized, threads=1, progress=False,
                keep_warmup=False, check_gradient=False)
            return result.draws, result.evaluations

        return go

    return prepare


def contestant(sampler, kind="python", parts=("banana",), **options):
    return Contestant(sampling(sampler, vectorized=kind == "many"), kind, parts=parts,
                      thins=True, **options)


OVERHEAD = {
    "rwm": contestant("rwm", chains=1, parts=("overhead",)),
    "nuts, one chain": contestant("nuts", "gradient", chains=1, parts=("overhead",)),
    **{f"{name}, 64 chains": contestant(name, "many", chains=64, at_once=True, parts=("overhead",))
       for name in ("rwm", "ram")},
}
PYTHON = {name: contestant(name) for name in ("auto", "kam", "pt", "jumps")} | {
    "ram": contestant("ram", parts=("overhead", "banana")),
    "ram, vectorized": contestant("ram", "many", chains=64, at_once=True),
    "nuts": contestant("nuts", "gradient"),
}
COMPILED = {f"{name}, compiled": contestant(name, "compiled")
            for name in ("auto", "ram", "kam", "pt", "jumps")} | {
    "jumps around pt, compiled": contestant(tempered(gradient=False), "compiled"),
    "nuts, compiled": contestant("nuts", "compiled", parts=("banana", "neal")),
    "hmc, 5 steps, compiled": contestant(fk.HMC(n_steps=5), "compiled", parts=("neal",)),
}
SAMPLERS = OVERHEAD | PYTHON | COMPILED
