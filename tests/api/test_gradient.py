"""Samplers that need a gradient: what they refuse, wrong gradients, the automatic choice."""

import warnings

import densities
import numpy as np
import pytest
from densities import D, ctypes_function
from runs import sample
from scipy import stats

import fastkam as fk
from fastkam.density.gradient import check_start


def good(x):
    return -0.5 * x @ x - x[0] ** 4, -x - 4 * np.r_[x[0] ** 3, np.zeros(len(x) - 1)]


def wrong_at(j, factor):
    def density(x):
        logp, grad = good(x)
        grad[j] *= factor
        return logp, grad
    return density


# ---- check_gradient ----


@pytest.mark.parametrize("x", [[0.0, 0.0, 0.0], [3.0, -1e4, 1e-5]])
def test_a_right_gradient(x):
    check = fk.check_gradient(good, x)
    assert check.ok
    assert "agrees" in str(check)
    off = np.abs(check.numerical - check.gradient)
    assert (off <= 10 * check.error + 1e-9 * np.abs(check.gradient)).all()


@pytest.mark.parametrize("j", [0, 1, 2])
@pytest.mark.parametrize("factor", [-1.0, 2.0, 1.01])
def test_a_wrong_gradient_is_found_with_its_coordinate(j, factor):
    check = fk.check_gradient(wrong_at(j, factor), [1.0, 2.0, -1.5])
    assert check.worst == j
    assert check.wrong.tolist() == [i == j for i in range(3)]
    assert f"coordinate {j}: gradient " in str(check)


def test_noise_in_the_density_is_not_taken_for_a_wrong_gradient():
    """A solver's tolerance of 1e-7 in log pi, and a gradient that is right to it."""
    rng = np.random.default_rng(1)

    def noisy(x):
        logp, grad = good(x)
        return logp + 1e-7 * rng.standard_normal(), grad

    for x in rng.standard_normal((50, 3)):
        assert fk.check_gradient(noisy, x).ok


def test_bad_arguments_of_check_gradient():
    with pytest.raises(ValueError, match=r"x = .* has log density -inf"):
        fk.check_gradient(lambda x: (-np.inf, x), [1.0])
    with pytest.raises(ValueError, match="x must be one finite point"):
        fk.check_gradient(good, [[1.0]])
    with pytest.raises(ValueError, match="check_gradient needs the gradient"):
        fk.check_gradient(fk.as_target(densities.python, D), [1.0, 1.0])


def normal_problem(factor, **options):
    """Return the problem of a normal sample, with `factor` times the derivative by sigma."""
    def loglike(mu, sigma):
        r = (np.array([1.0, 2.5, 4.0]) - mu) / sigma
        by_sigma = factor * (r @ r - 3) / sigma
        return -0.5 * r @ r - 3 * np.log(sigma), {"mu": r.sum() / sigma, "sigma": by_sigma}

    prior = {"mu": stats.norm(0, 9), "sigma": stats.halfnorm(scale=5)}
    return fk.Problem(loglike, prior, **options)


@pytest.mark.parametrize("x", [[0.3, 2.0], {"sigma": 2.0, "mu": 0.3}, [5.0, 0.4]])
@pytest.mark.parametrize("transforms", [None, False])
def test_the_gradient_of_a_problem_is_checked_in_the_users_coordinates(x, transforms):
    mu, sigma = (x["mu"], x["sigma"]) if isinstance(x, dict) else x
    r = (np.array([1.0, 2.5, 4.0]) - mu) / sigma
    check = fk.check_gradient(normal_problem(1.0, transforms=transforms), x)
    assert check.ok
    assert check.labels == ("mu", "sigma")
    np.testing.assert_array_equal(check.x, [mu, sigma])
    right = [r.sum() / sigma, (r @ r - 3) / sigma]
    np.testing.assert_allclose(check.gradient, right, rtol=1e-12)
    np.testing.assert_allclose(check.numerical, right, rtol=1e-3)
    check = fk.check_gradient(normal_problem(-1.0, transforms=transforms), x)
    assert check.wrong.tolist() == [False, True]
    assert str(check).startswith("the gradient disagrees with the density in 1 of 2 coordinates; "
                                 "sigma: gradient ")


def test_the_error_of_a_difference_is_in_units_of_the_users_coordinates():
    """sigma = exp(z), so that the derivative by sigma is that by z over sigma."""
    problem = normal_problem(1.0)
    error = fk.check_gradient(problem, [0.3, 4.0]).error
    of_z = fk.check_gradient(problem.target(gradient=True), [0.3, np.log(4.0)]).error
    np.testing.assert_allclose(error, of_z / [1.0, 4.0], rtol=1e-6)


