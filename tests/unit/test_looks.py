"""Modes that a search finds when it looks beyond its walkers, more than once."""

from types import SimpleNamespace

import numpy as np

import fastkam.search.search as module
from fastkam.density.forms import as_target
from fastkam.samplers import modes
from fastkam.search.mixture import Mixture
from fastkam.search.search import Searcher


def mixture(*means):
    """Components of equal weights with these means and unit covariances."""
    n = len(means)
    return Mixture(*modes.with_wide(np.full(n, 1 / n), np.array(means, dtype=float),
                                    np.tile(np.eye(2), (n, 1, 1))))


def test_modes_of_all_looks_come_back(monkeypatch):
    """Walkers have left the modes that three looks have led them to."""
    monkeypatch.setattr(module, "sharpened", lambda evaluate, q, window, rng: q)
    searcher = Searcher(as_target(lambda x: -0.5 * float(x @ x), 2), np.zeros((1, 2)),
                        np.random.default_rng(1))
    searcher.population = SimpleNamespace(fit=lambda window: mixture((0, 0)))
    searcher.beyond = [mixture((0, 0), (20, 0)), mixture((0.1, 0), (20.1, 0), (0, 30)),
                       mixture((0, 0), (-25, 0))]
    found = searcher.mixture(None)
    assert found.n == 4
    for mode, distance in (((0, 0), 1e-9), ((20, 0), 0.2), ((0, 30), 1e-9), ((-25, 0), 1e-9)):
        assert np.sqrt(((found.means[1:] - mode) ** 2).sum(axis=1)).min() < distance
