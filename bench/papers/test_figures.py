"""The pictures of the papers, and the numbers beside them."""

import re
from pathlib import Path

import numpy as np
import pytest

import fastkam as fk
from bench.papers.dharamshi2023 import figures as dharamshi2023
from bench.papers.li2022 import figures as li2022
from bench.papers.titsias2019.released import DiagonalAdaptiveMetropolis

HERE = Path(__file__).parent
PICTURES = sorted(HERE.glob("*/results/*.png"))


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: f"{path.parts[-3]}/{path.stem}")
def test_a_picture_is_small_and_shown(path):
    """The page of its paper links to it."""
    paper = path.parts[-3]
    page = (HERE.parents[1] / "docs" / f"replication-{paper}.md").read_text()
    assert path.stat().st_size < 250_000
    assert f"(../bench/papers/{paper}/results/{path.name})" in re.sub(r"\s+", "", page)


def test_pictures_are_found():
    assert len(PICTURES) >= 20


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_the_multivariate_ess(correlation):
    """The size of an autoregression is n (1 - a) / (1 + a), in any units."""
    n, rng = 40_000, np.random.default_rng(1)
    x = np.zeros((n, 3))
    for t in range(1, n):
        x[t] = correlation * x[t - 1] + rng.standard_normal(3)
    exact = n * (1 - correlation) / (1 + correlation)
    found = li2022.multivariate_ess(x)
    assert found == pytest.approx(exact, rel=0.15)      # d = 3, 200 batches: 4 standard errors
    mixed = x @ np.array([[10.0, 0.0, 0.0], [3.0, 1.0, 0.0], [0.0, 0.2, 0.1]])
    assert li2022.multivariate_ess(mixed) == pytest.approx(found, rel=1e-6)


@pytest.mark.parametrize("name", ["two_mode", "five_component"])
def test_marginals(name):
    x = fk.targets.TARGETS[name]().sample(40_000, seed=1)[:, 0]
    # 2.2 / sqrt(n): by chance, with probability 1e-4 (Kolmogorov)
    assert li2022.deviation(name, x) < 2.2 / np.sqrt(len(x)) < li2022.deviation(name, x + 0.2)


@pytest.mark.parametrize("pair", dharamshi2023.PAIRS)
def test_projections_of_the_bunch(pair):
    n = 100_000
    x = fk.targets.banana_bunch().sample(n, seed=1)[:, pair]
    places = np.arange(-99.875, 100, 0.25)
    density = dharamshi2023.projection(places, places[:, None])
    density /= density.sum()
    for (a, b), (c, d) in [((-3, 3), (-3, 3)), ((20, 40), (-10, 5)), ((-50, 0), (4, 10)),
                           ((2, 9), (30, 45))]:
        inside = (x[:, 0] > a) & (x[:, 0] < b) & (x[:, 1] > c) & (x[:, 1] < d)
        exact = density[(places > c) & (places < d)][:, (places > a) & (places < b)].sum()
        assert inside.mean() == pytest.approx(exact, abs=5 * np.sqrt(exact / n))


def test_the_diagonal_factor():
    target = fk.targets.Gaussian([0.0, 0.0], [[4.0, 1.0], [1.0, 0.3]])
    result = fk.sample(target, np.zeros(2), sampler=DiagonalAdaptiveMetropolis(), tune=4000,
                       draws=100, chains=1, seed=1, progress=False, search=False)
    L = np.asarray(result.states[0]["kernel.L"])
    assert np.count_nonzero(L - np.diag(np.diag(L))) == 0
    assert L[0, 0] > 2 * L[1, 1] > 0
