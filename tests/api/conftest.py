"""The densities of C, compiled; folders with a model; stand-ins for what a build lacks."""

import sys
import types

import densities
import numpy as np
import pytest

import fastkam as fk
from fastkam._core.density.python_target import PythonTarget
from fastkam.samplers import SAMPLERS, RobustAdaptiveMetropolis


class TwoModes(PythonTarget):
    """1/2 N((-8, 0), I/2) + 1/2 N((8, 0), 2 I)."""

    mean = np.zeros(2)
    cov = np.diag([65.25, 1.25])
    mode_weights = np.array([0.5, 0.5])

    def __init__(self):
        def logp(x):
            left = -np.square(x - [-8, 0]).sum(axis=1) + np.log(2.0)
            right = -np.square(x - [8, 0]).sum(axis=1) / 4 - np.log(2.0)
            return np.logaddexp(left, right)

        super().__init__(logp, 2, vectorized=True, gradient=False)

    def mode_of(self, x):
        return (np.asarray(x)[:, 0] > 0).astype(int)


def logistic_regression(X, y):
    """log likelihood + log N(0, I), at each row."""
    def logp(w):
        z = w @ X.T
        return z @ y - np.logaddexp(0, z).sum(axis=1) - 0.5 * np.square(w).sum(axis=1)

    return fk.Target.from_python(logp, X.shape[1], vectorized=True)


class CyclicalKernelAdaptiveMetropolis(RobustAdaptiveMetropolis):
    """Cyclical kernel adaptive Metropolis, a stand-in."""


@pytest.fixture
def demo_parts(monkeypatch):
    """The library, with stand-ins for what it lacks."""
    if not hasattr(fk, "targets"):
        targets = types.SimpleNamespace(two_mode=TwoModes, LogisticRegression=logistic_regression)
        monkeypatch.setattr(fk, "targets", targets, raising=False)
    if "ckam" not in SAMPLERS:
        cls = CyclicalKernelAdaptiveMetropolis
        monkeypatch.setitem(SAMPLERS, "ckam", cls)
        monkeypatch.setattr(fk.samplers, cls.__name__, cls, raising=False)


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The path of the C densities, compiled."""
    return densities.build(tmp_path_factory.mktemp("density"))


@pytest.fixture
def current_folder(tmp_path, monkeypatch):
    """A function that writes a module to an empty current folder; later tests do not import it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        return tmp_path

    yield write
    for name in {file.stem for file in tmp_path.glob("*.py")} - before:
        sys.modules.pop(name, None)
