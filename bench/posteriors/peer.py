"""emcee's DEMove and nutpie, each in its own process: `python -m bench.posteriors.peer ARGUMENTS`.

The last line of the output is the answer, as JSON; the draws go into a file.

emcee: 32 walkers, or 2 d + 2, which start at x0 + N(0, 1e-4^2), as in its documentation. They have
arrived when the median of their log densities is first one of those of the second half of the run
(above its 1 % quantile). The integrated autocorrelation time tau is the largest among the
coordinates, once the run is 50 tau long, as emcee asks for, or of as many evaluations as are
allowed, if these are 10 tau. Evaluations to ESS 400 are those until the walkers arrive, 2 tau steps
of every walker, which its manual discards, and 400 tau. The draws are those of the second half.

nutpie: four chains from x0 + N(0, 0.1^2), for it refuses a point where a coordinate of the gradient
is 0; its default settings, and four times as many draws until ESS is 400.
"""

import json
import sys
import warnings

import numpy as np

from bench.posteriors.densities import POSTERIORS

BLOCK, LENGTHS = 1000, 50


class Counted:
    """A density that counts its evaluations."""

    def __init__(self, f):
        self.f, self.n = f, 0

    def __call__(self, x):
        self.n += 1
        return self.f(x)


def emcee(one, reference, seed, most):
    """(draws (walkers, n, d), answer)"""
    import emcee as package

    walkers = max(32, 2 * one.d + 2)
    rng, f = np.random.default_rng(seed), Counted(one.logp)
    x = np.empty((0, one.d))
    while len(x) < walkers:
        some = one.x0 + 1e-4 * rng.standard_normal((walkers, one.d))
        x = np.concatenate([x, [p for p in some if np.isfinite(one.logp(p))]])[:walkers]
    sampler = package.EnsembleSampler(walkers, one.d, f, moves=package.moves.DEMove())
    state = package.State(x, random_state=np.random.RandomState(seed).get_state())
    while True:
        state = sampler.run_mcmc(state, BLOCK, skip_initial_state_check=True)
        n = sampler.iteration
        arrived = arrival(np.median(sampler.get_log_prob(), axis=1))
        tau = float(np.nanmax(package.autocorr.integrated_time(
            sampler.get_chain(discard=max(arrived, n // 10)), tol=0)))
        if n > LENGTHS * tau or f.n > most:
            break
    long = n > LENGTHS * tau
    thin = max(1, int(tau / 4))
    draws = sampler.get_chain(discard=n // 2, thin=thin).swapaxes(0, 1)
    needed = walkers * (arrived + 2 * tau) + 400 * tau
    return draws, {"evaluations": needed if long or n > 10 * tau else None, "arrived": arrived,
                   "tau": tau, "total": f.n, "ess": walkers * n / 2 / tau, "long": long}


def arrival(levels):
    """The step at which log densities (n,) are first among those of the second half."""
    least = np.quantile(levels[len(levels) // 2:], 0.01)
    return int(np.argmax(levels >= least))


def nutpie(one, reference, seed, most):
    draws = 1000
    while True:
        x, answer = nuts(one, draws, seed)
        if rough_ess(x) > 1.3 * 400 or answer["total"] > most:
            return x, answer
        draws *= 4


def nuts(one, draws, seed):
    """(draws (4, n, d), answer) of one run of nutpie."""
    import nutpie as package
    from nutpie.compiled_pyfunc import from_pyfunc

    f = Counted(one.logp_and_grad)

    def start(seed):
        return one.x0 + 0.1 * np.random.default_rng(seed).standard_normal(one.d)

    model = from_pyfunc(one.d, lambda: f, lambda *_: lambda x: {"x": x}, [np.dtype("float64")],
                        [(one.d,)], ["x"], make_initial_point_fn=start)
    trace = package.sample(model, draws=draws, chains=4, cores=1, seed=seed, progress_bar=False)
    steps = [int(group["n_steps"].values.sum())
             for group in (trace.warmup_sample_stats, trace.sample_stats)]
    return trace.posterior["x"].values, {"total": f.n, "before": f.n * steps[0] / sum(steps)}


def main():
    given = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    one = POSTERIORS[given["posterior"]]
    arguments = one, given["reference"], given["seed"], given["most"]
    draws, answer = (emcee if given["package"] == "emcee" else nutpie)(*arguments)
    np.save(given["file"], draws)
    print("\n" + json.dumps(answer), flush=True)


def rough_ess(x):
    """A lower estimate of ESS, by means of batches: whether to draw more."""
    n = x.shape[1] // 20
    means = x[:, :20 * n].reshape(len(x), 20, n, -1).mean(axis=2)
    return float((x.var((0, 1)) / (means.var((0, 1), ddof=1) / means[..., 0].size)).min())


if __name__ == "__main__":
    main()
