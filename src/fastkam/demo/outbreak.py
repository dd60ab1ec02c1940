"""Demonstration: an SIR model, solved at compiled speed, of an outbreak of influenza in a school.

    S' = -beta S I / N,   I' = beta S I / N - gamma I,   S(0) = N - i0, I(0) = i0
    in bed on day t ~ negative binomial with mean I(t) and variance I(t) + I(t)^2 / phi

The density is a function of (log beta, log gamma, log i0, log phi): a compiled one, and an ordinary
Python function with SciPy's solver, which is set beside it.

The counts were published as a figure only (Influenza in a boarding school. British Medical Journal,
4 March 1978, 1:587), so that transcriptions differ by a few boys. These are those of De Vries, G.,
Hillen, T., Lewis, M., Müller, J. and Schönfisch, B. (2006), A Course in Mathematical Biology,
SIAM, chapter 9, as in the data set influenza_england_1978_school of the R package outbreaks.
"""

from __future__ import annotations

from math import exp
from time import perf_counter

import numpy as np

from fastkam._core.targets.outbreak import OutbreakDensity
from fastkam.demo import report
from fastkam.diagnostics import summary
from fastkam.diagnostics.checks import convergence
from fastkam.plots.style import new_figure

IN_BED = np.array([3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4])
DAYS = np.arange(1.0, 15.0)
BOYS = 763
NAMES = ["log_beta", "log_gamma", "log_i0", "log_phi"]
PRIOR_MEAN = np.array([0.0, -1.0, 0.0, 2.0])  # sd 1 each
CHECKED, TIMED = 30, 1.0  # points at which both are compared; most seconds of that
REPEATED = 50  # times that the compiled density is evaluated there


def run(folder, *, seed, quick):
    """Sample, print what is seen, write figure and draws to `folder`."""
    report.heading("Influenza in a boarding school, 1978: an SIR model at compiled speed")
    print(f"Boys in bed on days 1 to 14, of {BOYS}: {' '.join(map(str, IN_BED))}")
    print("Priors: log beta N(0, 1), log gamma N(-1, 1), log i0 N(0, 1), log phi N(2, 1).")
    result = report.sampled(compiled(), PRIOR_MEAN, draws=500 if quick else 2000, names=NAMES,
                            seed=seed)
    known = summary(quantities(result.draws), list(QUANTITIES))
    rows = [
        [words, f"{known['mean'][i]:.2f}", f"{known['sd'][i]:.2f}",
         f"{known['q5'][i]:.2f} to {known['q95'][i]:.2f}", f"{known['ess_bulk'][i]:.0f}",
         f"{known['r_hat'][i]:.3f}"]
        for i, words in enumerate(QUANTITIES.values())
    ]
    report.table(["", "mean", "sd", "90 % interval", "ESS", "R-hat"], rows)
    report.say(f"{convergence(result.summary())} {report.speed(result)}")
    report.say(beside_scipy(result, seed))
    print()
    report.save(result, lambda: figure(result, seed), folder, "outbreak")
    return result


QUANTITIES = {
    "R0": "R0 = beta / gamma",
    "period": "infectious period 1 / gamma (days)",
    "i0": "infected on day 0",
    "phi": "phi (less is more scatter)",
}


def quantities(draws):
    """Quantities of epidemiology, (chains, draws, 4), from draws of the parameters."""
    log_beta, log_gamma, log_i0, log_phi = np.moveaxis(draws, -1, 0)
    return np.exp(np.stack([log_beta - log_gamma, -log_gamma, log_i0, log_phi], axis=-1))


def compiled():
    """The density as a target that solves its equations without Python."""
    target = OutbreakDensity()
    target.set_up(DAYS, IN_BED.astype(float), float(BOYS), PRIOR_MEAN)
    return target


