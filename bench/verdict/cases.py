"""Pairs of a target and a sampler whose means and standard deviations are known exactly.

Half of them are plain work, with draws enough; the other half are traps: what goes wrong in them is
said by the group. Whether a run is right or wrong is decided by its error, not by its group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import md5
from typing import Any

import numpy as np
from scipy import stats

import fastkam as fk


@dataclass(frozen=True)
class Case:
    """A run whose truth is known.

    Attributes
    ----------
    name : str
    group : str
        "sound", or the trap.
    target : callable
        Returns what `fastkam.sample` takes.
    x0 : array or None
    mean, sd : ndarray, shape (d,)
        The truth.
    options : dict
        Further arguments of `fastkam.sample`.
    """

    name: str
    group: str
    target: Callable[[], Any]
    x0: Any
    mean: Any
    sd: Any
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def is_trap(self) -> bool:
        return self.group != "sound"

    @property
    def half(self) -> str:
        """"set" where thresholds were set on it, "kept" where it was kept for the report."""
        return "set" if int(md5(self.name.encode()).hexdigest(), 16) % 2 else "kept"

    @property
    def is_default(self) -> bool:
        """Whether the call has a density and a start, or a prior, and nothing else."""
        return not set(self.options) - {"prior"}

    def run(self, seed: int) -> fk.Result:
        return fk.sample(self.target(), self.x0, seed=seed, progress=False,
                         check_gradient=False, **self.options)


CASES: dict[str, Case] = {}


def add(name: str, group: str, target: Callable[[], Any], x0: Any, mean: Any, sd: Any,
        **options: Any) -> None:
    CASES[name] = Case(name, group, target, x0, np.asarray(mean, float), np.asarray(sd, float),
                       options)


def exact(name: str, group: str, make: Callable[[], Any], x0: Any = None, **options: Any) -> None:
    """A built-in target, which knows its moments."""
    target = make()
    add(name, group, make, np.zeros(target.dim) if x0 is None else x0, target.mean,
        np.sqrt(np.diag(target.cov)), **options)


def gaussian(d: int, low: float = 0.2, high: float = 5.0) -> Any:
    return fk.targets.Gaussian(np.zeros(d), np.diag(np.linspace(low, high, d)) ** 2)


def student(d: int, df: float) -> Any:
    return fk.targets.StudentT(d, df)


def two(distance: float, d: int, share: float = 0.5) -> Any:
    """Two round modes at +- distance / 2 along the diagonal."""
    middle = np.full(d, distance / 2 / np.sqrt(d))
    return fk.targets.GaussianMixture([-middle, middle], [1.0, 1.0], [1 - share, share])


def two_scales(d: int) -> Any:
    """A normal density, and 30 % of the mass in one that is 30 times as wide."""
    return fk.targets.GaussianMixture(np.zeros((2, d)), [1.0, 900.0], [0.7, 0.3])


def spike(d: int) -> Any:
    """A normal density, and half of the mass in one of sd 0.01 beside its mean."""
    return fk.targets.GaussianMixture(np.array([np.zeros(d), np.ones(d)]), [1.0, 1e-4])


def exponential(x):
    return -x.sum() if x.min() >= 0 else -np.inf


def box(x):
    return 0.0 if np.abs(x).max() < 1 else -np.inf


def laplace(x):
    return -np.abs(x).sum()


def log_normal(sd):
    """Independent log-normal coordinates."""
    def logp(x):
        if x.min() <= 0:
            return -np.inf
        logs = np.log(x)
        return -0.5 * (logs @ logs) / sd**2 - logs.sum()
    return logp


def bent(x):
    """Rosenbrock's function, to the power 1/20: x_1 ~ N(1, 10), x_2 - x_1^2 ~ N(0, 0.1)."""
    return -(100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2) / 20


def poisson(rate):
    """3 events in 4 units of time."""
    return 3 * np.log(rate) - 4 * rate


BENT_MEAN = [1.0, 11.0]
BENT_SD = [np.sqrt(10), np.sqrt(4 * 10 + 2 * 100 + 0.1)]  # var x^2 = 4 m^2 v + 2 v^2


def plain_banana(x, b, V):
    """Haario's, as a function of one's own."""
    y = x[1] - b * (x[0] ** 2 - V)
    return -0.5 * (x[0] ** 2 / V + y * y + x[2:] @ x[2:])


