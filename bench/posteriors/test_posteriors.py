"""Gradients of the posteriors, and the moments that are known exactly."""

import numpy as np
import pytest

from bench.posteriors.densities import POSTERIORS


@pytest.mark.parametrize("name", POSTERIORS)
def test_gradient_is_that_of_the_density(name):
    one = POSTERIORS[name]
    rng = np.random.default_rng(1)
    for _ in range(3):
        x = one.x0 + 0.1 * rng.standard_normal(one.d)
        value, found = one.logp_and_grad(x)
        assert value == pytest.approx(one.logp(x), rel=1e-12)
        steps = 1e-5 * np.eye(one.d)
        wanted = [(one.logp(x + h) - one.logp(x - h)) / 2e-5 for h in steps]
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7 * (1 + np.abs(value)))