def beside_scipy(result, seed):
    """Time the same density in Python with SciPy's solver, and compare its values with ours."""
    rng = np.random.default_rng(seed)
    points = result.draws.reshape(-1, result.d)
    points = points[rng.integers(len(points), size=CHECKED)]
    python, ours = LogDensity(), result.target
    python(points[0])  # imports the solver
    values: list[float] = []
    begin = perf_counter()
    while len(values) < CHECKED and perf_counter() - begin < TIMED:
        values.append(python(points[len(values)]))
    slow = (perf_counter() - begin) / len(values)
    some = np.tile(points, (REPEATED, 1))
    begin = perf_counter()
    ours.logp(some)
    quick = (perf_counter() - begin) / len(some)
    apart = np.abs(np.array(values) - ours.logp(points[: len(values)])).max()
    return (
        f"An evaluation takes {report.grouped(1e6 * quick)} microseconds, and "
        f"{report.grouped(1e6 * slow)} as a Python function with SciPy's solver, with which all "
        f"would take {report.grouped(result.evaluations * slow)} s; at {len(values)} draws the two "
        f"differ by at most {apart:.1g}. A function of yours in "
        "C or numba is called as this one is: see docs/targets.md.")


class LogDensity:
    """log prior + log likelihood, up to a constant, in Python and SciPy."""

    def __init__(self):
        from scipy.special import gammaln

        self.gammaln = gammaln
        self.constant = -gammaln(IN_BED + 1.0).sum()

    def __call__(self, x):
        """The log density at x (4,)."""
        beta, gamma, i0, phi = np.exp(x)
        if not (i0 < BOYS and phi < 1e10):
            return -np.inf
        infected = solve(beta, gamma, i0, DAYS)
        if infected is None:
            return -np.inf
        total = infected + phi
        likelihood = (
            self.gammaln(IN_BED + phi).sum()
            - len(IN_BED) * self.gammaln(phi)
            + self.constant
            + (IN_BED * np.log(infected / total) + phi * np.log(phi / total)).sum()
        )
        return likelihood - 0.5 * np.square(x - PRIOR_MEAN).sum()


def solve(beta, gamma, i0, days):
    """I at the days (k,), at least 1e-6; None where the solver gives up.

    Of s = S / N and u = log I, so that a small I keeps its relative accuracy.
    """
    from scipy.integrate import odeint  # 0.2 s to import

    def slope(state, _t):
        s, u = state
        infection = beta * s
        return -infection * exp(u) / BOYS, infection - gamma

    states, about = odeint(
        slope, (1 - i0 / BOYS, np.log(i0)), np.concatenate([[0.0], days]),
        rtol=1e-6, atol=1e-8, full_output=True,
    )
    if about["message"] != "Integration successful.":
        return None
    return np.exp(np.maximum(states[1:, 1], np.log(1e-6)))


def predictions(result, seed, days, size=1000):
    """Counts that the model predicts on the days, (size, k), each for a draw of the posterior."""
    rng = np.random.default_rng(seed)
    flat = result.draws.reshape(-1, result.d)
    counts = []
    for x in flat[rng.integers(len(flat), size=size)]:
        beta, gamma, i0, phi = np.exp(x)
        mean = result.target.solve(beta, gamma, i0, days)
        counts.append(rng.poisson(mean * rng.gamma(phi, 1 / phi, size=len(days))))
    return np.array(counts)


def figure(result, seed):
    """The counts, and the band that holds 90 % of what the model predicts."""
    days = np.arange(0.5, 15.01, 0.5)
    low, middle, high = np.quantile(predictions(result, seed, days), [0.05, 0.5, 0.95], axis=0)
    drawn = new_figure(7, 4)
    axes = drawn.subplots()
    axes.fill_between(days, low, high, color="C0", alpha=0.25, lw=0, label="90 % prediction")
    axes.plot(days, middle, color="C0", label="median")
    axes.plot(DAYS, IN_BED, "ko", ms=4, label="data")
    axes.set(xlabel="day", ylabel="boys in bed", xlim=(0, 15), ylim=(0, None),
             title="Influenza in a boarding school, 1978")
    axes.legend(frameon=False)
    return drawn
