"""Minimization by BFGS, beside SciPy's."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize, rosen, rosen_der

from fastkam.numerics.descent import minimized

RNG = np.random.default_rng(1)
Q = np.linalg.qr(RNG.standard_normal((6, 6)))[0]
P = Q @ np.diag(np.geomspace(1, 1e3, 6)) @ Q.T


def quadratic(x):
    return 0.5 * float(x @ P @ x)


def heavy(x):
    """A Student distribution, whose tails are not convex."""
    return 0.5 * (len(x) + 3) * float(np.log1p(x @ x / 3))


def two(x):
    return -float(np.logaddexp(-0.5 * ((x - 4) ** 2).sum(), -2 * ((x + 4) ** 2).sum()))


def ridge(x):
    return x[0] ** 2 / 200 + 0.5 * (x[1] + 0.03 * x[0] ** 2 - 3) ** 2 + 0.5 * float(x[2:] @ x[2:])


def by_differences(f):
    return lambda x, at: approx_fprime(x, f, 1e-7)


@pytest.mark.parametrize("f", [quadratic, heavy, two, ridge])
def test_the_minimum_is_as_low_as_scipys_for_hardly_more_calls(f):
    calls = [0, 0]

    def counted(k):
        def call(x):
            calls[k] += 1
            return f(x)
        return call

    for scale in (1, 10, 40):
        for _ in range(10):
            x0 = scale * RNG.standard_normal(6)
            x, value, arrived = minimized(counted(0), by_differences(counted(0)), x0, most=80,
                                          least=1e-6)
            other = minimize(counted(1), x0, method="L-BFGS-B", options={"ftol": 1e-6})
            assert arrived
            assert value == f(x)
            assert value < other.fun + 1e-3
    assert calls[0] < 1.5 * calls[1]


def test_a_curved_valley():
    x, value, arrived = minimized(rosen, lambda x, at: rosen_der(x), np.zeros(4), most=200,
                                  least=1e-12)
    assert arrived
    np.testing.assert_allclose(x, 1, atol=1e-4)
    assert value < 1e-8


def test_steps_end_at_an_edge_and_at_the_limit():
    def walled(x):
        return 0.5 * float(x @ x) if (x > -1).all() else np.inf

    _, value, arrived = minimized(walled, by_differences(walled), np.array([30.0, 2.0]), most=80,
                                  least=1e-6)
    assert arrived
    assert value < 1e-8
    *_, arrived = minimized(lambda x: float(x[0]), lambda x, at: np.ones(1), np.zeros(1), most=5,
                            least=1e-6)
    assert not arrived      # it has no minimum
    *_, arrived = minimized(lambda x: np.nan, lambda x, at: np.full(1, np.nan), np.zeros(1), most=5,
                            least=1e-6)
    assert not arrived


def test_a_minimum_is_no_step_away():
    x, value, arrived = minimized(quadratic, by_differences(quadratic), np.zeros(6), most=5,
                                  least=1e-6)
    assert arrived
    assert value == 0
    assert (x == 0).all()
