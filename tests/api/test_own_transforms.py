"""Transforms of a user's own, in Python: their draws, their Jacobian, and their errors."""

import re
from dataclasses import dataclass

import numpy as np
import pytest
from runs import sample
from scipy import stats

import fastkam as fk

OPTIONS = {"draws": 40, "tune": 40, "chains": 2, "seed": 3, "progress": False}


@dataclass(frozen=True)
class Square(fk.Transform):
    """x = scale z^2 of z > 0, given by log z."""

    scale: float = 1.0

    def constrain(self, z):
        return self.scale * np.exp(2 * z)

    def unconstrain(self, x):
        return 0.5 * np.log(x / self.scale)

    def log_jacobian(self, z):
        return float((np.log(2 * self.scale) + 2 * z).sum())

    def pull_back(self, z, dx):
        return dx * 2 * self.scale * np.exp(2 * z) + 2


@dataclass(frozen=True)
class WithoutJacobian(Square):
    def log_jacobian(self, z):
        return 0.0


@dataclass(frozen=True)
class OfWrongSign(Square):
    def log_jacobian(self, z):
        return -super().log_jacobian(z)


@pytest.mark.parametrize("wrong", [WithoutJacobian(), OfWrongSign()])
@pytest.mark.parametrize("shape", [1, 3])
def test_a_wrong_jacobian_of_a_transform_is_refused(wrong, shape):
    prior = {"a": (stats.gamma(2), shape)}
    with pytest.raises(ValueError, match=r"log_jacobian of transforms\['a'\] must be log .dx/dz"):
        fk.Problem(lambda a: 0.0, prior, transforms={"a": wrong})
    fk.Problem(lambda a: 0.0, prior, transforms={"a": Square()})


@dataclass(frozen=True)
class OfAnotherInverse(Square):
    def unconstrain(self, x):
        return np.log(x / self.scale)


def test_a_transform_that_is_not_inverted_is_refused():
    with pytest.raises(ValueError, match=r"unconstrain of transforms\['a'\] must be the inverse"):
        fk.Problem(lambda a: 0.0, {"a": stats.gamma(2)}, transforms={"a": OfAnotherInverse()})


@dataclass(frozen=True)
class WithGap(fk.Transform):
    """The identity below 1; a mistake gives NaN above."""

    def constrain(self, z):
        return np.where(z < 1, z, np.nan)

    def unconstrain(self, x):
        return x + 0.0

    def log_jacobian(self, z):
        return 0.0

    def pull_back(self, z, dx):
        return dx


@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")
@pytest.mark.parametrize("sampler", ["ram", "auto", "mala"])
@pytest.mark.parametrize("vectorized", [False, True])
def test_a_transform_that_gives_nan_is_reported(sampler, vectorized):
    """The function is not called there, and the points do not count as beyond the bounds."""
    def normal(x):
        assert np.isfinite(x).all()
        value = -0.5 * (x * x).sum(axis=-1)
        return (value, -x) if sampler == "mala" else value

    result = sample(normal, [0.0], prior={"a": (None, 1)}, transforms={"a": WithGap()},
                    sampler=sampler, vectorized=vectorized, **OPTIONS | {"draws": 300})
    assert result.rejected["nan"].sum() > 0
    assert result.rejected["outside"].sum() == 0
    assert "rejected" in [one.kind for one in result.warnings]


@dataclass(frozen=True)
class WithJacobianWithin(fk.Transform):
    """The identity, whose Jacobian is NaN, by a logarithm, beyond the bounds of a parameter."""

    def constrain(self, z):
        return z

    def unconstrain(self, x):
        return x

    def log_jacobian(self, z):
        return float((2 * np.log(np.sqrt(z)) - np.log(z)).sum())


def test_beyond_the_bounds_no_jacobian_is_asked_for():
    result = sample(lambda a: -0.5 * a * a, [1.0], bounds={"a": (0, None)},
                    transforms={"a": WithJacobianWithin()}, **OPTIONS)
    assert result.rejected["outside"].sum() > 0
    assert result.rejected["nan"].sum() == 0


def test_a_user_defined_transform(tmp_path):
    prior = {"a": stats.gamma(2), "b": stats.norm()}
    problem = fk.Problem(lambda x: (0.0, np.zeros(2)), prior, transforms={"a": Square(3.0)})
    z = np.array([0.2, 0.1])
    assert fk.check_gradient(problem.target(gradient=True), z).ok
    density = np.exp(problem.log_prior_z(np.stack([np.linspace(-9, 3, 10_001),
                                                   np.zeros(10_001)], axis=1)))
    np.testing.assert_allclose(np.trapezoid(density, np.linspace(-9, 3, 10_001)),
                               stats.norm.pdf(0), rtol=1e-6)
    result = sample(problem, sampler="nuts", **OPTIONS)
    result.save(tmp_path / "run.fk")
    np.testing.assert_array_equal(fk.load(tmp_path / "run.fk").draws, result.draws)


def test_a_transform_that_fails():
    @dataclass(frozen=True)
    class Fragile(Square):
        def log_jacobian(self, z):
            raise ArithmeticError("no Jacobian")

    @dataclass(frozen=True)
    class WrongSize(Square):
        def constrain(self, z):
            return np.zeros(3)

    for transform, says in ((Fragile(), "no Jacobian"), (WrongSize(), "constrain must return 1")):
        with pytest.raises(fk.SamplingError, match=says):
            sample(lambda x: 0.0, [1.0], bounds={"x": (0, None)}, transforms={"x": transform},
                   **OPTIONS)


@dataclass(frozen=True)
class Returning(Square):
    """A square with one method that returns something else, or raises an error."""

    method: str = ""
    value: object = None

    def changed(self, method, value):
        if method != self.method:
            return value
        return self.value(value) if callable(self.value) else self.value

    def constrain(self, z):
        return self.changed("constrain", super().constrain(z))

    def log_jacobian(self, z):
        return self.changed("log_jacobian", super().log_jacobian(z))

    def pull_back(self, z, dx):
        return self.changed("pull_back", super().pull_back(z, dx))


@pytest.mark.parametrize(("method", "value", "says"), [
    ("log_jacobian", lambda value: np.array([value]),
     r"TypeError: log_jacobian must return a number, not an array of shape \(1,\)"),
    ("log_jacobian", None, "TypeError: log_jacobian must return a number, not None"),
    ("log_jacobian", lambda value: 1 / 0, "ZeroDivisionError: division by zero"),
    ("constrain", (1.0, 2.0), r"TypeError: constrain must return 1 numbers, not .* \(2,\)"),
    ("pull_back", (1.0, 2.0), r"TypeError: pull_back must return 1 numbers, not .* \(2,\)"),
])
def test_a_transform_is_named_for_its_errors_and_not_the_target(method, value, says):
    options = OPTIONS | {"transforms": {"x": Returning(1.0, method, value)},
                         "bounds": {"x": (0, None)}}
    def f(x):
        return (-x[0], np.array([-1.0])) if method == "pull_back" else -x[0]

    with pytest.raises(fk.SamplingError) as caught:
        sample(f, [1.0], sampler="mala" if method == "pull_back" else "ram", **options)
    text = str(caught.value)
    assert re.match(f"{method} of the transform Returning raised {says} \\(", text), text
    assert "target" not in text
    assert "return -inf" not in text


def test_a_jacobian_may_be_any_number():
    for kind in (np.float64, np.array, np.float32):
        transform = Returning(1.0, "log_jacobian", kind)
        sample(lambda x: -x[0], [1.0], transforms={"x": transform}, bounds={"x": (0, None)},
               **OPTIONS)
