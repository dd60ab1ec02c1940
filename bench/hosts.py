"""Evaluations for an independent draw, inside other packages: their default and fastkam.

    python -m bench.hosts [--quick]

Each package runs an example of its own documentation (or of its kind), by its default sampler and
by that of `fastkam.hosts`. Given is the number of evaluations of the density, those of warm-up, of
searches and of what is discarded among them, over the bulk effective sample size of the worst
parameter; medians over seeds, and the range. Packages that are missing are left out.
"""

import contextlib
import importlib.util
import io
import logging
import os
import tempfile
import warnings
from unittest import mock

import numpy as np

import fastkam as fk
from bench.papers.record import heading, options, table, write
from fastkam.diagnostics import ess_bulk


class Counted:
    """A function that counts its calls."""

    def __init__(self, f):
        self.f, self.calls = f, 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.f(*args, **kwargs)


def worst(draws):
    """The bulk effective sample size of the worst coordinate of draws (chains, draws, d)."""
    return float(np.min(ess_bulk(np.ascontiguousarray(draws))))


# ---- one function for each package: {label: (evaluations, effective sample size)} ----


def emcee(seed, ours):
    """Its first example, a Gaussian in 5 dimensions: 32 walkers, a quarter discarded."""
    import emcee

    import fastkam.hosts.emcee as host

    np.random.seed(seed)
    ivar = 1.0 / np.random.rand(5)
    f = Counted(lambda x: -0.5 * np.sum(ivar * x**2))
    sampler = (host if ours else emcee).EnsembleSampler(32, 5, f)
    sampler.run_mcmc(np.random.randn(32, 5), 4000)
    return f.calls, worst(sampler.get_chain(discard=1000).transpose(1, 0, 2))


def lmfit(seed, ours):
    """Its example of two exponentials: 100 walkers, 300 of 1000 steps discarded."""
    import lmfit

    import fastkam.hosts.emcee as host

    rng = np.random.default_rng(0)
    x = np.linspace(1, 10, 250)
    y = 3.0 * np.exp(-x / 2) - 5.0 * np.exp(-(x - 0.1) / 10.0) + 0.1 * rng.normal(size=x.size)
    p = lmfit.Parameters()
    p.add_many(("a1", 4.0), ("a2", 4.0), ("t1", 3.0), ("t2", 3.0, True))

    def residual(p):
        v = p.valuesdict()
        return v["a1"] * np.exp(-x / v["t1"]) + v["a2"] * np.exp(-(x - 0.1) / v["t2"]) - y

    best = lmfit.minimize(residual, p, method="nelder", nan_policy="omit").params
    best.add("__lnsigma", value=np.log(0.1), min=np.log(0.001), max=np.log(2))
    f = Counted(residual)
    with host.replacing() if ours else contextlib.nullcontext():
        fit = lmfit.minimize(f, best, method="emcee", nan_policy="omit", burn=300, steps=1000,
                             is_weighted=False, progress=False, seed=seed)
    return f.calls, worst(fit.chain.transpose(1, 0, 2))


def pymc(seed, ours):
    """Eight schools, not centered; evaluations with gradients of NUTS, and of any kind of ours."""
    import pymc as pm

    import fastkam.hosts.pymc as host

    y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    error = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    plain = fk.sample
    with pm.Model():
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        z = pm.Normal("z", shape=8)
        pm.Normal("y", mu + tau * z, error, observed=y)
        if ours:
            made = []
            with mock.patch.object(fk, "sample", lambda *a, **k: made.append(plain(*a, **k)) or (
                    made[0])):
                host.sample(random_seed=seed, progressbar=False)
            result = made[0]
            return result.evaluations, worst(result.draws)
        found = pm.sample(random_seed=seed, progressbar=False, cores=1, chains=4,
                          discard_tuned_samples=False)
    steps = sum(int(group["n_steps"].sum()) for group in (found.sample_stats,
                                                          found.warmup_sample_stats))
    draws = [found.posterior[name].to_numpy().reshape(4, 1000, -1) for name in ("mu", "tau", "z")]
    return steps, worst(np.concatenate(draws, axis=2))


def bilby(seed, ours):
    """Its linear regression; the effective sample size of nested draws is that of their weights."""
    import bilby

    rng = np.random.default_rng(123)
    x = np.linspace(0, 10, 100)
    likelihood = bilby.core.likelihood.GaussianLikelihood(
        x, 0.5 * x + 0.2 + rng.normal(0, 1, 100), lambda x, m, c: m * x + c, 1.0)
    f = likelihood.log_likelihood = Counted(likelihood.log_likelihood)
    priors = {"m": bilby.core.prior.Uniform(0, 5, "m"), "c": bilby.core.prior.Uniform(-2, 2, "c")}
    with tempfile.TemporaryDirectory() as folder:
        chosen = {"sampler": "fastkam", "progress": False} if ours else {"sampler": "dynesty"}
        result = bilby.run_sampler(likelihood, priors, outdir=folder, label="a", seed=seed,
                                   save=False, **chosen)
    if ours:
        return f.calls, worst(result.walkers)
    w = result.nested_samples["weights"].to_numpy()
    return f.calls, w.sum() ** 2 / (w**2).sum()