class WrongGradient:
    """A normal density whose gradient is not its own: half of it, and reversed where asked."""

    def __init__(self, factor, sd):
        self.factor, self.precision = factor, 1 / np.asarray(sd, float) ** 2

    def __call__(self, x):
        return -0.5 * (x * self.precision) @ x, -self.factor * x * self.precision


def noisy(sd):
    """A normal density that is estimated, with a logarithm of that error."""
    def estimate(x, u):
        return -0.5 * x @ x + sd * u[0] - 0.5 * sd * sd
    return fk.Target.from_estimator(estimate, 2, 1)


def narrow_jumps(d: int, sd: float, walk: float, **more: Any) -> Any:
    """Draws from a fixed normal density, and tiny steps in between."""
    return fk.ModeJumping(sampler=fk.RandomWalk(proposal_cov=walk**2), moves="independent",
                          means=np.zeros((1, d)), covs=sd**2, fit=False, jump_probability=0.5,
                          **more)


def spread_of_starts(d: int, far: float, which: int) -> Any:
    """Four starts around 0, of which the last ones are far off."""
    x0 = 0.5 * np.sin(np.arange(4 * d)).reshape(4, d)
    x0[4 - which :] += far
    return x0


# ---- plain work ----

LONG = {"draws": 20_000, "tune": 4000}
exact("gaussian d=2, rwm", "sound", lambda: gaussian(2, 0.8, 1.2),
      sampler=fk.RandomWalk(proposal_cov=2.5), **LONG)
exact("gaussian d=2, ram", "sound", lambda: gaussian(2), sampler="ram", **LONG)
exact("gaussian d=2, kam", "sound", lambda: gaussian(2), sampler="kam", **LONG)
exact("gaussian d=5, ram", "sound", lambda: gaussian(5), sampler="ram", draws=40_000, tune=5000)
exact("gaussian d=5, dram", "sound", lambda: gaussian(5), sampler="dram", draws=30_000, tune=5000)
exact("gaussian d=5, mala", "sound", lambda: gaussian(5), sampler="mala", **LONG)
exact("gaussian d=5, barker", "sound", lambda: gaussian(5), sampler="barker", **LONG)
exact("gaussian d=5, hmc", "sound", lambda: gaussian(5), sampler="hmc", draws=3000)
exact("gaussian d=10, am", "sound", lambda: gaussian(10), sampler="am", draws=60_000, tune=10_000)
exact("gaussian d=10, auto", "sound", lambda: gaussian(10), draws=4000)
exact("gaussian d=10, nuts", "sound", lambda: gaussian(10), sampler="nuts", draws=2000)
exact("gaussian d=10, short nuts", "sound", lambda: gaussian(10), sampler="nuts", draws=1000)
exact("gaussian d=50, nuts", "sound", lambda: gaussian(50), sampler="nuts", draws=1000)
exact("correlated d=2, am", "sound", fk.targets.correlated_gaussian, sampler="am", **LONG)
exact("correlated d=2, nuts", "sound", fk.targets.correlated_gaussian, sampler="nuts", draws=3000)
exact("student 8, d=3, ram", "sound", lambda: student(3, 8.0), sampler="ram", draws=40_000,
      tune=4000)
exact("student 8, d=3, nuts", "sound", lambda: student(3, 8.0), sampler="nuts", draws=3000)
exact("student 8, d=3, auto", "sound", lambda: student(3, 8.0), draws=4000)
add("laplace d=3, am", "sound", lambda: laplace, np.full(3, 0.1), np.zeros(3),
    np.full(3, np.sqrt(2)), sampler="am", **LONG)
add("exponential d=2, ram", "sound", lambda: exponential, np.ones(2), np.ones(2), np.ones(2),
    sampler="ram", **LONG)
add("box d=2, am", "sound", lambda: box, np.zeros(2), np.zeros(2), np.full(2, 1 / np.sqrt(3)),
    sampler="am", **LONG)
exact("two modes 4 apart, auto", "sound", lambda: two(4, 3), draws=4000)
exact("two modes 10 apart, auto", "sound", lambda: two(10, 3), draws=4000)
exact("two modes 8 apart, pt", "sound", lambda: two(8, 2), sampler="pt", draws=20_000, tune=4000)
exact("five components, auto", "sound", fk.targets.five_component, draws=4000)
exact("mild banana, nuts", "sound", lambda: fk.targets.banana(0.03, 10.0, 3), sampler="nuts",
      draws=4000)
