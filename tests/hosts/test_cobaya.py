"""The sampler of Cobaya, on its documentation's first example."""

import numpy as np
import pytest

cobaya = pytest.importorskip("cobaya")
host = pytest.importorskip("fastkam.hosts.cobaya")
run = pytest.importorskip("cobaya.run").run

pytestmark = pytest.mark.filterwarnings("ignore")  # of Cobaya and GetDist
MEAN, COV = np.array([0.2, 0.0]), np.array([[0.1, 0.05], [0.05, 0.2]])


def info(**options):
    return {
        "likelihood": {"gaussian_mixture": {"means": MEAN.tolist(), "covs": COV.tolist(),
                                            "derived": True}},
        "params": {"a": {"prior": {"min": -0.5, "max": 3}, "latex": "\\alpha"},
                   "b": {"prior": {"dist": "norm", "loc": 0, "scale": 1}, "ref": 0,
                         "latex": "\\beta"},
                   "c": {"derived": "lambda a, b: a + b"},
                   "derived_a": {"latex": "a'"}, "derived_b": {"latex": "b'"}},
        "sampler": {"fastkam.hosts.cobaya.Fastkam": {"draws": 1000, "seed": 1, **options}}}


def right():
    """Moments of the posterior, by importance sampling from a Gaussian."""
    P = np.linalg.inv(COV) + np.diag([0, 1.0])
    cov = np.linalg.inv(P)
    x = np.random.default_rng(1).multivariate_normal(cov @ np.linalg.inv(COV) @ MEAN, cov, 10**6)
    x = x[(x[:, 0] > -0.5) & (x[:, 0] < 3)]
    return x.mean(axis=0), np.cov(x.T)


def test_first_example():
    _, sampler = run(info())
    found = sampler.products()
    assert len(found["sample"]) == 4
    one = found["sample"][0]
    assert one["weight"].sum() == 1000
    assert {"a", "b", "c", "derived_a", "minuslogpost", "chi2__gaussian_mixture"} <= set(
        one.data.columns)
    np.testing.assert_allclose(one["c"], one["a"] + one["b"])
    x = found["result"].draws[0]
    posts = [sampler.model.logposterior(v).logpost for v in x[:5]]
    assert abs(-one["minuslogpost"][0] - posts[0]) < 1e-9
    mean, cov = right()
    every = sampler.samples(to_getdist=True)
    np.testing.assert_allclose(every.mean(["a", "b"]), mean, atol=0.05)
    np.testing.assert_allclose(every.cov(["a", "b"]), cov, atol=0.03)
    together = sampler.samples(combined=True, skip_samples=0.5)
    assert abs(together["weight"].sum() - 2000) < 10


def test_files(tmp_path):
    whole = info(draws=200, chains=2, sampler="ram", tune=300) | {"output": str(tmp_path / "run")}
    run(whole)
    assert sorted(path.name for path in tmp_path.glob("run.*.txt")) == ["run.1.txt", "run.2.txt"]
    table = np.loadtxt(tmp_path / "run.1.txt")
    assert table[:, 0].sum() == 200
    first = (tmp_path / "run.1.txt").read_text()
    run(whole, force=True)
    assert (tmp_path / "run.1.txt").read_text() == first
    with pytest.raises(cobaya.log.LoggedError, match="does not continue"):
        run(whole, resume=True)


def test_bad_options():
    with pytest.raises(ValueError, match="chains must be at least 1"):
        run(info(chains=0))