def test_points_that_a_problem_does_not_have():
    problem = normal_problem(1.0)
    with pytest.raises(ValueError, match=r"x must have 'sigma' .*not \[-2\.\]"):
        fk.check_gradient(problem, [0.3, -2.0])
    with pytest.raises(ValueError, match=r"x must have every parameter, and \['sigma'\] are"):
        fk.check_gradient(problem, {"mu": 0.3})
    with pytest.raises(ValueError, match=r"x must be one finite point \(2,\)"):
        fk.check_gradient(problem, [0.3])


def test_the_gradient_on_a_simplex():
    """Three elements have two coordinates."""
    alpha = np.array([2.0, 3.0, 4.0])
    for factor, ok in ((1.0, True), (2.0, False)):
        def loglike(p, factor=factor):
            return alpha @ np.log(p), {"p": factor * alpha / p}

        problem = fk.Problem(loglike, {"p": stats.dirichlet([1.0, 1.0, 1.0])})
        check = fk.check_gradient(problem, [0.2, 0.5, 0.3])
        assert check.ok is ok
        assert check.wrong.shape == check.x.shape == (3,)


@pytest.mark.parametrize("factor", [-1.0, 2.0, 1.01])
def test_a_wrong_gradient_is_reported_before_the_run(factor):
    with pytest.warns(fk.SamplingWarning, match="disagrees .* coordinate 1: gradient"):
        sample(wrong_at(1, factor), np.ones(3), sampler="mala", draws=5, tune=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample(wrong_at(1, factor), np.ones(3), sampler="mala", draws=5, tune=5,
               check_gradient=False)


@pytest.mark.parametrize(("f", "options", "text"), [
    (lambda x: (-x[0] + np.log(x[1]), np.array([1.0, 1 / x[1]])),
     {"x0": [1.0, 0.5], "bounds": [(0, None), (0, 1)]},
     r"x\[0\]: gradient 1, finite difference -1, at x = \[0\.99\d* 0\.5"),
    (lambda mu, s: (-mu * mu - s, {"mu": -2 * mu, "s": 1.0}),
     {"prior": {"mu": stats.norm(), "s": stats.gamma(2)}}, "s: gradient 1, finite difference -1,"),
    (lambda w: (2 * np.log(w).sum(), {"w": np.array([2, 1, 2]) / w}),
     {"prior": {"w": stats.dirichlet([1, 1, 1])}}, r"w\[1\], at x = \[0\.")])
def test_a_wrong_gradient_is_that_of_the_users_function(f, options, text):
    """The numbers were those of z, the unconstrained coordinates, at which it was not called."""
    with pytest.warns(fk.SamplingWarning, match=f"disagrees with the function; {text}"):
        fk.sample(f, **options, sampler="nuts", draws=5, tune=5, seed=1, progress=False,
                  diagnose=False)


def test_a_wrong_gradient_is_warned_of_once():
    """The moments of the draws, which are right, are not compared with those that it implies."""
    target = fk.Target.from_python(lambda x: (-0.5 * x @ x, -3 * x), 2, gradient=True)
    with pytest.warns(fk.SamplingWarning) as warned:
        result = fk.sample(target, np.ones(2), seed=1, progress=False)
    assert len(warned) == 1
    assert "disagrees with the density in 2 of 2 coordinates" in str(warned[0].message)
    assert [one.kind for one in result.warnings] == ["gradient"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("draws", [5, 500])
def test_a_wrong_gradient_is_among_the_warnings_of_the_result(draws, tmp_path):
    path = tmp_path / "run.fk"
    result = sample(wrong_at(1, 2.0), np.ones(3), sampler="mala", draws=draws, tune=50, seed=1,
                    checkpoint=path)
    for one in (result, fk.load(path), result.resume(5)):
        assert one.warnings[0].kind == "gradient"
        assert "disagrees" in str(one.warnings[0])
        assert one.verdict().status != "ok"
        assert "coordinate 1" in str(one.verdict())
    none = sample(wrong_at(1, 2.0), np.ones(3), sampler="mala", stop=fk.stop.Evaluations(100),
                  seed=1)
    assert [one.kind for one in none.warnings] == ["gradient", "short"]
    right = sample(good, np.ones(3), sampler="mala", draws=draws, tune=50, seed=1)
    assert "gradient" not in [one.kind for one in right.warnings]


def test_the_check_before_a_run_never_warns_of_a_right_gradient():
    target = fk.as_target(good, 4, gradient=True)
    for x in np.random.default_rng(2).standard_normal((300, 4)) * 10.0 ** np.arange(-2, 2):
        check_start(target, x)


# ---- targets without one ----


def test_targets_without_a_gradient_are_refused(tmp_path):
    library = densities.build(tmp_path)
    for target in (ctypes_function(library, "own_form"), fk.as_target(densities.python, D)):
        with pytest.raises(ValueError, match="NUTS needs the gradient, and target"):
            sample(target, np.ones(D), sampler="nuts")


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_function_that_returns_no_gradient(vectorized):
    f = densities.vectorized if vectorized else densities.python
    with pytest.raises(TypeError, match=r"must return the pair \(log density, gradient\), not"):
        sample(f, np.ones(D), sampler="mala", vectorized=vectorized)


def test_a_gradient_that_is_not_finite_is_rejected_and_counted():
    """On a half line of the gradient: the draws stay on the other."""
    def density(x):
        return -0.5 * x @ x, np.where(x > 1.0, np.nan, -x)

    for sampler in ("mala", "hmc", "nuts", "gadmala"):
        result = sample(density, np.zeros(2), sampler=sampler, draws=300, tune=300, seed=1,
                        diagnose=False)
        assert result.draws.max() <= 1.0
        assert result.rejected["gradient"].sum() > 10
        assert result.offending["gradient"].max() > 1.0


def test_a_pointer_with_the_gradient_alone(tmp_path):
    """nuts-rs's signature; samplers without a gradient can use it too."""
    library = densities.build(tmp_path)
    f = ctypes_function(library, "own_grad")
    target = fk.as_target(f, D)
    assert target.abilities == ("logp_grad",)
    assert target.logp([0.5, 1.0]) == densities.python(np.array([0.5, 1.0]))
    for name in ("nuts", "ram"):
        options = {"sampler": name, "draws": 50, "tune": 50, "seed": 2}
        one = sample(target, np.ones(D), **options)
        other = sample(densities.python_pair, np.ones(D), **options)
        np.testing.assert_array_equal(one.draws, other.draws)


def test_the_gradient_at_a_start_is_used():
    """The proposals of MALA are accepted always if the gradient is constant."""
    result = sample(lambda x: (float(x.sum()), np.ones(D)), np.ones((40, D)),
                    sampler=fk.MALA(step_size=2.0), chains=40, tune=0, draws=1, seed=1,
                    diagnose=False)
    assert (result.draws != 1).all()


def test_divergences_are_warned_of():
    funnel = fk.targets.TARGETS["funnel"]()
    with pytest.warns(fk.SamplingWarning, match="trajectories diverged: the draws may leave out"):
        result = sample(funnel, np.zeros(funnel.dim), sampler="nuts", draws=500, seed=1)
    assert result.stats["diverging"].dtype == bool
    assert result.stats["n_steps"].dtype == np.int64


def test_divergences_of_a_thinned_run_are_those_recorded():
    funnel = fk.targets.TARGETS["funnel"]()
    with pytest.warns(fk.SamplingWarning, match="of 400 recorded trajectories diverged"):
        sample(funnel, np.zeros(funnel.dim), sampler="nuts", thin=3, draws=100, tune=100, seed=1)



def test_divergences_among_other_moves_are_only_counted():
    banana = fk.targets.banana(b=0.1, d=2)
    inner = fk.ParallelTempering(sampler=fk.HMC(n_steps=2), n_replicas=5, min_beta=0.02)
    result = sample(banana, np.zeros(2), sampler=fk.ModeJumping(sampler=inner), draws=2000, seed=4,
                    diagnose=False)
    assert result.stats["diverging"].any()


@pytest.mark.parametrize("sampler", [
    "mala", "gadrwm", "gadmala", fk.HMC(n_steps=4, step_size=0.1),
    fk.GradientAdaptiveMALA(exact=True)], ids=str)
def test_all_chains_of_a_vectorized_density_share_each_call(sampler):
    """One call an evaluation, of every chain that has not finished its step."""
    rows = []

    def density(X):
        rows.append(len(X))
        return densities.vectorized_pair(X)

    result = sample(density, np.ones((5, D)) + np.arange(5)[:, None] / 10, sampler=sampler,
                    draws=40, tune=0, chains=5, seed=1, vectorized=True, check_gradient=False)
    assert set(rows) == {5}
    assert len(rows) == 1 + result.evaluations / 5
    steps = 4 if isinstance(sampler, fk.HMC) else 1
    assert result.evaluations <= 5 * 40 * steps


def test_a_density_in_single_precision_has_no_wrong_gradient():
    """Its differences over short steps are 0, or much too large."""
    def single(x):
        x = np.float32(x)
        return float(np.float32(-0.5 * np.sum(x**2) - np.float32(1e7))), -np.asarray(x, float)

    assert fk.check_gradient(single, np.ones(3)).ok
    assert not fk.sample(single, np.ones(3), sampler="nuts", draws=20, tune=50, seed=1,
                         progress=False, diagnose=False).state.wrong_gradient

    def wrong(x):
        x = np.float32(x)
        return float(np.float32(-0.5 * np.sum(x**2))), np.asarray(x, float)

    assert not fk.check_gradient(wrong, np.ones(3)).ok
