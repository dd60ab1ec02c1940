"""The evidence by bridge sampling, and its standard error; with planted mistakes that are noticed.

Seeds are fixed, and false-alarm rates are 1e-4 a test. z is the error in standard errors.
"""

import numpy as np
import pytest
from scipy import stats
from scipy.signal import lfilter
from scipy.special import gammaln

import fastkam as fk
from fastkam.evidence import bridged, proposals
from fastkam.evidence.bridge import Pairs, bridge
from fastkam.evidence.bridged import from_draws
from fastkam.search.mixture import Mixture

LEVEL = 5e-5    # of either side


def normal(z):
    return -0.5 * np.square(z).sum(axis=-1) - 0.5 * z.shape[-1] * np.log(2 * np.pi)


def correlated(rng, chains, n, d, phi):
    """Normal series (chains, n, d), AR(1) along n, in their stationary distribution."""
    noise = rng.standard_normal((chains, n, d))
    noise[:, 1:] *= np.sqrt(1 - phi**2)
    return lfilter([1.0], [1.0, -phi], noise, axis=1)


def bent(z):
    """A banana of these points."""
    x = z.copy()
    x[..., 0] = 3 * z[..., 0]
    x[..., 1] = z[..., 1] + 0.3 * (x[..., 0] ** 2 - 9)
    return x


def straight(x):
    z = x.copy()
    z[..., 1] = x[..., 1] - 0.3 * (x[..., 0] ** 2 - 9)
    z[..., 0] = x[..., 0] / 3
    return z


MIXING = np.linalg.cholesky(np.full((20, 20), 1 - 1e-6) + 1e-6 * np.eye(20)).T   # of x


def mixed_normal(x):
    return normal(x @ np.linalg.inv(MIXING)) - np.linalg.slogdet(MIXING)[1]


CASES = {   # seeds, d, autocorrelation, chains, draws, evaluations, density
    "normal, d = 2": (80, 2, 0.5, 4, 500, None, lambda z: z, normal),
    "normal, d = 10": (80, 10, 0.5, 4, 500, None, lambda z: z, normal),
    "two chains": (80, 10, 0.5, 2, 1000, None, lambda z: z, normal),
    "noisy fits": (800, 20, 0.0, 2, 250, 300, lambda z: z @ MIXING, mixed_normal),
    "few draws": (80, 60, 0.0, 4, 100, 400, lambda z: z, normal),
    "slow chains": (60, 3, 0.9, 4, 1000, None, lambda z: z, normal),
    "banana": (40, 3, 0.5, 4, 600, None, bent, lambda x: normal(straight(x)) - np.log(3)),
}


def scores(case, seeds=None):
    """z of each seed, of draws that come from the density exactly, log Z = 0."""
    usual, d, phi, chains, n, evaluations, shape, density = CASES[case]
    z = []
    for seed in range(seeds or usual):
        rng = np.random.default_rng(seed)
        x = shape(correlated(rng, chains, n, d, phi))
        value, error = from_draws(x, density(x), density, evaluations, (400, 2000), rng).estimate
        z.append(value / error)
    return np.array(z)


def is_right(z, slack=1.1):
    """Whether 95 % intervals cover 92 to 98 %, and z has the mean 0 and the mean square 1.

    The estimated errors vary by themselves, which the slack of the mean square allows for.
    """
    n = len(z)
    covered = int((np.abs(z) < 1.96).sum())
    low, high = stats.binom.ppf(LEVEL, n, 0.92), stats.binom.isf(LEVEL, n, 0.98)
    least, most = stats.chi2.ppf([LEVEL, 1 - LEVEL], n) / n
    return (low <= covered <= high and abs(z.mean()) * np.sqrt(n) < stats.norm.isf(LEVEL) * slack
            and least / slack**2 < np.mean(z**2) < most * slack**2)


@pytest.mark.parametrize("case", CASES)
def test_standard_errors_are_right(case):
    z = scores(case)
    assert is_right(z, 1.05 if case == "noisy fits" else 1.1), (
        np.mean(np.abs(z) < 1.96), z.mean(), np.sqrt(np.mean(z**2)))


def test_fits_taken_as_independent_are_noticed(monkeypatch):
    """The planted mistake: that q was fitted to the draws of the other bridges does not count."""
    monkeypatch.setattr(bridged, "crossed_share", lambda bridges, across: 0.0)
    z = scores("noisy fits")
    assert not is_right(z, slack=1.05), np.sqrt(np.mean(z**2))


@pytest.mark.parametrize("d", [2, 5])
def test_shrunk_correlations_do_not_harm_a_narrow_density(d):
    """Correlations of 1 - 5e-7: the error of log Z is as small as of independent coordinates."""
    rng = np.random.default_rng(1)
    x = correlated(rng, 4, 500, d, 0.0)
    off = []
    for scale in (1.0, 1e-3):
        L = np.eye(d)
        L[1:, 0], L[1:, 1:] = 1.0 - scale, scale * np.eye(d - 1)
        made = from_draws(x @ L.T, normal(x) - np.log(np.diag(L)).sum(),
                          lambda y, L=L: normal(np.linalg.solve(L, y.T).T)
                          - np.log(np.diag(L)).sum(), 1000, (400, 2000), rng)
        off.append(made.estimate[1])
    assert off[1] < 1.3 * off[0]


