"""Components of a density whose parameters can be exchanged: runs name them, and visit all orders.
"""

from itertools import permutations

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import fastkam as fk

RNG = np.random.default_rng(0)
Y = np.r_[RNG.normal(-3, 0.5, 40), RNG.normal(4, 1.0, 60)]


def of_components(mu, sigma, w):
    """Log likelihood of a mixture; arrays (K,)."""
    z = (Y - mu[:, None]) / sigma[:, None]
    return logsumexp(np.log(w / sigma)[:, None] - 0.5 * z**2, axis=0).sum()


def of_numbers(mu1, mu2, s1, s2):
    return of_components(np.array([mu1, mu2]), np.array([s1, s2]), np.full(2, 0.5))


def of_vector(x):
    return of_numbers(*x[:2], *np.exp(x[2:])) - 0.5 * x @ x / 100


def of_hidden_states(mu, P):
    """Two states, whose transitions are exchanged along both axes."""
    stationary = P[1, 0] / (P[1, 0] + P[0, 1])
    return (of_components(mu, np.ones(2), np.array([stationary, 1 - stationary]))
            + np.log(P).sum())


def prior_of(**named):
    return {"prior": named}


POSITIVE, WIDE = stats.halfnorm(scale=3), stats.norm(0, 10)
FORMS = {
    "arrays": (of_components, prior_of(mu=(WIDE, 3), sigma=(POSITIVE, 3),
                                       w=stats.dirichlet([1, 1, 1])),
               "mu[0], sigma[0] and w[0] with mu[1], sigma[1] and w[1]"),
    "numbers": (of_numbers, prior_of(mu1=WIDE, mu2=WIDE, s1=POSITIVE, s2=POSITIVE),
                "mu1 and s1 with mu2 and s2"),
    "vector": (of_vector, {"x0": [1.0, 4.0, 0.0, 0.0]}, "x[0] and x[2] with x[1] and x[3]"),
    "matrix": (of_hidden_states, prior_of(mu=(WIDE, 2), P=(stats.uniform(0, 1), (2, 2))),
               "mu[0], P[0, 0] and P[0, 1] with mu[1], P[1, 1] and P[1, 0]"),
}


def run(f, **options):
    return fk.sample(f, seed=1, progress=False, **{
        "sampler": "am", "draws": 120, "tune": 300, "chains": 4} | options)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")
def test_components_that_can_be_exchanged_are_named(form):
    f, options, names = FORMS[form]
    result = run(f, **options)
    found = [one for one in result.verdict().reasons if one.kind == "labels"]
    assert len(found) == 1
    assert f"one exchanges {names}." in found[0].text
    assert found[0].status == "ok"
    assert len(result.resume(20).verdict().reasons) > 1
    again = [line for line in result.resume(20).search if "exchanges" in line]
    assert len(again) == 1


@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")
def test_its_evaluations_are_counted_and_its_line_is_there_once():
    with_it, without = (run(of_components, **FORMS["arrays"][1], diagnose=diagnose)
                        for diagnose in (True, False))
    assert 3 <= with_it.evaluations - without.evaluations <= 60
    np.testing.assert_array_equal(with_it.draws, without.draws)
    alone = run(of_vector, x0=FORMS["vector"][1]["x0"], search=False)
    assert alone.evaluations == 4 * (300 + 120)
    result = run(of_components, **FORMS["arrays"][1], draws=None, budget=20_000)
    for one in (result, result.resume()):
        assert sum("exchanges" in line for line in one.search) == 1


@pytest.mark.parametrize(("f", "options"), [
    (lambda x: -0.5 * x @ x, {"x0": np.zeros(6), "tune": 50}),
    (of_components, FORMS["arrays"][1] | {"transforms": {"mu": "ordered"}}),
    (lambda mu, sigma, w: of_components(mu, sigma, w) - mu[0] / 100, FORMS["arrays"][1]),
    (of_vector, FORMS["vector"][1] | {"diagnose": False}),
])
@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")
def test_other_densities_are_not_said_to_have_such_components(f, options):
    """One mode, an order, components that differ, and a run whose draws are not checked."""
    result = run(f, **options)
    assert result.verdict().status != "ok"
    assert "labels" not in [one.kind for one in result.verdict().reasons]


PLACES, SIZES = np.array([-5.0, -1.0, 2.0, 8.0]), np.array([0.1, 0.2, 0.3, 0.4])
ORDERS = np.array(list(permutations(range(4))))


def standardized(mu, s):
    each = (mu[ORDERS] - PLACES) / 0.3, (s[ORDERS] - SIZES) / (0.2 * SIZES)
    return np.concatenate(each, axis=1)


def of_four(mu, s):
    """A mode for each of 24 orders."""
    return np.logaddexp.reduce(-0.5 * (standardized(mu, s) ** 2).sum(axis=1))


def slope_of_four(x):
    """The same with its gradient, of a vector."""
    z = standardized(*np.split(x, 2))
    logs = -0.5 * (z**2).sum(axis=1)
    each = np.exp(logs - logs.max())[:, None] * z / np.r_[np.full(4, 0.3), 0.2 * SIZES]
    slope = np.zeros(8)
    np.subtract.at(slope, np.hstack([ORDERS, 4 + ORDERS]), each / np.exp(logs - logs.max()).sum())
    return np.logaddexp.reduce(logs), slope


WHOLE = stats.uniform(-20, 40)
FOUR = {
    "arrays": (of_four, prior_of(mu=(WHOLE, 4), s=(stats.uniform(0, 5), 4))),
    "logarithms": (of_four, {"x0": {"mu": PLACES, "s": SIZES}, "bounds": {"s": (0, None)}}),
    "numbers": (lambda a1, a2, a3, a4, b1, b2, b3, b4: of_four(
        np.array([a1, a2, a3, a4]), np.array([b1, b2, b3, b4])),
        {"x0": {f"{name}{k}": values[k - 1] for name, values in [("a", PLACES), ("b", SIZES)]
                for k in range(1, 5)}}),
    "vector": (lambda x: of_four(*np.split(x, 2)), {"x0": np.r_[PLACES, SIZES]}),
    "gradient": (slope_of_four, {"x0": np.r_[PLACES, SIZES]}),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("form", FOUR)
def test_all_orders_have_their_share(form, seed):
    """None of 32 z-scores is beyond 5 in all but 1 of 50 000 runs."""
    f, options = FOUR[form]
    result = fk.sample(f, seed=seed, progress=False, **options)
    reasons = result.verdict().reasons
    assert [(one.kind, one.status) for one in reasons if one.kind == "labels"] == [("labels", "ok")]
    order = np.argsort(result.draws[..., :4], axis=2) @ [64, 16, 4, 1]
    assert len(np.unique(order)) == 24
    each = {str(k): (order == k).astype(float) for k in np.unique(order)}
    shares = fk.diagnostics.summary(each)
    assert (np.abs(shares["mean"] - 1 / 24) < 5 * shares["mcse_mean"]).all()
    table = result.summary()
    assert (np.abs(table["mean"][:4] - PLACES.mean()) < 5 * table["mcse_mean"][:4]).all()
    assert (np.abs(table["mean"][4:] - SIZES.mean()) < 5 * table["mcse_mean"][4:]).all()
    assert result.evaluations < 150_000
