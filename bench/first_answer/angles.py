"""Angles by the default call: `python -m bench.first_answer.angles [--quick]`.

Models with periodic and reflected parameters by `fk.sample(problem, seed=seed)` and nothing else.
A run is judged as in `bench.first_answer`, by the mean cosines and sines of its angles, and by the
means and standard deviations of its other parameters; the truth comes from sums over a grid.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats

import fastkam as fk
from bench.first_answer.__main__ import COLUMNS, FILE, is_right, row_of, text_of
from bench.papers.record import heading, options, table, write
from fastkam.diagnostics import summary

CIRCLE = stats.uniform(0, 2 * np.pi)
POINTS = 64  # of a grid on a circle, where nothing else is said


@dataclass(frozen=True)
class Case:
    """A model with angles.

    Attributes
    ----------
    make : callable
        make(*data) returns the log likelihood of named parameters, which sums over axis 0 of data.
    prior : dict
        As `fk.Problem` takes it.
    transforms : dict
        The parameters that are "periodic" or that "reflect".
    ranges : dict
        (from, to, number of points) of the grid in a parameter; the prior's support else.
    data : tuple of array
        The arguments of `make`.
    exact : callable or None
        Returns (means, standard deviations) where a grid has too many dimensions.
    """

    make: Callable[..., Callable[..., Any]]
    prior: dict[str, Any]
    transforms: dict[str, str]
    ranges: dict[str, tuple[float, float, int]]
    data: tuple[Any, ...] = ()
    exact: Callable[[], tuple[Any, Any]] | None = None

    def columns(self, name, x):
        """Cosine and sine of an angle, or a parameter of another kind itself."""
        if self.transforms.get(name) != "periodic":
            return [x]
        turns = 2 * np.pi / np.ptp(self.support(name))
        return [np.cos(turns * x), np.sin(turns * x)]

    def support(self, name):
        prior = self.prior[name]
        return (prior[0] if isinstance(prior, tuple) else prior).support()

    def truth(self):
        """(means, standard deviations) of the columns."""
        if self.exact:
            return self.exact()
        axes = []
        for name in self.prior:
            low, high, n = self.ranges.get(name, (*self.support(name), POINTS))
            axes.append(low + (np.arange(n) + 0.5) * (high - low) / n)
        grid = np.meshgrid(*axes, indexing="ij", sparse=True)
        data = [np.reshape(one, (-1,) + (1,) * len(axes)) for one in self.data]
        logs = self.make(*data)(*grid) + sum(
            prior.logpdf(x) for prior, x in zip(self.prior.values(), grid, strict=True))
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        columns = [column for name, x in zip(self.prior, grid, strict=True)
                   for column in self.columns(name, x)]
        return moments([(weights * x).sum() for x in columns],
                       [(weights * x**2).sum() for x in columns])


def moments(mean, square):
    """(means, standard deviations) from means of values and of their squares."""
    return np.array(mean), np.sqrt(np.array(square) - np.square(mean))


def periodic(*names):
    return dict.fromkeys(names, "periodic")


FIRST, SECOND = np.log(0.3 / np.i0(8.0)), np.log(0.7 / np.i0(3.0))
CASES: dict[str, Case] = {
    "a narrow angle around 0, d = 2": Case(
        lambda: lambda a, x: 30 * np.cos(a - 0.1) - 0.5 * (x - 5 * np.sin(a)) ** 2,
        {"a": CIRCLE, "x": stats.norm(0, 5)}, periodic("a"),
        {"a": (0, 2 * np.pi, 400), "x": (-12, 12, 300)}),
    "a nearly uniform angle, d = 2": Case(
        lambda: lambda a, x: 0.2 * np.cos(a), {"a": CIRCLE, "x": stats.norm(0, 3)}, periodic("a"),
        {"x": (-24, 24, 300)}),
    "three nearly uniform angles": Case(
        lambda: lambda a, b, c: 0.3 * np.cos(a - b), dict.fromkeys("abc", CIRCLE),
        periodic(*"abc"), {}),
    "three torsions": Case(
        lambda: lambda a, b, c: (3 * np.cos(a - b) + 2 * np.cos(2 * a) + 1.5 * np.cos(b - c)
                                 + np.cos(3 * c)),
        dict.fromkeys("abc", CIRCLE), periodic(*"abc"), {}),
    "two modes on a circle, a normal, a reflected interval": Case(
        lambda: lambda a, x, r: (np.logaddexp(FIRST + 8 * np.cos(a - 1),
                                              SECOND + 3 * np.cos(a + 1.5))
                                 - 0.5 * (x - np.sin(a)) ** 2 + np.log(r)),
        {"a": CIRCLE, "x": stats.uniform(-20, 40), "r": stats.uniform()},
        {"a": "periodic", "r": "reflect"}, {"x": (-7, 7, 200), "r": (0, 1, 400)}),
}

# ---- measured directions and phases ----


def polarization(p, chi):
    """Stokes parameters of low significance; chi has a period of pi."""
    return -0.5 * ((0.02 - p * np.cos(2 * chi)) ** 2 + (0.05 - p * np.sin(2 * chi)) ** 2) / 0.03**2


CASES["polarization of low significance"] = Case(
    lambda: polarization, {"p": stats.uniform(), "chi": stats.uniform(0, np.pi)}, periodic("chi"),
    {"p": (0, 0.3, 400)})


def tuning(directions, spikes):
    """Poisson counts of a neuron with a preferred direction."""
    def log_likelihood(b, A, kappa, preferred):
        rate = b + A * np.exp(kappa * (np.cos(2 * (directions - preferred)) - 1))
        return (spikes * np.log(rate) - rate).sum(axis=0)
    return log_likelihood


directions = np.linspace(0, 2 * np.pi, 12, endpoint=False)
rates = 2 + 10 * np.exp(3 * (np.cos(2 * (directions - 1)) - 1))
spikes = np.random.default_rng(26).poisson(rates)
for turn in (1, 2):
    CASES[f"tuning curve, the direction on {turn} of its 2 periods"] = Case(
        tuning, {"b": stats.expon(scale=5), "A": stats.expon(scale=20),
                 "kappa": stats.expon(scale=5), "preferred": stats.uniform(0, turn * np.pi)},
        periodic("preferred"),
        {"b": (0, 8, 40), "A": (0, 80, 60), "kappa": (0, 40, 60),
         "preferred": (0, turn * np.pi, 64 * turn)}, (directions, spikes))


def sinusoid(times, seen):
    """Amplitude, frequency, phase and noise of a signal."""
    def log_likelihood(A, omega, phi, sigma):
        squares = ((seen - A * np.sin(omega * times + phi)) ** 2).sum(axis=0)
        return -0.5 * squares / sigma**2 - len(times) * np.log(sigma)
    return log_likelihood


times = np.linspace(0, 10, 40)
CASES["sinusoid, d = 4"] = Case(
    sinusoid, {"A": stats.uniform(0, 10), "omega": stats.uniform(0.5, 5), "phi": CIRCLE,
               "sigma": stats.halfnorm(scale=2)}, periodic("phi"),
    {"A": (0, 4, 50), "omega": (0.5, 5.5, 300), "sigma": (0.4, 2.4, 40)},
    (times, 2 * np.sin(2.1 * times + 0.3) + np.random.default_rng(1).normal(size=40)))


def amplitude(azimuths, takeoffs, strike, dip, rake):
    """The first motion of P waves from an earthquake."""
    a, away, across = azimuths - strike, np.sin(takeoffs) ** 2, np.sin(2 * takeoffs)
    return (np.cos(rake) * (np.sin(dip) * away * np.sin(2 * a) - np.cos(dip) * across * np.cos(a))
            + np.sin(rake) * (np.sin(2 * dip) * (np.cos(takeoffs) ** 2 - away * np.sin(a) ** 2)
                              + np.cos(2 * dip) * across * np.sin(a)))


def polarities(azimuths, takeoffs, signs):
    """Signs of first motions: strike, dip and rake of a fault."""
    def log_likelihood(strike, dip, rake):
        motion = amplitude(azimuths, takeoffs, strike, dip, rake)
        return special.log_ndtr(signs * motion / 0.15).sum(axis=0) + np.log(np.sin(dip))
    return log_likelihood


azimuths = np.random.default_rng(6).uniform(0, 2 * np.pi, 15)
takeoffs = np.random.default_rng(7).uniform(0.3, 1.4, 15)
signs = np.sign(amplitude(azimuths, takeoffs, 1.0, 0.9, 0.5))
CASES["strike, dip and rake by polarities"] = Case(
    polarities, {"strike": CIRCLE, "dip": stats.uniform(0, np.pi / 2),
                 "rake": stats.uniform(-np.pi, 2 * np.pi)}, periodic("strike", "rake"),
    {name: (*ends, 120) for name, ends in {
        "strike": (0, 2 * np.pi), "dip": (0, np.pi / 2), "rake": (-np.pi, np.pi)}.items()},
    (azimuths, takeoffs, signs))

# ---- many angles ----

phases = np.random.default_rng(4).uniform(0, 2 * np.pi, 8)
waves = 2 * np.pi * np.linspace(0, 1, 12)
signals = (np.cos(waves + phases[:, None])
           + 0.8 * np.random.default_rng(5).normal(size=(8, 12)))


def eight_phases():
    """Given the amplitude, the phases are independent."""
    A, phi = 5 * (np.arange(1000) + 0.5) / 1000, 2 * np.pi * np.arange(128) / 128
    model = A[:, None, None] * np.cos(waves + phi[:, None])
    logs = np.array([-0.5 * ((one - model) ** 2).sum(axis=-1) / 0.64 for one in signals])
    sums = special.logsumexp(logs, axis=-1)  # (signal, amplitude)
    weights = special.softmax(sums.sum(axis=0))
    given = np.exp(logs - sums[..., None])
    first = [weights @ A] + [weights @ (p @ g(phi)) for p in given for g in (np.cos, np.sin)]
    second = [weights @ A**2] + [weights @ (p @ g(phi) ** 2) for p in given
                                 for g in (np.cos, np.sin)]
    return moments(first, second)


CASES["phases of eight signals of one amplitude"] = Case(
    lambda: lambda A, phi: -0.5 * (
        (signals - A * np.cos(waves + phi[:, None])) ** 2).sum() / 0.64,
    {"A": stats.uniform(0, 5), "phi": (CIRCLE, 8)}, periodic("phi"), {}, exact=eight_phases)


def twelve_angles():
    """The moments of a chain, by the transfer matrix of neighbors."""
    a = 2 * np.pi * np.arange(256) / 256
    K = np.exp(2 * (np.cos(a[:, None] - a) - 1))
    left, right = [np.exp(np.cos(a - 1))], [np.ones(256)]
    for _ in range(11):
        left.append(left[-1] @ K / 256)
        right.insert(0, K @ right[0] / 256)
    p = np.array([x * y / (x @ y) for x, y in zip(left, right, strict=True)])
    mean = np.stack([p @ np.cos(a), p @ np.sin(a)], axis=1).ravel()
    return moments(mean, np.stack([p @ np.cos(a) ** 2, p @ np.sin(a) ** 2], axis=1).ravel())


CASES["chain of 12 coupled angles"] = Case(
    lambda: lambda a: 2 * np.cos(np.diff(a)).sum() + np.cos(a[0] - 1), {"a": (CIRCLE, 12)},
    periodic("a"), {}, exact=twelve_angles)


def judge(case, truth, seed):
    """(right, warned, evaluations, CPU seconds, least ESS) of one run."""
    problem = fk.Problem(case.make(*case.data), prior=case.prior, transforms=case.transforms)
    begun = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fk.sample(problem, seed=seed, progress=False)
    seconds = time.process_time() - begun
    each = [case.columns(name, x) for name in case.prior
            for x in np.moveaxis(np.atleast_3d(result[name]), -1, 0)]
    found = summary(np.stack([column for columns in each for column in columns], axis=-1))
    of_angles = np.array([len(columns) == 2 for columns in each for _ in columns])
    warned = any(issubclass(one.category, fk.SamplingWarning) for one in caught)
    ess = min(found["ess_bulk"].min(), found["ess_tail"].min())
    return is_right(found, *truth, ~of_angles), warned, result.evaluations, seconds, ess


def main():
    chosen = options(FILE, __doc__, quick="one seed")
    seeds = range(chosen.seed, chosen.seed + (1 if chosen.quick else 5))
    rows, totals = [], np.zeros(4, int)
    for name, case in CASES.items():
        truth = case.truth()
        row, counts = row_of(name, [judge(case, truth, seed) for seed in seeds])
        rows.append(row)
        totals += counts
    write(chosen.folder / "angles.md", "\n".join([
        heading("Angles by the default call", "python -m bench.first_answer.angles", chosen),
        text_of(totals), table(COLUMNS, [*rows, ["all", *map(str, totals), "", "", ""]])]))


if __name__ == "__main__":
    main()