def test_few_draws_of_many_dimensions():
    """Their noise does not get into q where correlations are small."""
    off = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = correlated(rng, 4, 100, 60, 0.0)
        off.append(from_draws(x, normal(x), normal, 400, (400, 2000), rng).estimate[0])
    assert np.sqrt(np.mean(np.square(off))) < 0.1


@pytest.mark.parametrize("lowest", [-1e3, -1e59, -1e62, -1e200])
def test_a_draw_of_q_where_the_density_is_nearly_0(lowest):
    """A draw counts as one where the density is 0, however low its logarithm is."""
    rng = np.random.default_rng(4)
    chain = -1.5 + 0.3 * rng.standard_normal((4, 1000)) + 0.3**2 / 2
    own = -1.5 + 0.3 * rng.standard_normal(4000) - 0.3**2 / 2
    values = []
    for own[7] in (lowest, -np.inf):
        values.append(bridge(Pairs(chain, np.full((4, 1000), np.nan), own)).log_z)
    assert values[0] == pytest.approx(values[1], abs=1e-9)
    assert values[0] == pytest.approx(-1.5, abs=0.02)


def test_a_q_fitted_to_the_draws_that_it_is_bridged_with_is_noticed(monkeypatch):
    """The planted mistake: each fold's q is fitted to all draws."""
    monkeypatch.setattr(proposals, "others", lambda z, fold: z)
    z = scores("normal, d = 10")
    assert not is_right(z), (z.mean(), np.sqrt(np.mean(z**2)))


def test_a_q_that_is_normalized_wrongly_is_noticed(monkeypatch):
    """The planted mistake: the weights of q sum to 1.05 where its density is computed."""
    density = Mixture.log_density
    monkeypatch.setattr(Mixture, "log_density", lambda q, X: density(q, X) + np.log(1.05))
    assert not is_right(scores("normal, d = 2", 40))


# ---- runs ----

COUNTS, SHAPE, RATE = np.array([3, 0]), 2.0, 0.5
RATES_TRUTH = float((SHAPE * np.log(RATE) - (SHAPE + COUNTS) * np.log(RATE + 1)
                     + gammaln(SHAPE + COUNTS) - gammaln(SHAPE) - gammaln(COUNTS + 1)).sum())


def rates(seed, sampler):
    """A run of a Poisson model with gamma priors, in logarithms of the rates."""
    def loglike(x):
        return (COUNTS * np.log(x) - x - gammaln(COUNTS + 1)).sum(axis=1)

    return fk.sample(loglike, prior={"x": (stats.gamma(SHAPE, scale=1 / RATE), 2)},
                     vectorized=True, sampler=sampler, draws=1000, tune=500, seed=seed,
                     diagnose=False, progress=False)


def of_runs(sampler, seeds=24, **options):
    found = [rates(seed, sampler).log_evidence(**options) for seed in range(seeds)]
    return np.array([(one.value - RATES_TRUTH) / one.error for one in found])


@pytest.mark.parametrize(("sampler", "options"), [
    ("ram", {}), ("jumps", {"method": "frozen_bridge", "evaluations": 0})])
def test_transformed_parameters(sampler, options):
    """24 runs, by a fitted q, and by the proposals that `jumps` has made from its own."""
    z = of_runs(sampler, **options)
    assert is_right(z, slack=1.2), (z.mean(), np.sqrt(np.mean(z**2)))


def test_a_jacobian_left_out_is_noticed(monkeypatch):
    """The planted mistake: the density of the logarithms is taken as that of the rates."""
    def without(window, state):
        z, log_p = draws_in(window, state)
        return z, log_p - state.coordinates.log_jacobian(z)

    def at(self, z):
        return call(self, z) - z.sum(axis=1)

    draws_in, call = bridged.draws_in, bridged.Density.__call__
    monkeypatch.setattr(bridged, "draws_in", without)
    monkeypatch.setattr(bridged.Density, "__call__", at)
    assert not is_right(of_runs("ram", 8))


def test_proposals_of_another_move_are_noticed(monkeypatch):
    """The planted mistake: hops are taken for draws of q."""
    monkeypatch.setattr(proposals, "INDEPENDENT", 0)
    assert not is_right(of_runs("jumps", 12, method="frozen_bridge", evaluations=0))


def test_a_missed_mode_of_q_makes_the_error_large_or_is_noted():
    """A fourth of the chains in a mode of their own, which no other chain has seen."""
    rng = np.random.default_rng(1)
    x = correlated(rng, 4, 500, 2, 0.5)
    x[3] += 20

    def density(y):
        return np.logaddexp(normal(y) + np.log(0.9), normal(y - 20) + np.log(0.1))

    made = from_draws(x, density(x), density, 2000, (400, 2000), rng)
    value, error = made.estimate
    assert bridged.doubts(made)
    assert not error < 0.3 or abs(value) < 3 * error
