"""Bad parameters of built-in targets get an error that names the argument and the value."""

import pickle

import numpy as np
import pytest

from fastkam import targets

X, Y = np.eye(3), [0, 1, 1]
GP = targets.GaussianProcessClassification


@pytest.mark.parametrize("make", [
    lambda a: targets.Gaussian([0.0, 0.0], a), lambda a: targets.StudentT(2, scale=a),
    lambda a: targets.GaussianMixture(np.zeros((2, 2)), covs=a)])
def test_an_array_that_is_changed_later_changes_no_copy(make):
    """Workers receive copies."""
    variances = np.array([1.0, 2.0])
    target = make(variances)
    variances *= 100
    assert pickle.loads(pickle.dumps(target)).logp([0.5, 0.5]) == target.logp([0.5, 0.5])


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: targets.Gaussian([0, np.nan]), ValueError, r"mean must be finite, not nan"),
    (lambda: targets.Gaussian([]), ValueError, r"mean must have shape"),
    (lambda: targets.Gaussian("x"), TypeError, r"mean must be an array"),
    (lambda: targets.Gaussian([0, 0], [1, -1]), ValueError, r"cov must have positive.*-1"),
    (lambda: targets.Gaussian([0, 0], [[1, 2], [2, 1]]), ValueError, r"cov .*least eigen.* -1"),
    (lambda: targets.Gaussian([0, 0], np.eye(3)), ValueError, r"cov must have shape \(2, 2\)"),
    (lambda: targets.correlated_gaussian(1.0), ValueError, r"rho must be below 1, not 1.0"),
    (lambda: targets.neal_gaussian(0), ValueError, r"d must be at least 1, not 0"),
    (lambda: targets.StudentT(df=0), ValueError, r"df must be above 0, not 0"),
    (lambda: targets.StudentT(2.5), TypeError, r"d must be an integer, not 2.5"),
    (lambda: targets.StudentT(2, location=[1]), ValueError, r"location must have shape \(2,\)"),
    (lambda: targets.StudentT(2, scale=-1), ValueError, r"scale must have positive"),
    (lambda: targets.GaussianMixture([1, 2]), ValueError, r"means must have shape \(K, d\)"),
    (lambda: targets.GaussianMixture([[1], [2]], weights=[1, 0]), ValueError, r"weights .*not 0"),
    (lambda: targets.GaussianMixture([[1], [2]], weights=[1]), ValueError, r"weights must have"),
    (lambda: targets.GaussianMixture([[1], [2]], [1, 2, 3]), ValueError, r"covs must be .*\(3,\)"),
    (lambda: targets.GaussianMixture([[1], [2]], [1, 0]), ValueError, r"covs\[1\] must have pos"),
    (lambda: targets.LatticeMixture(spacing=0), ValueError, r"spacing must be above 0, not 0"),
    (lambda: targets.LatticeMixture(variance=np.inf), ValueError, r"variance must be finite"),
    (lambda: targets.LatticeMixture(K=0), ValueError, r"K must be at least 1, not 0"),
    (lambda: targets.banana(V=-1), ValueError, r"V must be above 0, not -1"),
    (lambda: targets.banana(d=1), ValueError, r"d must be at least 2, not 1"),
    (lambda: targets.banana(b=None), TypeError, r"b must be a number, not None"),
    (lambda: targets.Banana(1, 1, [1, 0]), ValueError, r"variances must be positive, not 0"),
    (lambda: targets.Banana(1, 1, [1]), ValueError, r"variances must have shape"),
    (lambda: targets.BananaMixture([0], [0], [1], [1], [[1, 1]]), ValueError, r"bent and along"),
    (lambda: targets.BananaMixture([2], [0], [1], [1], [[1, 1]]), ValueError, r"bent .*0 to 1"),
    (lambda: targets.BananaMixture([.5], [0], [1], [1], [[1, 1]]), ValueError, r"bent .*0\.5"),
    (lambda: targets.Flower(A=10), ValueError, r"A must be below 10.0, not 10"),
    (lambda: targets.Flower(w=1), ValueError, r"w must be at least 2, not 1"),
    (lambda: targets.FlowerFullNorm(s2=0), ValueError, r"s2 must be above 0, not 0"),
    (lambda: targets.Funnel(1), ValueError, r"d must be at least 2, not 1"),
    (lambda: targets.Funnel(variance=0), ValueError, r"variance must be above 0, not 0"),
    (lambda: targets.LogisticRegression([1, 2], [0, 1]), ValueError, r"X must have shape \(n, d\)"),
    (lambda: targets.LogisticRegression(X, [0, 1]), ValueError, r"y must have shape \(3,\)"),
    (lambda: targets.LogisticRegression(X, [0, 1, 2]), ValueError, r"y must be .*not 2"),
    (lambda: targets.LogisticRegression(X, [0, 1, -1]), ValueError, r"y must be .*not \[-1"),
    (lambda: targets.LogisticRegression(X * np.nan, Y), ValueError, r"X must be finite, not nan"),
    (lambda: targets.LogisticRegression(X, Y, 0), ValueError, r"prior_variance must be above 0"),
    (lambda: GP([1, 2], [0, 1]), ValueError, r"X must have shape \(n, d\)"),
    (lambda: GP(X, [0, 1]), ValueError, r"y must have shape \(3,\)"),
    (lambda: GP(X, [0, 1, 2]), ValueError, r"y must be .*not 2"),
    (lambda: GP(X, Y, n_importance=0), ValueError, r"n_importance must be at least 1, not 0"),
    (lambda: GP(X, Y, ridge=-1), ValueError, r"ridge must be at least 0, not -1"),
    (lambda: GP(X, Y, prior_variance=0), ValueError, r"prior_variance must be above 0, not 0"),
    (lambda: GP(X, Y, parametrization="log"), ValueError, r"parametrization .*'log_w.*not 'log'"),
    (lambda: GP(X, Y).logp([1, 2, 3]), TypeError, r"has no density"),
    (lambda: GP(X, Y).laplace([1, 2]), ValueError, r"x must have 3 coordinates"),
    (lambda: targets.standardize(np.c_[X, np.ones(3)]), ValueError, r"column 3 is always 1"),
    (lambda: targets.standardize([[1.0]]), ValueError, r"X must have shape"),
    (lambda: targets.two_mode().sample(-1), ValueError, r"n must be at least 0, not -1"),
    (lambda: targets.two_mode().sample(2.0), TypeError, r"n must be an integer, not 2.0"),
    (lambda: targets.two_mode().sample(2, "x"), TypeError, r"seed must be .*not 'x'"),
    (lambda: targets.two_mode().mode_of([1, 2, 3]), ValueError, r"x must have 2 coordinates"),
    (lambda: targets.banana().quantile_region(1.0), ValueError, r"x must have 8 coordinates"),
    (lambda: targets.two_mode().hvp([1, 2], [1, 2]), TypeError, r"no Hessian"),
    (lambda: targets.load_dataset("iris"), ValueError, r"name must be one of .*not 'iris'"),
])
def test_a_bad_argument_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()
