"""One run of the default call on a posterior, and whether its moments are those of the reference.
"""

import functools
import time
import warnings

import numpy as np

import fastkam as fk

MOST_ERRORS, MOST_SD = 4, 0.1  # standard errors, reference standard deviations


class Counted:
    """A log likelihood and the number of its calls."""

    def __init__(self, f):
        functools.update_wrapper(self, f)  # and with it the names of its arguments
        self.f, self.n = f, 0

    def __call__(self, *x, **named):
        self.n += 1
        return self.f(*x, **named)


class Moments:
    """Means, standard deviations and the standard errors of both, of draws (chains, n, d)."""

    def __init__(self, draws):
        self.mean, self.sd = draws.mean(axis=(0, 1)), draws.std(axis=(0, 1), ddof=1)
        self.mcse_mean = fk.diagnostics.mcse_mean(draws)
        self.mcse_sd = fk.diagnostics.mcse_sd(draws)


class Reference:
    """The reference draws of a posterior."""

    def __init__(self, names, draws):
        self.names, self.moments = names, Moments(draws)

    def draws_of(self, result):
        """The draws (chains, n, d) of a run, of the same parameters in the same order."""
        parts = []
        for base in dict.fromkeys(name.partition("[")[0] for name in self.names):
            own = base + "_" if base == "lambda" else base  # which is no name of an argument
            parts.append(result[own].reshape(*result.draws.shape[:2], -1))
        draws = np.concatenate(parts, axis=2)
        assert draws.shape[2] == len(self.names)
        return draws

    def errors(self, result):
        """(errors in standard deviations, errors in standard errors), of means and of sds."""
        ours, truth = Moments(self.draws_of(result)), self.moments
        off = np.abs([ours.mean - truth.mean, ours.sd - truth.sd])
        combined = np.hypot([ours.mcse_mean, ours.mcse_sd], [truth.mcse_mean, truth.mcse_sd])
        return off / truth.sd, off / combined


def start(problem, rng):
    """A point with unconstrained coordinates uniform on (-2, 2), as Stan starts."""
    for _ in range(100):
        z = rng.uniform(-2, 2, problem.dim)
        if np.isfinite(problem.logp(z)):
            return problem.constrain(z)
    raise ValueError("no start with a finite density")


def run(loglike, options, reference, seed, *, from_prior):
    """The record of one run: without x0 from the prior, or from one point at random."""
    x0 = None
    if not from_prior:
        x0 = start(fk.Problem(loglike, **options), np.random.default_rng(seed))
    counted, begun = Counted(loglike), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = fk.sample(counted, x0, seed=seed, progress=False, **options)
    in_sd, in_errors = reference.errors(result)
    wrong = ~((in_errors < MOST_ERRORS) | (in_sd < MOST_SD))
    both = (in_errors < MOST_ERRORS) & (in_sd < MOST_SD)
    worst = np.unravel_index(np.argmax(in_sd), in_sd.shape)
    return {
        "right": not wrong.any(), "both": bool(both.all()),
        "told": bool(result.warnings) or result.verdict().status != "ok",
        "kinds": [finding.kind for finding in result.warnings],
        "status": result.verdict().status, "evaluations": counted.n,
        "seconds": time.process_time() - begun,
        "off": in_sd[0].max(), "wide": in_sd[1].max(),
        "worst": f"{('mean', 'sd')[worst[0]]} of {reference.names[worst[1]]}",
    }