exact("mild banana, auto", "sound", lambda: fk.targets.banana(0.03, 10.0, 3), draws=4000)
add("rate with a prior, auto", "sound", lambda: poisson, None, [5 / 4.5], [np.sqrt(5) / 4.5],
    prior={"rate": stats.gamma(2, scale=2)}, draws=4000)
add("log-normal 0.3, ram", "sound", lambda: log_normal(0.3), np.ones(2),
    np.full(2, np.exp(0.045)), np.full(2, np.exp(0.045) * np.sqrt(np.expm1(0.09))),
    sampler="ram", **LONG)
add("estimated d=2, ram", "sound", lambda: noisy(0.5), np.zeros(2), np.zeros(2), np.ones(2),
    sampler="ram", draws=40_000, tune=4000)

for name in ("cholam", "gam", "arwm", "autorwm"):
    exact(f"gaussian d=3, {name}", "sound", lambda: gaussian(3), sampler=name, draws=40_000,
          tune=5000)
for name in ("gadmala", "fishermala", "automala"):
    exact(f"gaussian d=4, {name}", "sound", lambda: gaussian(4), sampler=name, draws=20_000,
          tune=5000)
exact("basis vectors d=4, auto", "sound", lambda: fk.targets.basis_vectors(4), draws=8000)
exact("basis vectors d=4, pt", "sound", lambda: fk.targets.basis_vectors(4), sampler="pt",
      draws=40_000, tune=5000)
exact("gaussian d=30, auto", "sound", lambda: gaussian(30), draws=4000)
exact("double banana, auto", "sound", fk.targets.double_banana, draws=8000)
exact("gaussian d=2, 200 chains", "sound", lambda: gaussian(2, 1.0, 1.0),
      sampler=fk.RandomWalk(proposal_cov=2.5), chains=200, draws=500, tune=300)
exact("gaussian d=3, one long chain", "sound", lambda: gaussian(3), sampler="am", chains=1,
      draws=100_000, tune=5000)

# the default call, of a density and a start or a prior alone

exact("gaussian d=5, default", "sound", lambda: gaussian(5))
exact("gaussian d=20, default", "sound", lambda: gaussian(20))
exact("correlated d=2, default", "sound", fk.targets.correlated_gaussian)
exact("student 8, d=3, default", "sound", lambda: student(3, 8.0))
add("laplace d=3, default", "sound", lambda: laplace, np.full(3, 0.1), np.zeros(3),
    np.full(3, np.sqrt(2)))
add("exponential d=2, default", "sound", lambda: exponential, np.ones(2), np.ones(2), np.ones(2))
exact("two modes 10 apart, default", "sound", lambda: two(10, 3))
exact("five components, default", "sound", fk.targets.five_component)
exact("mild banana, default", "sound", lambda: fk.targets.banana(0.03, 10.0, 3))
add("rate with a prior, default", "sound", lambda: poisson, None, [5 / 4.5], [np.sqrt(5) / 4.5],
    prior={"rate": stats.gamma(2, scale=2)})
add("log-normal 0.3, default", "sound", lambda: log_normal(0.3), np.ones(2),
    np.full(2, np.exp(0.045)), np.full(2, np.exp(0.045) * np.sqrt(np.expm1(0.09))))

# ---- traps ----

exact("funnel d=10, nuts", "funnel", lambda: fk.targets.Funnel(10, 9.0), sampler="nuts",
      draws=2000)
exact("funnel d=10, ram", "funnel", lambda: fk.targets.Funnel(10, 9.0), sampler="ram", **LONG)
exact("funnel d=5, am", "funnel", lambda: fk.targets.Funnel(5, 9.0), sampler="am", **LONG)
exact("funnel d=5, hmc", "funnel", lambda: fk.targets.Funnel(5, 9.0), sampler="hmc", draws=2000)
exact("funnel d=3, mala", "funnel", lambda: fk.targets.Funnel(3, 9.0), sampler="mala", **LONG)

exact("funnel d=2, kam", "funnel", lambda: fk.targets.Funnel(2, 9.0), sampler="kam", **LONG)
exact("funnel d=2, pt", "funnel", lambda: fk.targets.Funnel(2, 9.0), sampler="pt", **LONG)
exact("funnel d=5, auto", "funnel", lambda: fk.targets.Funnel(5, 9.0))

exact("strong banana, ram", "banana", lambda: fk.targets.banana(0.1, 100.0, 8), sampler="ram",
      **LONG)