def pints(seed, ours):
    """Its first example of MCMC, logistic growth: 3 chains, 1000 of 4000 states discarded."""
    import pints
    import pints.toy

    import fastkam.hosts.pints as host

    model = pints.toy.LogisticModel()
    times = np.linspace(0, 1000, 400)
    values = model.simulate([0.015, 500], times) + np.random.default_rng(1).normal(0, 10, 400)
    posterior = pints.LogPosterior(
        pints.GaussianLogLikelihood(pints.SingleOutputProblem(model, times, values)),
        pints.UniformLogPrior([0.01, 400, 1], [0.02, 600, 100]))
    right = np.array([0.015, 500, 10.0])
    np.random.seed(seed)
    controller = pints.MCMCController(posterior, 3, [right * 1.01, right * 0.9, right * 1.1],
                                      method=host.method() if ours else None)
    controller.set_max_iterations(4000)
    controller.set_log_to_screen(False)
    chains = controller.run()
    return controller.n_evaluations(), worst(chains[:, 1000:])


def pypesto(seed, ours):
    """A conversion reaction, two logarithmic rates: 10 000 samples, its own burn-in."""
    import pypesto
    from pypesto import sample

    import fastkam.hosts.pypesto as host

    t, calls = np.linspace(0, 10, 11), []
    rng = np.random.default_rng(2)

    def course(p):
        k1, k2 = np.exp(p)
        return k1 / (k1 + k2) * (1 - np.exp(-(k1 + k2) * t))
    y = course(np.log([0.8, 0.6])) + 0.02 * rng.normal(size=11)

    def count(p):
        calls.append(p)  # pyPESTO copies the objective
        return 0.5 * np.sum((course(p) - y) ** 2) / 0.02**2
    problem = pypesto.Problem(pypesto.Objective(fun=count), lb=[-5, -5], ub=[5, 5])
    np.random.seed(seed)
    sampler = host.FastkamSampler(seed=seed) if ours else sample.AdaptiveMetropolisSampler()
    result = sample.sample(problem, 10_000, sampler, x0=np.zeros(2))
    if ours:
        return len(calls), worst(sampler.result.draws)
    burn = sample.geweke_test(result)
    return len(calls), worst(result.sample_result.trace_x[:, burn:])


def cobaya(seed, ours):
    """Its first example, a Gaussian with a bound; until the sampler stops by itself."""
    from cobaya.run import run

    P = np.linalg.inv([[0.1, 0.05], [0.05, 0.2]])

    def logp(a, b):
        x = np.array([a - 0.2, b])
        return -0.5 * x @ P @ x
    f = Counted(logp)
    method = {"fastkam.hosts.cobaya.Fastkam": {"seed": seed, "progress": False}} if ours else {
        "mcmc": {"seed": seed}}
    info = {"likelihood": {"g": {"external": lambda a, b: f(a, b)}},
            "params": {"a": {"prior": {"min": -0.5, "max": 3}, "proposal": 0.5},
                       "b": {"prior": {"dist": "norm", "loc": 0, "scale": 1}, "ref": 0,
                             "proposal": 0.5}},
            "sampler": method}
    _, sampler = run(info)
    if ours:
        return f.calls, worst(sampler.result.draws)
    chain = sampler.products()["sample"].skip_samples(0.3)
    x = np.repeat(chain[["a", "b"]].to_numpy(), chain["weight"].to_numpy().astype(int), axis=0)
    return f.calls, worst(x[None])


COLUMNS = ["package", "example", "its default", "evaluations a draw", "fastkam",
           "evaluations a draw", "ratio"]
HOSTS = {"emcee": (emcee, "stretch move", "am, shared"), "lmfit": (lmfit, "emcee's stretch move",
                                                                    "am, shared"),
         "pymc": (pymc, "NUTS", "auto"), "bilby": (bilby, "dynesty", "auto"),
         "pints": (pints, "Haario-Bardenet", "ram"),
         "pypesto": (pypesto, "adaptive Metropolis", "auto"), "cobaya": (cobaya, "mcmc", "auto")}


def quiet(run, seed, ours):
    """Return the result of `run`, without the packages' output."""
    logging.disable(logging.WARNING)
    with warnings.catch_warnings(), open(os.devnull, "w") as nowhere, (
            contextlib.redirect_stdout(io.StringIO())), contextlib.redirect_stderr(nowhere):
        warnings.simplefilter("ignore")
        return run(seed, ours)


def shown(runs):
    """The median of evaluations over effective sample sizes, and the range."""
    each = [calls / size for calls, size in runs]
    return np.median(each), f"{np.median(each):.3g} ({min(each):.3g} to {max(each):.3g})"


def main():
    chosen = options(__file__, __doc__, quick="one seed", only=HOSTS)
    rows = []
    for name, (run, default, ours) in HOSTS.items():
        if importlib.util.find_spec(name) is None or chosen.only not in (None, name):
            continue
        seeds = range(chosen.seed, chosen.seed + (1 if chosen.quick else 3))
        theirs, mine = (shown([quiet(run, seed, which) for seed in seeds])
                        for which in (False, True))
        rows.append([name, run.__doc__.strip().rstrip("."), default, theirs[1], ours, mine[1],
                     f"{theirs[0] / mine[0]:.2g}"])
        write(chosen.folder / "hosts.md", heading(  # after each: some take minutes
            "Inside other packages", "python -m bench.hosts", chosen) + "\n" + table(COLUMNS, rows))


if __name__ == "__main__":
    main()
