"""The gradients of the generalized speed measure, against differences of the measure itself.

The objective of one draw, at fixed x and e, is min(0, log ratio) + beta sum_i log L_ii; "plain"
steps of size rho move L by rho times its gradient. The fast form of gadmala takes grad log pi(y)
for a constant.
"""

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam._core.engine.chain import ChainState
from fastkam._core.engine.group import Group
from fastkam.samplers import SAMPLERS

BETA, RHO, D = 1.7, 1e-6, 4
TARGET = fk.targets.banana(b=0.3, V=2.0, d=D)


def hvp(x, v):
    """The Hessian at x times v, by differences that are exact to 1e-10."""
    h = 1e-3 * np.array([1, -1, 2, -2])
    g = [TARGET.logp_grad(x + a * v)[1] for a in h]
    return (8 * (g[0] - g[1]) - (g[2] - g[3])) / (12e-3)


def objective(name, exact, x, e, L, at_y=None):
    """(objective, log ratio, grad log pi(y)); with `at_y` that gradient is held there."""
    lp, g = TARGET.logp_grad(x)
    h = e if name == "gadrwm" else 0.5 * L.T @ g + e
    y = x + L @ h
    lp_y, g_y = TARGET.logp_grad(y)
    g_y = g_y if at_y is None else at_y
    log_ratio = lp_y - lp
    if name == "gadmala":
        v = h + 0.5 * L.T @ g_y
        log_ratio += 0.5 * (e @ e - v @ v)
    return min(0.0, log_ratio) + BETA * np.log(np.diag(L)).sum(), log_ratio, g_y


def numerical(name, exact, x, e, L, diagonal):
    _, _, g_y = objective(name, exact, x, e, L)
    held = None if exact or name == "gadrwm" else g_y
    found = np.zeros((D, D))
    for i in range(D):
        for j in range(i + 1):
            if diagonal and i != j:
                continue
            E = np.zeros((D, D))
            E[i, j] = 1e-4
            f = [objective(name, exact, x, e, L + k * E, held)[0] for k in (1, -1, 2, -2)]
            found[i, j] = (8 * (f[0] - f[1]) - (f[2] - f[3])) / 12e-4
    return found


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize(("name", "exact", "product"), [
    ("gadrwm", False, None), ("gadmala", False, None), ("gadmala", True, None),
    ("gadmala", True, hvp)])
def test_gradient(name, exact, product, diagonal):
    """To 1e-8 of its size for each of many draws, better and worse than x."""
    rng = np.random.default_rng(3)
    options = {"exact": True} if exact else {}
    seen = {True: 0, False: 0}
    for seed in range(40):
        A = rng.standard_normal((D, D))
        L = np.linalg.cholesky(0.2 * A @ A.T + 0.3 * np.eye(D))
        L = np.diag(np.diag(L)) if diagonal else L
        x = TARGET.sample(1, seed)[0]
        sampler = SAMPLERS[name](proposal_cov=np.diag(L) ** 2 if diagonal else L @ L.T,
                                 diagonal=diagonal,
                                 optimizer="plain", entropy_weight=BETA, **options)
        kernel = sampler.build(x)
        chain = ChainState(kernel, np.random.PCG64(seed), x)
        target = fk.Target.from_python(TARGET.logp_grad, D, gradient=True, hvp=product)
        group = Group(target.bind(), [chain], (RHO, 0.0, 0.0, 1.0, 0, None, 0.0))
        group.start()
        group.run(1)
        e = np.asarray(kernel.e)
        after = np.diag(np.asarray(kernel.L)[:, 0]) if diagonal else np.asarray(kernel.L)
        ours = (after - L) / RHO
        _, log_ratio, _ = objective(name, exact, x, e, L)
        expected = numerical(name, exact, x, e, L, diagonal)
        seen[log_ratio < 0] += 1
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-8 * np.abs(expected).max())
    assert min(seen.values()) > 5


def test_a_product_that_raises_stops_the_run_and_can_be_mended():
    def broken(x, v):
        raise ArithmeticError("no Hessian here")

    options = {"sampler": fk.GradientAdaptiveMALA(exact=True), "tune": 100, "draws": 50, "seed": 1}
    targets = [fk.Target.from_python(TARGET.logp_grad, D, gradient=True, hvp=h)
               for h in (broken, hvp)]
    with pytest.raises(fk.SamplingError, match="raised ArithmeticError: no Hessian") as caught:
        sample(targets[0], np.zeros(D), **options)
    whole = sample(targets[1], np.zeros(D), **options)
    resumed = caught.value.result.resume(target=targets[1])
    np.testing.assert_array_equal(resumed.draws, whole.draws)


def test_hvp_must_be_callable():
    with pytest.raises(TypeError, match="hvp must be callable, not 3"):
        fk.Target.from_python(TARGET.logp_grad, D, gradient=True, hvp=3)