exact("strong banana, am", "banana", lambda: fk.targets.banana(0.1, 100.0, 8), sampler="am",
      **LONG)
exact("strong banana, nuts", "banana", lambda: fk.targets.banana(0.1, 100.0, 8), sampler="nuts",
      draws=500, tune=300)
exact("strong banana, jumps around ram", "banana", lambda: fk.targets.banana(0.1, 100.0, 8),
      sampler=fk.ModeJumping(sampler="ram"), draws=10_000, tune=4000)
exact("strong banana, auto", "banana", lambda: fk.targets.banana(0.1, 100.0, 8))
exact("strong banana d=2, jumps around ram", "banana", lambda: fk.targets.banana(0.1, 100.0, 2),
      sampler=fk.ModeJumping(sampler="ram"), draws=20_000, tune=5000)
exact("strong banana, mala", "banana", lambda: fk.targets.banana(0.1, 100.0, 4), sampler="mala",
      **LONG)
exact("hard banana, ram", "banana", fk.targets.hard_banana, np.array([0.0, 1.0]), sampler="ram",
      draws=4000)
add("bent ridge, ram", "banana", lambda: bent, np.zeros(2), BENT_MEAN, BENT_SD, sampler="ram",
    draws=10_000)
add("bent ridge, kam", "banana", lambda: bent, np.zeros(2), BENT_MEAN, BENT_SD, sampler="kam",
    **LONG)
add("bent ridge, auto", "banana", lambda: bent, np.zeros(2), BENT_MEAN, BENT_SD)

for d, distance, sampler, share in (
        (1, 20, "ram", 0.5), (2, 15, "nuts", 0.3), (2, 30, "am", 0.5), (3, 12, "mala", 0.2),
        (5, 20, "ram", 0.5), (10, 15, "nuts", 0.4)):
    exact(f"missed mode d={d} at {distance}, {sampler}", "missed mode",
          lambda d=d, distance=distance, share=share: two(distance, d, share),
          np.full(d, -distance / 2 / np.sqrt(d)), sampler=sampler, search=False,
          draws=2000 if sampler == "nuts" else 10_000, tune=2000)
for d, sampler in ((2, "nuts"), (3, "am"), (5, "ram"), (5, "nuts")):
    exact(f"narrow within wide d={d}, {sampler}", "missed mode", lambda d=d: two_scales(d),
          sampler=sampler, draws=2000 if sampler == "nuts" else 20_000, tune=3000)
exact("spike beside a mode d=5, am", "missed mode", lambda: spike(5), sampler="am", **LONG)
exact("one chain of four in the other mode", "missed mode", lambda: two(15, 2),
      np.array([[-5.3, -5.3]] * 3 + [[5.3, 5.3]]), sampler="am", search=False, draws=10_000)
exact("basis vectors d=4, ram", "missed mode", lambda: fk.targets.basis_vectors(4),
      10 * np.eye(4), sampler="ram", search=False, draws=10_000)

exact("narrow draws of a student 3", "light proposal", lambda: student(2, 3.0),
      sampler=narrow_jumps(2, 0.8, 0.01), search=False, draws=10_000)
exact("narrow draws of a student 4, d=4", "light proposal", lambda: student(4, 4.0),
      sampler=narrow_jumps(4, 1.0, 0.01), search=False, draws=10_000)
exact("narrow draws of a gaussian d=3", "light proposal", lambda: gaussian(3, 1.0, 1.0),
      sampler=narrow_jumps(3, 0.5, 0.01), search=False, draws=10_000)
add("narrow draws of a laplace d=3", "light proposal", lambda: laplace, np.full(3, 0.1),
    np.zeros(3), np.full(3, np.sqrt(2)), sampler=narrow_jumps(3, 0.7, 0.01), search=False,
    draws=10_000)

exact("short warm-up, nuts", "short warm-up", lambda: gaussian(10, 0.01, 50.0), sampler="nuts",
      tune=10, draws=300, search=False)
exact("short warm-up, ram", "short warm-up", lambda: gaussian(5, 0.1, 20.0), 3 * np.ones(5),
      sampler=fk.RobustAdaptiveMetropolis(proposal_cov=1e-3), tune=100, draws=5000, search=False)
exact("short warm-up, am", "short warm-up", lambda: gaussian(10), 2 * np.ones(10), sampler="am",
      tune=100, draws=5000, search=False)

