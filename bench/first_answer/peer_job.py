"""One package on the forty densities, in its own environment: a line of JSON for each run.

Each is called as in its first example, with the arguments that a user of `fk.sample` has: the
function and a starting point, or priors and bounds. A run is right if every mean and standard
deviation is within a tenth of the standard deviation of the truth. It is taken for doubtful if the
package warns, or its own measure of convergence is beyond its own limit.
"""

import argparse
import functools
import json
import logging
import math
import time
import warnings

import numpy as np

from bench.first_answer.densities import CASES

WALKERS, STEPS, BURN_IN = 32, 5000, 1000  # emcee's line; a walker more than 2 d where d is large
ITERATIONS = 10_000  # PINTS' logistic growth: three chains, the first half is left out
MOST_R_HAT = 1.1  # PINTS' documentation
MOST_SLICED = 50  # dimensions, for PyMC's slice sampler takes some 10 evaluations a coordinate


class Posterior:
    """A case as a function of one vector, with its priors and bounds in it; it counts calls."""

    def __init__(self, case):
        self.case, self.n = case, 0
        self.priors = []  # (name, frozen distribution, how many)
        for name, one in case.options.get("prior", {}).items():
            frozen, many = one if isinstance(one, tuple) else (one, 1)
            self.priors.append((name, frozen, many))
        self.bounds = case.options.get("bounds")

    def likelihood(self, x):
        self.n += 1
        if self.priors and len(self.priors) > 1:
            return float(self.case.f(*x))
        return float(self.case.f(x))

    def __call__(self, x):
        if self.bounds and not all(a < v < b for v, (a, b) in zip(x, self.bounds, strict=True)):
            return -math.inf
        total, first = 0.0, 0
        for _, frozen, many in self.priors:
            part = x[first : first + many]
            total += float(np.sum(frozen.logpdf(part if many > 1 else x[first])))
            first += many
        if not total > -math.inf:
            return -math.inf
        value = total + self.likelihood(x)
        return value if value == value else -math.inf

    def starts(self, n, rng, spread):
        """Return starting points of n chains: draws from the priors, or x0 with a little noise."""
        if self.priors:
            return np.array([np.concatenate([np.atleast_1d(frozen.rvs(size=many, random_state=rng))
                                             for _, frozen, many in self.priors])
                             for _ in range(n)])
        return self.case.x0 + spread * rng.standard_normal((n, len(self.case.x0)))


def by_emcee(posterior, seed):
    import emcee

    rng = np.random.default_rng(seed)
    d = len(posterior.case.mean)
    walkers = max(WALKERS, 2 * d + 2)
    sampler = emcee.EnsembleSampler(walkers, d, posterior)
    sampler.random_state = np.random.RandomState(seed).get_state()
    sampler.run_mcmc(posterior.starts(walkers, rng, 1e-4), STEPS)
    told = False
    try:
        sampler.get_autocorr_time(quiet=False)
    except emcee.autocorr.AutocorrError:
        told = True
    return sampler.get_chain(discard=BURN_IN, flat=True), told


