"""Samplers of fastkam as methods of PINTS."""

import numpy as np
import pytest
from scipy import stats

import fastkam as fk

pints = pytest.importorskip("pints")
host = pytest.importorskip("fastkam.hosts.pints")
toy = pytest.importorskip("pints.toy")


@pytest.fixture(scope="module")
def posterior():
    """The first MCMC example of PINTS: the logistic model."""
    model = toy.LogisticModel()
    times = np.linspace(0, 1000, 400)
    values = model.simulate([0.015, 500], times) + np.random.default_rng(1).normal(0, 10, 400)
    likelihood = pints.GaussianLogLikelihood(pints.SingleOutputProblem(model, times, values))
    prior = pints.UniformLogPrior([0.01, 400, 1], [0.02, 600, 100])
    return pints.LogPosterior(likelihood, prior)


def run(log_pdf, method, x0, n, seed=1, **options):
    np.random.seed(seed)
    controller = pints.MCMCController(log_pdf, len(x0), x0, method=method, **options)
    controller.set_max_iterations(n)
    controller.set_log_to_screen(False)
    controller.set_log_pdf_storage(True)
    return controller, controller.run()


def test_first_example(posterior):
    right = np.array([0.015, 500, 10.0])
    controller, chains = run(posterior, host.method(), [right * 1.05, right * 0.95, right], 4000)
    assert chains.shape == (3, 4000, 3)
    assert (pints.rhat(chains[:, 1000:]) < 1.05).all()
    kept = chains[:, 1000:].reshape(-1, 3)
    assert (np.abs(kept.mean(axis=0) - right) < 4 * kept.std(axis=0)).all()
    logged = controller.log_pdfs()
    np.testing.assert_allclose(logged[0, ::500, 0], [posterior(x) for x in chains[0, ::500]])
    assert 3 * 4000 < controller.n_evaluations() < 3 * 4100  # with those of the scales
    np.testing.assert_array_equal(chains[:, 0], [right * 1.05, right * 0.95, right])


def test_transformation_and_workers(posterior):
    right = np.array([0.015, 500, 10.0])
    a = run(posterior, host.method("ram"), [right] * 2, 300,
            transformation=pints.LogTransformation(3))[1]
    np.random.seed(1)
    controller = pints.MCMCController(posterior, 2, [right] * 2, method=host.method("ram"),
                                      transformation=pints.LogTransformation(3))
    controller.set_max_iterations(300)
    controller.set_log_to_screen(False)
    controller.set_parallel(2)
    np.testing.assert_allclose(a, controller.run(), rtol=1e-12)


@pytest.mark.parametrize(("sampler", "schedule"), [
    ("am", "diminishing"), ("ram", "diminishing"), ("dram", "diminishing"), ("kam", "perpetual"),
    ("ckam", "perpetual"), ("mala", "diminishing"), ("nuts", "perpetual"), ("pt", "diminishing"),
    ("scout", "diminishing")])
def test_the_distribution_is_the_targets(sampler, schedule):
    """t statistics over 24 chains, of means, variances and the covariance, at 1e-4 each."""
    log_pdf = toy.GaussianLogPDF([1.0, -2.0], [[1.0, 0.8], [0.8, 2.0]])
    method = host.method(sampler)
    assert method.schedule == fk.schedules.as_schedule(schedule)
    chains = run(log_pdf, method, [[1.0, -2.0]] * 24, 1500)[1]
    y = chains[:, 500:] - [1.0, -2.0]
    found = np.stack([y[..., 0].mean(axis=1), y[..., 1].mean(axis=1), (y[..., 1] ** 2).mean(axis=1),
                      (y[..., 0] * y[..., 1]).mean(axis=1)], axis=1)
    p = stats.ttest_1samp(found, [0.0, 0.0, 2.0, 0.8]).pvalue
    assert (p > 1e-4).all(), p


@pytest.mark.parametrize("sampler", sorted(fk.samplers.SAMPLERS))
def test_every_sampler_runs(sampler):
    log_pdf = toy.GaussianLogPDF([1.0, -2.0], [[1.0, 0.8], [0.8, 2.0]])
    chains = run(log_pdf, host.method(sampler), [[1.0, -2.0]], 200)[1]
    assert len(np.unique(chains[0, :, 0])) > 5


@pytest.mark.parametrize("sampler", [
    "mala", "nuts", "dram", "pt", fk.samplers.ParallelTempering(sampler="mala", n_replicas=3)])
def test_tell_returns_the_density(sampler):
    """The gradient is returned, too, for samplers with several evaluations a step."""
    log_pdf = toy.GaussianLogPDF([1.0, -2.0], [[1.0, 0.8], [0.8, 2.0]])
    np.random.seed(3)
    chain = host.method(sampler, schedule="perpetual")([3.0, 0.0])
    steps = 0
    for _ in range(400):
        x = chain.ask()
        fx = log_pdf.evaluateS1(x) if chain.needs_sensitivities() else log_pdf(x)
        reply = chain.tell(fx)
        if reply is None:
            continue
        steps += 1
        x, fx, _ = reply
        if chain.needs_sensitivities():
            value, gradient = log_pdf.evaluateS1(x)
            np.testing.assert_allclose(fx[1], gradient, rtol=1e-10, atol=1e-12)
            fx = fx[0]
        else:
            value = log_pdf(x)
        assert abs(fx - value) < 1e-10
    assert steps > 20


@pytest.mark.parametrize("unit", [1e-20, 1e20])
def test_units_do_not_matter(unit):
    """The same states, in other units, up to the rounding of a scale."""
    class Density(pints.LogPDF):
        def __init__(self, scale):
            self.scale = scale

        def n_parameters(self):
            return 2

        def __call__(self, x):
            return -0.5 * ((x[0] / self.scale - 1) ** 2 + (x[1] + 2) ** 2 / 4)

    a = run(Density(1.0), host.method(), [[1.5, -2.0]], 200)[1]
    b = run(Density(unit), host.method(), [[1.5 * unit, -2.0]], 200)[1]
    np.testing.assert_allclose(a, b / [unit, 1.0], rtol=1e-6)


def test_errors(posterior):
    with pytest.raises(ValueError, match="schedule must not be 'finite'"):
        host.method("am", schedule="finite")
    with pytest.raises(ValueError, match=r"schedule must be one that KernelAdaptiveMetropolis can "
                                         r"have, such as 'perpetual', not 'diminishing': a dimin"):
        host.method("kam", schedule="diminishing")
    with pytest.raises(ValueError, match="such as 'perpetual', not 'rare': schedule must be"):
        host.method("nuts", schedule="rare")
    with pytest.raises(ValueError, match="sampler must not be 'auto', which chooses a sampler for"):
        host.method("auto")
    with pytest.raises(ValueError, match="x0 must have a finite log density"):
        run(posterior, host.method(), [[1.0, 1.0, 1.0]], 10)
