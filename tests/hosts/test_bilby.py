"""The sampler "fastkam" of bilby, on its documentation's first example and on known evidences."""

import numpy as np
import pytest

bilby = pytest.importorskip("bilby")
host = pytest.importorskip("fastkam.hosts.bilby")

pytestmark = pytest.mark.filterwarnings("ignore")  # of bilby and its packages


def line(x, m, c):
    return x * m + c


@pytest.fixture
def likelihood():
    """The linear regression of bilby's documentation."""
    rng = np.random.default_rng(123)
    x = np.linspace(0, 10, 100)
    return bilby.core.likelihood.GaussianLikelihood(x, line(x, 0.5, 0.2) + rng.normal(0, 1, 100),
                                                    line, 1.0)


@pytest.fixture
def priors():
    return {"m": bilby.core.prior.Uniform(0, 5, "m"), "c": bilby.core.prior.Uniform(-2, 2, "c")}


def run(likelihood, priors, folder, **options):
    return bilby.run_sampler(likelihood, priors, sampler="fastkam", outdir=str(folder), label="a",
                             **({"seed": 1, "draws": 500} | options))


def test_bilby_finds_it_by_its_entry_point():
    from bilby.core.sampler import get_sampler_class

    assert get_sampler_class("fastkam") is host.Fastkam


def test_first_example(likelihood, priors, tmp_path):
    result = run(likelihood, priors, tmp_path)
    A = np.stack([likelihood.x, np.ones(100)], axis=1)
    mean, cov = np.linalg.solve(A.T @ A, A.T @ likelihood.y), np.linalg.inv(A.T @ A)
    sd = np.sqrt(np.diag(cov))
    found = result.posterior[["m", "c"]].to_numpy()
    assert found.shape == (2000, 2)
    assert result.walkers.shape == (4, 500, 2)
    assert (np.abs(found.mean(axis=0) - mean) < 0.25 * sd).all()
    np.testing.assert_allclose(found.std(axis=0), sd, rtol=0.15)
    # a Gaussian within the prior's bounds
    residual = likelihood.y - A @ mean
    right = (-0.5 * residual @ residual - 50 * np.log(2 * np.pi)
             + np.log(2 * np.pi) + 0.5 * np.linalg.slogdet(cov)[1] - np.log(20))
    assert abs(result.log_evidence - right) < 5 * result.log_evidence_err + 0.02
    assert result.log_evidence_err < 0.1
    row = result.posterior.iloc[7]
    assert abs(likelihood.log_likelihood({"m": row.m, "c": row.c}) - row.log_likelihood) < 1e-8
    assert abs(row.log_prior + np.log(20)) < 1e-12
    assert not list(tmp_path.glob("*.npz"))
    again = bilby.core.result.read_in_result(outdir=str(tmp_path), label="a")
    np.testing.assert_array_equal(again.posterior.m, result.posterior.m)
    assert "sampler" in result.meta_data["fastkam"]


def test_constraints_conditions_and_fixed_parameters(tmp_path):
    """y is between 0 and x, x + y below 1.2; z is fixed."""
    class Flat(bilby.Likelihood):
        def log_likelihood(self, parameters):
            assert parameters["z"] == 3
            return 0.0

        def noise_log_likelihood(self):
            return 0.0

    def convert(p):
        return p | {"total": p["x"] + p["y"]}
    priors = bilby.core.prior.ConditionalPriorDict({
        "x": bilby.core.prior.Uniform(0, 1),
        "y": bilby.core.prior.ConditionalUniform(
            lambda reference_params, x: {"minimum": 0.0, "maximum": x},
            minimum=0, maximum=1),
        "z": 3, "total": bilby.core.prior.Constraint(0, 1.2)}, conversion_function=convert)
    result = run(Flat(), priors, tmp_path / "a", draws=1000, evidence=False)
    x, y = result.posterior.x, result.posterior.y
    assert (y < x).all()
    assert (x + y < 1.2).all()
    rng = np.random.default_rng(1)
    a = rng.random(10**6)
    b = rng.random(10**6) * a
    right = a[a + b < 1.2].mean()
    assert abs(x.mean() - right) < 0.04
    assert np.isnan(result.log_evidence)
    # the prior is normalized where its constraint holds, and so is its log density
    result = run(Flat(), priors, tmp_path / "b", draws=1000)
    assert abs(result.log_evidence) < 5 * result.log_evidence_err + 0.02
    share = -np.log((a + b < 1.2).mean())
    row = result.posterior.iloc[0]
    assert abs(row.log_prior - share + np.log(row.x)) < 0.02


def test_processes_and_a_run_that_goes_on(likelihood, priors, tmp_path):
    a = run(likelihood, priors, tmp_path / "a", npool=2, method="ram", tune=300, draws=60)
    b = run(likelihood, priors, tmp_path / "b", method="ram", tune=300, draws=60)
    np.testing.assert_array_equal(a.posterior.m, b.posterior.m)


def test_a_run_that_was_interrupted_goes_on(likelihood, priors, tmp_path, monkeypatch):
    options = {"method": "ram", "tune": 300, "draws": 400}
    whole = run(likelihood, priors, tmp_path / "whole", **options)
    plain, calls = host.Fastkam.density, []

    def interrupted(self, z):
        calls.append(z)
        if len(calls) == 1500:
            raise KeyboardInterrupt
        return plain(self, z)
    monkeypatch.setattr(host.Fastkam, "density", interrupted)
    with pytest.raises(KeyboardInterrupt, match="the run so far is in"):
        run(likelihood, priors, tmp_path, **options)
    assert (tmp_path / "a_fastkam.npz").exists()
    assert not list(tmp_path.glob("a_result*"))
    found = run(likelihood, priors, tmp_path, **options)
    np.testing.assert_array_equal(found.posterior.m, whole.posterior.m)
    assert len(calls) < 1500 + 4 * 700


def test_objects_among_the_arguments(likelihood, priors, tmp_path):
    import fastkam as fk

    found = run(likelihood, priors, tmp_path, method=fk.RobustAdaptiveMetropolis(), tune=300,
                stop=fk.stop.Evaluations(10**6), draws=60)
    again = bilby.core.result.read_in_result(outdir=str(tmp_path), label="a")
    np.testing.assert_array_equal(again.posterior.m, found.posterior.m)
    assert "RobustAdaptive" in again.sampler_kwargs["method"]
