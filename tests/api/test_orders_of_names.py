"""Names in another order, given twice, or in containers that change later."""

import copy
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from runs import sample

import fastkam as fk


def returned(x):
    """Extras whose order depends on x."""
    a, b = 100 + x[0], [-100 + x[0], 0.0]
    return {"a": a, "b": b} if x[0] > 0 else {"b": b, "a": a}


def with_extras(x):
    return -0.5 * float(x @ x), returned(x)


def check(result):
    x = result.draws[..., 0]
    np.testing.assert_array_equal(result.extras["a"], 100 + x)
    np.testing.assert_array_equal(result.extras["b"][..., 0], -100 + x)


@pytest.mark.parametrize("options", [{}, {"threads": 2}, {"executor": 2}, {"store": "run"}],
                         ids=["one thread", "threads", "processes", "store"])
def test_extras_in_another_order_keep_their_names(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {"draws": 300, "tune": 50, "chains": 4, "sampler": "ram", "seed": 1, "diagnose": False}
    check(sample(with_extras, [[3.0], [-3.0], [3.0], [-3.0]], **given, **options))
    options = {name: value if name != "store" else "other" for name, value in options.items()}
    result = sample(fk.Problem(lambda x: -0.5 * float(x @ x), derived=returned, dim=1),
                    [[3.0], [-3.0], [3.0], [-3.0]], **given, **options)
    check(result)


def test_a_run_that_goes_on_in_another_order_keeps_the_names(tmp_path):
    def reversed_order(x):
        logp, extras = with_extras(x)
        return logp, dict(reversed(extras.items()))

    result = sample(with_extras, [3.0], draws=50, tune=20, chains=2, sampler="ram", seed=1,
                    diagnose=False)
    check(result.resume(50, target=reversed_order))
    result.save(tmp_path / "run.fk")
    check(fk.resume(tmp_path / "run.fk", draws=50, target=reversed_order))


def test_a_copy_of_a_problem_is_that_of_its_arguments_as_they_were():
    bounds, kwargs, args = {"a": (0.0, 1.0)}, {"y": 2.0}, [1.0]
    problem = fk.Problem(lambda x, z, y: -0.5 * y * (x[0] - z) ** 2, bounds=bounds, args=args,
                         kwargs=kwargs)
    before = problem.logp([0.3])
    bounds["a"], kwargs["y"], args[0] = (0.0, 100.0), 50.0, 9.0
    assert copy.copy(problem).logp([0.3]) == problem.logp([0.3]) == before


@pytest.mark.parametrize(("given", "says"), [
    ({"A": np.ones((3, 2)), "b": 0.0}, r"by A must have the shape \(2, 3\), not \(3, 2\)"),
    ({"A": np.ones(6), "b": 0.0}, r"by A must have the shape \(2, 3\), not \(6,\)"),
    ({"A": np.ones((2, 3)), "b": [0.0, 0.0]}, r"by b must have the shape \(\), not \(2,\)"),
])
def test_a_gradient_by_names_has_their_shapes(given, says):
    problem = fk.Problem(lambda A, b: (0.0, given), names=["A", "b"], shapes={"A": (2, 3)})
    with pytest.raises(ValueError, match=says):
        problem.logp_grad(np.zeros(7))
    right = fk.Problem(lambda A, b: (0.0, {"A": np.ones((2, 3)), "b": np.zeros(1)}),
                       names=["A", "b"], shapes={"A": (2, 3)})
    np.testing.assert_array_equal(right.logp_grad(np.zeros(7))[1], [1, 1, 1, 1, 1, 1, 0])


def test_places_of_modules_need_not_be_texts(monkeypatch):
    """Python ignores others, and so do worker processes."""
    monkeypatch.setattr(sys, "path", [*sys.path, Path("modules"), 3])
    result = sample(fk.targets.Gaussian(np.zeros(2)), np.zeros(2), draws=20, chains=2, executor=2,
                    seed=1, diagnose=False)
    assert result.draws.shape == (2, 20, 2)


def test_each_coordinate_has_a_label_of_its_own():
    with pytest.raises(ValueError, match=r"'x\[0\]' is the label of two: rename one"):
        sample(lambda x: -0.5 * x @ x, np.zeros(3), names=["x", "x[0]"], shapes={"x": 2}, draws=10)


def test_a_problem_is_pickled_with_its_prior():
    from scipy import stats

    problem = fk.Problem(np.sum, prior={"a": stats.norm(0, 2)})
    assert pickle.loads(pickle.dumps(problem)).logp([0.3]) == problem.logp([0.3])