exact("one chain far off, rwm", "far start", lambda: gaussian(2, 1.0, 1.0),
      spread_of_starts(2, 100.0, 1), sampler=fk.RandomWalk(proposal_cov=1.0), tune=0,
      draws=20_000, search=False)
exact("two chains far off, rwm", "far start", lambda: gaussian(3, 1.0, 2.0),
      spread_of_starts(3, 60.0, 2), sampler=fk.RandomWalk(proposal_cov=1.0), tune=0,
      draws=20_000, search=False)
exact("all chains far off, rwm", "far start", lambda: gaussian(2, 1.0, 1.0),
      spread_of_starts(2, 200.0, 4), sampler=fk.RandomWalk(proposal_cov=1.0), tune=0,
      draws=20_000, search=False)
exact("one chain far off, mala", "far start", lambda: student(2, 8.0),
      spread_of_starts(2, 300.0, 1), sampler=fk.MALA(step_size=0.7), tune=0, draws=20_000,
      search=False)

add("gradient reversed, mala", "wrong gradient", lambda: WrongGradient(-1.0, [1.0, 3.0]),
    np.ones(2), np.zeros(2), [1.0, 3.0], sampler="mala", draws=5000)
add("gradient reversed, nuts", "wrong gradient",
    lambda: WrongGradient(-1.0, np.linspace(1, 3, 5)), np.ones(5), np.zeros(5),
    np.linspace(1, 3, 5), sampler="nuts", draws=500, tune=500)
add("gradient tenfold, mala", "wrong gradient", lambda: WrongGradient(10.0, [1.0, 30.0]),
    np.ones(2), np.zeros(2), [1.0, 30.0], sampler="mala", search=False, draws=5000)

exact("student 2.2, ram", "heavy tails", lambda: student(2, 2.2), sampler="ram", **LONG)
exact("student 2.2, nuts", "heavy tails", lambda: student(2, 2.2), sampler="nuts", draws=3000)
exact("student 2.5, d=5, am", "heavy tails", lambda: student(5, 2.5), sampler="am", **LONG)
exact("student 2.1, mala", "heavy tails", lambda: student(2, 2.1), sampler="mala", search=False,
      **LONG)
exact("student 2.1, hmc", "heavy tails", lambda: student(2, 2.1), sampler="hmc", search=False,
      draws=3000)
add("log-normal 1.5, ram", "heavy tails", lambda: log_normal(1.5), np.ones(2),
    np.full(2, np.exp(1.125)), np.full(2, np.exp(1.125) * np.sqrt(np.expm1(2.25))),
    sampler="ram", **LONG)
add("log-normal 2, ram", "heavy tails", lambda: log_normal(2.0), np.ones(2),
    np.full(2, np.exp(2)), np.full(2, np.exp(2) * np.sqrt(np.expm1(4))), sampler="ram", **LONG)
add("estimated with an error of 4", "dominating estimate", lambda: noisy(4.0), np.zeros(2),
    np.zeros(2), np.ones(2), sampler="ram", draws=5000)

# the default call; its runs of a funnel and of bends are above

exact("funnel d=3, default", "funnel", lambda: fk.targets.Funnel(3, 9.0))
exact("hard banana, default", "banana", fk.targets.hard_banana, np.array([0.0, 1.0]))
exact("missed mode d=5 at 30, default", "missed mode", lambda: two(30, 5),
      np.full(5, -15 / np.sqrt(5)))
exact("missed mode d=2 at 60, default", "missed mode", lambda: two(60, 2, 0.3),
      np.full(2, -30 / np.sqrt(2)))
exact("narrow within wide d=5, default", "missed mode", lambda: two_scales(5))
exact("spike beside a mode d=5, default", "missed mode", lambda: spike(5))
exact("basis vectors d=6, default", "missed mode", lambda: fk.targets.basis_vectors(6))
exact("student 2.2, default", "heavy tails", lambda: student(2, 2.2))
exact("student 2.5, d=5, default", "heavy tails", lambda: student(5, 2.5))
add("log-normal 1.5, default", "heavy tails", lambda: log_normal(1.5), np.ones(2),
    np.full(2, np.exp(1.125)), np.full(2, np.exp(1.125) * np.sqrt(np.expm1(2.25))))
add("gradient reversed, default", "wrong gradient", lambda: WrongGradient(-1.0, [1.0, 3.0]),
    np.ones(2), np.zeros(2), [1.0, 3.0])
