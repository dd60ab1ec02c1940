"""One run: what it says of means, standard deviations and itself, and what is exact."""

import warnings

import numpy as np

import fastkam as fk
from fastkam.samplers import SAMPLERS

CHAINS = 4
SMALL = {"kam": {"subsample": 200}, "kpca": {"subsample": 100}}     # the defaults are for hours


def contenders():
    """Every registered sampler, and couplings of them: {name: function of a posterior}."""
    def alone(name):
        return lambda known: {"sampler": SAMPLERS[name](**SMALL.get(name, {}))}

    def shared(name):
        return lambda known: {"sampler": name, "share": True}

    def tempered(name):
        return lambda known: {"sampler": fk.ParallelTempering(sampler=name, n_replicas=4)}

    def behind(name):
        return lambda known: {"sampler": name, "surrogate": Wider(known)}

    found = {"auto": lambda known: {}} | {name: alone(name) for name in SAMPLERS}
    found |= {f"{name}, shared": shared(name) for name in ("ram", "am", "nuts", "barker")}
    found |= {f"pt of {name}": tempered(name) for name in ("ram", "dram", "nuts", "autorwm")}
    found |= {f"{name} behind a surrogate": behind(name) for name in ("gam", "ram", "rwm")}
    found |= {
        "jumps of am": lambda known: {"sampler": fk.ModeJumping(sampler="am")},
        "jumps of nuts": lambda known: {"sampler": fk.ModeJumping(sampler="nuts")},
        "jumps of pt": lambda known: {
            "sampler": fk.ModeJumping(sampler=fk.ParallelTempering(n_replicas=3))},
    }
    return found


class Wider:
    """A surrogate of a density: its power 0.7, which is wider and in other places wrong."""

    def __init__(self, known):
        self.known = known

    def __call__(self, x):
        return 0.7 * self.known.logp(x)


def run(known, options, seed, draws, schedule="finite", tune=None):
    """Return the record of a run; errors are reported in the same way.

    Returns
    -------
    dict
        "error" and "mcse", of means and then standard deviations, (2 d,), in exact standard
        deviations; "r_hat" and "ess", the largest and the least; "told", whether the run warns.
    """
    starts = known.starts(CHAINS, np.random.default_rng([seed, 1]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = fk.sample(known.f, starts, seed=seed, draws=draws, tune=tune, chains=CHAINS,
                               schedule=schedule, search=False, thin=1, progress=False,
                               check_gradient=False, keep_warmup=False,
                               **{**known.options, **options})
        except (ValueError, fk.SamplingError) as error:
            return {"failed": f"{type(error).__name__}: {error}"[:300]}
    columns = result.summary()
    error = np.append(columns["mean"] - known.mean, columns["sd"] - known.sd)
    mcse = np.append(columns["mcse_mean"], columns["mcse_sd"])
    unit = np.append(known.sd, known.sd)
    return {
        "error": (error / unit).round(6).tolist(), "mcse": (mcse / unit).round(6).tolist(),
        "r_hat": round(float(np.max(columns["r_hat"])), 4),
        "ess": round(float(min(columns["ess_bulk"].min(), columns["ess_tail"].min())), 1),
        "told": any(issubclass(one.category, fk.SamplingWarning) for one in caught),
        "evaluations": int(result.evaluations),
    }