def by_pints(posterior, seed):
    import pints

    class LogPDF(pints.LogPDF):
        def n_parameters(self):
            return len(posterior.case.mean)

        def __call__(self, x):
            return posterior(x)

    np.random.seed(seed)  # noqa: NPY002, which PINTS uses
    starts = posterior.starts(3, np.random.default_rng(seed), 0.0)
    if not posterior.priors:
        starts = starts * np.array([[1.1], [0.9], [1.15]])
        starts = [x if np.isfinite(posterior(x)) else posterior.case.x0 for x in starts]
    controller = pints.MCMCController(LogPDF(), 3, list(starts))
    controller.set_max_iterations(ITERATIONS)
    controller.set_log_to_screen(False)
    chains = controller.run()[:, ITERATIONS // 2 :]
    return chains.reshape(-1, chains.shape[2]), bool(np.max(pints.rhat(chains)) > MOST_R_HAT)


def by_pymc(posterior, seed):
    import pymc as pm
    import pytensor.tensor as pt
    from pytensor.graph.basic import Apply
    from pytensor.graph.op import Op

    class BlackBox(Op):
        def make_node(self, x):
            return Apply(self, [pt.as_tensor(x)], [pt.dscalar()])

        def perform(self, node, inputs, outputs):
            value = posterior.likelihood(inputs[0])
            outputs[0][0] = np.array(value if value == value else -np.inf)

    families = {"uniform": lambda name, frozen, **how: pm.Uniform(
                    name, frozen.args[0], frozen.args[0] + frozen.args[1], **how),
                "norm": lambda name, frozen, **how: pm.Normal(name, *frozen.args, **how)}
    records = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = records.append
    logging.getLogger("pymc").addHandler(handler)
    with pm.Model():
        parts = []
        for name, frozen, many in posterior.priors:
            if hasattr(frozen, "alpha"):
                part = pm.Dirichlet(name, frozen.alpha)
            else:
                part = families[frozen.dist.name](name, frozen, shape=many)
            parts.append(part)
        if posterior.bounds:
            low, high = np.transpose(posterior.bounds)
            parts = [pm.Uniform("x", low, high, initval=posterior.case.x0)]
        elif not parts:
            parts = [pm.Flat("x", shape=len(posterior.case.x0), initval=posterior.case.x0)]
        pm.Potential("likelihood", BlackBox()(pt.concatenate(parts)))
        trace = pm.sample(cores=1, chains=4, progressbar=False, random_seed=seed)
    logging.getLogger("pymc").removeHandler(handler)
    draws = [np.asarray(trace.posterior[name]).reshape(4000, -1)
             for name in ([one[0] for one in posterior.priors] or ["x"])]
    return np.concatenate(draws, axis=1), bool(records)


def by_fastkam(posterior, seed):
    import fastkam as fk

    case = posterior.case

    def f(*x, **named):  # with the names of the case's own arguments
        posterior.n += 1
        return case.f(*x, **named)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fk.sample(functools.wraps(case.f)(f), case.x0, seed=seed, progress=False,
                           **case.options)
    told = any(issubclass(one.category, fk.SamplingWarning) for one in caught)
    return result.draws.reshape(-1, result.draws.shape[2]), told


PEERS = {"fastkam": by_fastkam, "emcee": by_emcee, "pints": by_pints, "pymc": by_pymc}


def judged(peer, case, seed):
    """Return the record of one run."""
    posterior, begun = Posterior(case), time.process_time()
    on_simplex = any(hasattr(frozen, "alpha") for _, frozen, _ in posterior.priors)
    if on_simplex and peer in ("emcee", "pints"):
        return {"reason": "no simplex"}
    if peer == "pymc" and len(case.mean) > MOST_SLICED:
        return {"reason": f"left out above d = {MOST_SLICED}"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            draws, told = PEERS[peer](posterior, seed)
    except Exception as error:  # and warns the user
        return {"right": False, "told": True, "reason": f"{type(error).__name__}: {error}"[:200],
                "evaluations": posterior.n, "seconds": time.process_time() - begun}
    off = np.abs(draws.mean(axis=0) - case.mean) / case.sd
    wide = np.abs(draws.std(axis=0) / case.sd - 1)
    return {"right": bool(max(off.max(), wide.max()) < 0.1), "told": told,
            "evaluations": posterior.n, "seconds": time.process_time() - begun}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("seeds", type=int)
    parser.add_argument("names", nargs="*", default=None)
    options = parser.parse_args()
    for name in options.names or CASES:
        for seed in range(1, options.seeds + 1):
            run = {"name": name, "seed": seed} | judged(options.peer, CASES[name], seed)
            print(json.dumps(run), flush=True)


if __name__ == "__main__":
    main()
