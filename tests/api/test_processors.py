"""The same seed gives the same draws on every processor.

Three parts of a program choose their instructions by the processor when they are imported: fastkam,
the BLAS and LAPACK below numpy and scipy, and numpy's own loops. A variable of the
environment makes each choose as on an older processor, in a process of its own. The density is
computed in Python's floats alone, so that any difference comes from these parts.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import fastkam as fk
from fastkam.samplers.sampler import SAMPLERS

TESTS = Path(__file__).parents[1]
CORES = ["Prescott", *(pytest.param(core, marks=pytest.mark.long)
                       for core in ("Haswell", "Sandybridge", "Nehalem"))]
LEVELS = ["base", "avx2"]


def curved(x):
    """A log density of any even number of dimensions, and its gradient."""
    x = [float(v) for v in x]
    logp, gradient = 0.0, np.zeros(len(x))
    for i in range(0, len(x), 2):
        a, b, s = x[i], x[i + 1], 1.0 + i
        u = b - 0.3 * a * a
        logp -= 0.125 * a * a + u * u / s
        gradient[i], gradient[i + 1] = -0.25 * a + 1.2 * a * u / s, -2 * u / s
    return logp, gradient


def without_gradient(x):
    return curved(x)[0]


def two_modes(x):
    """A function with kinks, of two modes and of no special function."""
    return -min(sum(abs(float(v) - m) for v in x) for m in (-5.0, 5.0))


def likelihood(a, b):
    return -0.5 * sum(float(v - 0.2 * b) ** 2 for v in a)


def runs():
    """Return the runs by name: (target, dimensions, arguments)."""
    for name in SAMPLERS:
        yield name, (curved, 4, {"sampler": name})
    # two dimensions, since fits of many components take long on the oldest processors
    yield "auto", (curved, 2, {})
    yield "auto without a gradient", (without_gradient, 2, {})
    yield "auto of two modes", (two_modes, 2, {})
    yield "nuts dense", (curved, 10, {"sampler": fk.NUTS(metric="dense")})
    yield "nuts of low rank", (curved, 50, {"sampler": fk.NUTS(metric="low-rank")})
    yield "nuts from draws", (curved, 10, {
        "sampler": fk.NUTS(metric="dense", learn_from="draws")})
    yield "kpca matern", (curved, 4, {"sampler": fk.KernelPCAMetropolis(kernel=fk.kernels.Matern(
        order=2.2), subsample=60)})
    yield "pt of jumps", (two_modes, 2, {
        "sampler": fk.ModeJumping(sampler=fk.ParallelTempering(sampler="am"))})


def digests():
    """{name: hash of the draws}, each run with a search and without."""
    found = {}
    for name, (target, d, options) in runs():
        for search in (True, False):
            result = fk.sample(target, np.full(d, 0.3), chains=2, draws=100, tune=450, seed=1,
                               search=search, diagnose=False, progress=False, **options)
            found[f"{name}, search={search}"] = hashed(result.draws)
    priors = {"a": stats.multivariate_normal([0.1, 0.2, 0.3], np.eye(3) + 0.3),
              "b": stats.gamma(2.3, scale=1.7)}
    problem = fk.Problem(likelihood, prior=priors)
    found["problem"] = hashed(fk.sample(problem, chains=2, draws=100, tune=450, seed=1,
                                        diagnose=False, progress=False).draws)
    rng = np.random.default_rng(1)
    found["draws from a prior"] = hashed(problem.sample_prior(60, rng))
    found["LAPACK"] = hashed(np.linalg.svd(rng.standard_normal((60, 60)))[0])
    found["numpy"] = hashed(np.exp(np.linspace(-3, 3, 1001)))
    return found


def hashed(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def digests_with(**environment):
    """The same in a process with other variables in its environment."""
    path = os.pathsep.join([str(TESTS / "api"), str(TESTS), os.environ.get("PYTHONPATH", "")])
    program = "import json, test_processors as t; print(json.dumps(t.digests()))"
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True,
                         text=True, check=False, timeout=600,
                         env=os.environ | {"PYTHONPATH": path} | environment)
    if "is not an instruction set of this processor" in run.stderr:
        pytest.skip(f"this processor cannot run {environment}, so nothing can be compared with it")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def dispatched():
    """numpy's features beyond its baseline that this processor has."""
    return np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])


@pytest.fixture(scope="module")
def usual():
    return digests_with()


def assert_same(found, usual, *controls):
    assert {k: v for k, v in found.items() if k not in ("LAPACK", "numpy")} == {
        k: v for k, v in usual.items() if k not in ("LAPACK", "numpy")}
    for control in controls:
        assert found[control] != usual[control], f"{control} has not changed: nothing was tested"


@pytest.mark.parametrize("level", LEVELS)
def test_instruction_sets_of_fastkam(level, usual):
    assert_same(digests_with(FASTKAM_LEVEL=level), usual)


def uses_openblas():
    return "openblas" in np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]


@pytest.mark.skipif(not uses_openblas(),
                    reason="numpy has another BLAS, without a variable that sets the core type")
@pytest.mark.parametrize("core", CORES)
def test_core_types_of_openblas(core, usual):
    if core == "Haswell" and not {"AVX2", "X86_V3"} & set(dispatched()):
        pytest.skip("this processor has no AVX2, which code for Haswell needs")
    assert_same(digests_with(OPENBLAS_CORETYPE=core), usual, *["LAPACK"] * (core == "Prescott"))


@pytest.mark.skipif(not dispatched(),
                    reason="numpy has no loops beyond its baseline for this processor")
def test_instruction_sets_of_numpy(usual):
    controls = ["numpy"] if "X86_V4" in dispatched() else []
    assert_same(digests_with(NPY_DISABLE_CPU_FEATURES=" ".join(dispatched())), usual, *controls)
