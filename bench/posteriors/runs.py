"""One run of a sampler of fastkam on a posterior: evaluations to ESS 400, and whether it is right.

Every evaluation is counted in the density itself. A run is that of `fk.sample(f, x0)`, with
`sampler=` or without, and resumed until the bulk ESS of each coordinate is 1000, or until it has
taken `most` evaluations. Evaluations to ESS 400 are those of search and warm-up, and of the draws
in proportion 400 / ESS; infinite below 400.
"""

import time
import warnings

import numpy as np

import fastkam as fk
from bench.posteriors import references
from bench.posteriors.densities import POSTERIORS
from bench.posteriors.peer import Counted

ASKED, ENOUGH = 400, 1000
WITHOUT = {
    "rwm": {"sampler": "rwm"}, "am": {"sampler": "am"}, "gam": {"sampler": "gam"},
    "ram": {"sampler": "ram"}, "am, shared": {"sampler": "am", "share": True},
    "jumps of am": {"sampler": fk.ModeJumping(sampler="am")},
    "jumps of gam": {"sampler": fk.ModeJumping(sampler="gam")},
    "autorwm": {"sampler": "autorwm"}, "kam": {"sampler": "kam"}, "pt": {"sampler": "pt"},
}
WITH = {
    "nuts": {"sampler": "nuts"}, "hmc": {"sampler": "hmc"}, "mala": {"sampler": "mala"},
    "fishermala": {"sampler": "fishermala"}, "automala": {"sampler": "automala"},
    "barker": {"sampler": "barker"},
    "jumps of mala": {"sampler": fk.ModeJumping(sampler="mala")},
}
OURS = {False: WITHOUT, True: WITH}


def function_of(name, gradient):
    one = POSTERIORS[name]
    return Counted(one.logp_and_grad if gradient else one.logp)


def least_ess(draws):
    """The least bulk ESS of a coordinate of draws (chains, n, d); 0 where a chain never moved."""
    ess = fk.diagnostics.ess_bulk(draws).min() if np.ptp(draws, axis=1).min() > 0 else 0.0
    return float(ess) if np.isfinite(ess) else 0.0


def on_draws(result):
    """The share of the evaluations after the search that went into the draws, of a first run."""
    steps = np.array([result.tune, result.draws.shape[1] * result.thin], float)
    for k, trace in enumerate((result.warmup, result.trace)):
        if "n_steps" in trace.stats:        # of samplers whose steps take different numbers
            steps[k] *= np.mean(trace.stats["n_steps"])
    return steps[1] / steps.sum()


def run(name, gradient, seed, most, seconds, **options):
    """A row of the results: see the module; no longer than `seconds` of CPU, about."""
    f, begun = function_of(name, gradient), time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fk.sample(f, POSTERIORS[name].x0, seed=seed, progress=False, **options)
    told = [str(one.message) for one in caught if issubclass(one.category, fk.SamplingWarning)]
    first = f.n
    cost = (first - result.state.searched) * on_draws(result) / result.draws.shape[1]
    before = first - cost * result.draws.shape[1]
    while (ess := least_ess(result.draws)) < ENOUGH and f.n < most:
        if time.process_time() - begun > seconds:
            break
        n = result.draws.shape[1]
        needed = 1.1 * n * (ENOUGH / max(ess, ENOUGH / 5) - 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fk.SamplingWarning)
            result = result.resume(int(min(needed, (most - f.n) / cost)) + 10, progress=False)
    spent = f.n - before
    return {
        "evaluations": before + spent * ASKED / ess if ess >= ASKED else None,
        "before": before, "searched": result.state.searched, "total": f.n, "first": first,
        "ess": ess, "told": told, "moments": references.rounded(references.moments(result.draws)),
        "seconds": time.process_time() - begun,
        "choice": result.search[-1] if "sampler" not in options and result.search else "",
    }
