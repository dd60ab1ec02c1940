"""docs/kam_in_100_lines.py makes the draws of the compiled sampler; its page shows all of it."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import fastkam as fk

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT, PAGE = DOCS / "kam_in_100_lines.py", DOCS / "kam_in_100_lines.md"
TRUTH = np.array([0.0, 0.0]), np.array([5.0, np.sqrt(1 + 2 * 1.25**2)])


@pytest.fixture
def script():
    spec = importlib.util.spec_from_file_location("kam_in_100_lines", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def difference(script, *, steps=80):
    """The largest difference from the draws of the compiled sampler, over three chains.

    All of the history shapes the proposal in these steps. Rounding grows from step to step, since
    R depends on x: it is below 1e-9 until then.
    """
    sampler = fk.KernelAdaptiveMetropolis(kernel=fk.kernels.Gaussian(5.0), subsample=200,
                                          metric="identity", gamma=0.2)
    result = fk.sample(script.banana, [0.0, 0.0], sampler=sampler, search=False, tune=steps,
                       draws=steps, chains=3, seed=7, progress=False, diagnose=False)
    seeds = np.random.SeedSequence(7).spawn(3)
    own = [script.kam(script.banana, [0.0, 0.0], np.random.Generator(np.random.PCG64(seed)),
                      tune=steps, draws=steps, length=5.0) for seed in seeds]
    return np.abs(np.array(own) - result.draws).max()


def test_draws_are_those_of_the_compiled_sampler(script):
    assert difference(script) < 1e-8


def test_a_mistake_makes_other_draws(script, monkeypatch):
    right = script.covariance
    monkeypatch.setattr(script, "covariance", lambda *given: 1.001 * right(*given))
    assert difference(script) > 1e-4


def test_covariance_is_that_of_the_library(script):
    rng = np.random.default_rng(1)
    x, z = rng.standard_normal((20, 3)), rng.standard_normal((50, 3))
    own = [script.covariance(point, z, 1.3, 0.2, 0.7) for point in x]
    theirs = fk.kernels.proposal_covariance(x, z, fk.kernels.Gaussian(1.3), step_size=0.7,
                                            noise=0.2)
    np.testing.assert_allclose(own, theirs, rtol=1e-12)


def p_value(script, *, chains=6, draws=5000):
    """Return the p-value of means of x and of (x - mean)^2, over independent chains; Bonferroni.

    The subsample is renewed in these chains, and the length follows it.
    """
    made = np.array([script.kam(script.banana, [0.0, 0.0], np.random.default_rng(seed), tune=2000,
                                draws=draws, n=100) for seed in range(chains)])
    mean, sd = TRUTH
    known = np.concatenate([made.mean(axis=1) - mean,
                            ((made - mean) ** 2).mean(axis=1) - sd**2], axis=1)
    return min(1.0, 4 * stats.ttest_1samp(known, 0.0).pvalue.min())


def test_moments_are_those_of_the_density(script):
    """False-alarm rate below 1e-3."""
    assert p_value(script) > 1e-3


def frozen(script, points):
    """The step of the script after warm-up, as a sampler for the test of invariance."""
    class Frozen(fk.PythonSampler):
        def propose(self, x, rng):
            y, self.log_ratio = script.propose(x, points, 3.0, 0.2, 1.0, rng)
            return y

        def log_q(self, x, y):
            return self.log_ratio

    return Frozen()


def invariance(script):
    """The p-value of the test on exact draws of the banana."""
    rng = np.random.default_rng(3)
    x_1 = 5 * rng.standard_normal(8001)
    exact = np.column_stack([x_1, 0.05 * x_1**2 - 1.25 + rng.standard_normal(8001)])
    return fk.testing.invariance(frozen(script, exact[:100]), script.banana, exact=exact[100:],
                                 steps=3, tune=0, replicates=6000, reversible=True).p_value


def test_steps_leave_the_density_invariant(script):
    """False-alarm rate below 1e-4."""
    assert invariance(script) > 1e-4


def test_leaving_out_the_correction_is_noticed(script, monkeypatch):
    right = script.propose
    monkeypatch.setattr(script, "propose", lambda *given: (right(*given)[0], 0.0))
    assert invariance(script) < 1e-4


def test_nan_is_rejected(script):
    def half(x):
        return -0.5 * x @ x if x[0] < 1 else np.nan

    draws = script.kam(half, [0.0, 0.0], np.random.default_rng(1), tune=200, draws=300)
    assert np.isfinite(draws).all()
    assert draws[:, 0].max() < 1


def test_page_shows_the_whole_file():
    """Each definition of the file is a part of a cell of the page, to the letter."""
    file = SCRIPT.read_text()
    assert len(file.splitlines()) <= 100
    body = file[file.index("import numpy"):file.index("if __name__")]
    cells = "\n".join(re.findall(r"^```\{code-cell\}\n(.*?)^```$", PAGE.read_text(), re.M | re.S))
    for part in re.split(r"\n\n\n", body.strip()):
        assert part in cells, part
