"""Arguments are checked in one style: the error names the argument and shows the value."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam import errors
from fastkam.arguments import check_covariance, check_number


@pytest.mark.parametrize("value", ["wide", "1", [1.0, "a"], [[1.0], [2.0, 3.0]], 1 + 2j, {"a": 1}])
def test_the_error_names_a_value_that_is_not_a_number(value):
    with pytest.raises(TypeError, match="cov must be an array of numbers, not "):
        check_covariance("cov", value, 2)


@pytest.mark.parametrize(("value", "message"), [
    (0.0, r"cov must have positive variances, not 0\.0$"),
    ([1.0, -2.0], r"cov must have positive variances, not -2\.0$"),
    ([1.0, np.nan], r"cov must be finite, not nan at index \(1,\)"),
    ([1.0, 2.0, 3.0], r"cov must have shape \(2,\), not \(3,\)"),
    (np.eye(3), r"cov must have shape \(2, 2\), not \(3, 3\)"),
    ([[1.0, 0.5], [0.4, 1.0]],
     r"cov must be symmetric, not 0\.5 at index \(0, 1\) and 0\.4 at \(1, 0\)$"),
    ([[1.0, 2.0], [2.0, 1.0]], "cov must be positive definite; its least eigenvalue is -1$"),
    ([[0.0, 0.0], [0.0, 0.0]], "cov must be positive definite; its least eigenvalue is 0$"),
])
def test_the_error_shows_a_matrix_that_is_not_a_covariance(value, message):
    with pytest.raises(ValueError, match=message):
        check_covariance("cov", value, 2)


@pytest.mark.parametrize("scales", [(1.0, 1.0), (1e-6, 1.0), (1e8, 1e-8)])
def test_symmetry_is_judged_at_the_scale_of_the_diagonal(scales):
    D = np.diag(scales)
    np.testing.assert_array_equal(
        check_covariance("cov", D @ np.array([[1.0, 1e-17], [0.0, 1.0]]) @ D, 2), D
    )
    with pytest.raises(ValueError, match="cov must be symmetric"):
        check_covariance("cov", D @ np.array([[1.0, 1e-7], [0.0, 1.0]]) @ D, 2)


@pytest.mark.parametrize("sampler", [fk.RandomWalk, fk.RobustAdaptiveMetropolis])
def test_a_sampler_refuses_before_any_work(sampler):
    def never(x):
        raise AssertionError("the density was called")

    with pytest.raises(TypeError, match="proposal_cov must be an array of numbers, not 'wide'"):
        sample(never, [0.0, 0.0], sampler=sampler(proposal_cov="wide"))


def test_an_integer_beyond_all_floats_is_not_finite():
    with pytest.raises(ValueError, match="c must be finite"):
        check_number("c", 10**400)


@pytest.mark.parametrize("gone", ["sys.stderr.close()", "sys.stderr = None"])
@pytest.mark.parametrize("progress", ["None", "fk.progress.Lines(log.info, 0.0)"])
def test_a_run_without_standard_error_returns_its_draws(gone, progress):
    """A warning, or a line of a logger, that cannot be written is lost, and nothing else."""
    code = ("import logging, sys\n"
            "import fastkam as fk\n"
            "log = logging.Logger('lines')\n"
            "log.addHandler(logging.StreamHandler())\n"
            f"{gone}\n"
            "run = fk.sample(lambda x: -0.5 * x @ x, [0.0, 0.0], draws=300, seed=1, search=False,\n"
            f"                sampler=fk.RandomWalk(proposal_cov=1e-4), progress={progress})\n"
            "print(run.status, len(run.warnings))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "complete 2\n"


def test_a_function_that_shows_warnings_may_raise(monkeypatch):
    def show(*args, **kwargs):
        raise ValueError("no warnings here")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", show)
        with pytest.raises(ValueError, match="no warnings here"):
            errors.warn(fk.SamplingWarning("one"))
