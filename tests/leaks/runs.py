"""Short runs of every kind, each of which must leave nothing behind."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import numpy as np
import scipy.stats

import fastkam as fk
from fastkam.samplers import SAMPLERS

D = 2
OPTIONS = {"search": False, "chains": 2, "tune": 8, "draws": 6, "diagnose": False,
           "progress": False, "check_gradient": False}


def logp(x):
    return -0.5 * float(x @ x)


def logp_and_gradient(x):
    return -0.5 * float(x @ x), -x


def batch(X):
    return -0.5 * (X * X).sum(axis=1)


def estimate(x, u):
    return -0.5 * float(x @ x) + 0.1 * float(u.sum())


def with_extras(x):
    return -0.5 * float(x @ x), {"twice": 2 * x}


def loglike(mu, sigma):
    return -0.5 * (mu * mu + sigma)


class Walk(fk.PythonSampler):
    """A random walk in Python."""

    def propose(self, x, rng):
        return x + rng.standard_normal(self.d)


class Failing:
    """A density that raises at its n-th call."""

    def __init__(self, n):
        self.left = n

    def __call__(self, x):
        self.left -= 1
        if not self.left:
            raise ZeroDivisionError("planned")
        return logp(x)


def short(name):
    """The sampler of that name, small."""
    cls = SAMPLERS[name]
    given = {"cycle": 20, "subsample": 12, "history_size": 40, "max_tree_depth": 4, "bank_size": 5}
    own = {one.name for one in fields(cls) if one.init}
    return cls(**{one: value for one, value in given.items() if one in own})


def with_sampler(name):
    """A function that runs one sampler, with a Python density or one in C."""
    target = fk.targets.Gaussian(np.zeros(D))

    def run(seed):
        sampler = short(name)
        form = (logp_and_gradient if sampler.needs_gradient else logp, target)[seed % 2]
        tune = 22 if name == "ckam" else OPTIONS["tune"]
        fk.sample(form, np.zeros(D), sampler=sampler, seed=seed, **OPTIONS | {"tune": tune})

    return run


def plain(target, x0=None, **options):
    """A function that makes one kind of run."""
    x0 = np.zeros(D) if x0 is None else x0

    def run(seed):
        fk.sample(target, x0, seed=seed, **OPTIONS | {"sampler": "ram"} | options)

    return run


def noisy(seed):
    fk.sample(fk.Target.from_estimator(estimate, D, 2), np.zeros(D), sampler="ram", seed=seed,
              **OPTIONS)


def problem(seed):
    made = fk.Problem(loglike, {"mu": scipy.stats.norm(0, 1), "sigma": scipy.stats.gamma(2.0)})
    result = fk.sample(made, sampler="ram", seed=seed, **OPTIONS)
    result.summary()


def searched(seed):
    fk.sample(logp, np.zeros(D), seed=seed, **OPTIONS | {"search": True, "draws": 3})


def python_sampler(seed):
    fk.sample(logp, np.zeros(D), sampler=Walk(), seed=seed, **OPTIONS)


def fails(seed):
    """The exception holds the draws, which hold the run."""
    with suppress(fk.SamplingError):
        fk.sample(Failing(3 + seed % 20), np.zeros(D), sampler="kam", seed=seed, **OPTIONS)


def refused(seed):
    bad = [{"draws": -1}, {"sampler": "none"}, {"x0": "x"}, {"prior": 1}, {"bounds": [1]}]
    with suppress(ValueError, TypeError):
        fk.sample(**{"target": logp, "x0": np.zeros(D)} | OPTIONS | bad[seed % len(bad)])


def resumed(seed):
    first = fk.sample(logp, np.zeros(D), sampler="kam", seed=seed, **OPTIONS)
    fk.resume(first, 4, progress=False, diagnose=False)


def through_a_file(seed):
    path = Path("run.fk")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the file of the last call is moved aside
        fk.sample(logp, np.zeros(D), sampler="ram", seed=seed, checkpoint=path, **OPTIONS)
    loaded = fk.load(path)
    fk.resume(path, 2, target=logp, progress=False, diagnose=False)
    assert len(loaded.names) == 1


def diagnosed(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = fk.sample(logp, np.zeros(D), sampler="ram", seed=seed,
                           **OPTIONS | {"diagnose": True, "draws": 20})
    str(result.summary())
    repr(result)
    assert result.warnings is not None


def interrupted(seed):
    """SIGINT during the run: the draws until then come back."""
    calls = 0

    def density(x):
        nonlocal calls
        calls += 1
        if calls == 5 + seed % 10:
            os.kill(os.getpid(), signal.SIGINT)
        return logp(x)

    with suppress(KeyboardInterrupt), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fk.sample(density, np.zeros(D), sampler="ram", seed=seed, **OPTIONS)


def linear_algebra(seed):
    rng = np.random.default_rng(seed)
    covs = np.eye(3) * rng.uniform(1, 2, (4, 1, 1))
    fk.linalg.mvn_logpdf(rng.normal(size=(4, 3)), np.zeros(3), covs, threads=2)
    bank = fk.CholeskyBank(rng.normal(size=(9, 3)), np.array([np.eye(3)] * 9))
    bank.lookup(rng.normal(size=(5, 3)))
    fk.diagnostics.summary(rng.normal(size=(2, 20, 2)))
    with suppress(ValueError):
        fk.linalg.cholupdate(np.eye(3), np.ones(3), s=-5.0)


gaussian = fk.targets.Gaussian(np.zeros(D))
KINDS = {name: with_sampler(name) for name in SAMPLERS} | {
    "vectorized": plain(batch, vectorized=True),
    "vectorized pt": plain(batch, vectorized=True, sampler=fk.ParallelTempering(n_replicas=3)),
    "shared": plain(logp, sampler=short("kam"), share=True),
    "in threads": plain(gaussian, sampler="am", threads=2, chains=3),
    "shared, in threads": plain(gaussian, sampler="am", share=True, threads=2),
    "pt in threads": plain(gaussian, sampler=fk.ParallelTempering(n_replicas=4), threads=3),
    "behind a surrogate": plain(logp, surrogate=lambda x: -0.4 * float(x @ x)),
    "extras": plain(with_extras), "bounded": plain(logp, x0=[0.5, 0.5], bounds=[(0, 1), (0, 1)]),
    "stopped": plain(logp, stop=fk.stop.Evaluations(9)), "auto": searched, "noisy": noisy,
    "problem": problem, "python sampler": python_sampler, "fails": fails, "refused": refused,
    "resumed": resumed, "through a file": through_a_file, "diagnosed": diagnosed,
    "linear algebra": linear_algebra}
if threading.current_thread() is threading.main_thread():
    KINDS["interrupted"] = interrupted
