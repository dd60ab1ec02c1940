"""Parameter objects own what they are given, and any value goes into a file or is left out."""

import inspect
from dataclasses import dataclass, fields

import numpy as np
import pytest

import fastkam as fk
from fastkam.parameters import plain, revived

OPTIONS = {"search": False, "draws": 20, "tune": 10, "chains": 2, "seed": 1, "diagnose": False}


def density(x):
    return -0.5 * float(x @ x)


def test_a_sampler_owns_its_arrays():
    """Changing the caller's array afterwards changes neither the run nor what resume does."""
    cov, rows = np.eye(2), [[1.0, 0.0], [0.0, 1.0]]
    means = [np.zeros(2), np.ones(2)]
    samplers = [fk.RandomWalk(proposal_cov=cov), fk.RandomWalk(proposal_cov=rows)]
    jumps = fk.ModeJumping(means=means)
    whole = fk.sample(density, [0.0, 0.0], sampler=samplers[0], **OPTIONS | {"draws": 40})
    part = fk.sample(density, [0.0, 0.0], sampler=samplers[0], **OPTIONS)
    cov *= 100
    rows[0][0] = 100.0
    means[0][:] = 9.0
    for sampler in samplers:
        np.testing.assert_array_equal(sampler.proposal_cov, np.eye(2))
        result = fk.sample(density, [0.0, 0.0], sampler=sampler, **OPTIONS)
        np.testing.assert_array_equal(result.draws, whole.draws[:, :20])
    np.testing.assert_array_equal(jumps.means, [[0.0, 0.0], [1.0, 1.0]])
    np.testing.assert_array_equal(part.resume(20).draws, whole.draws)


def test_owned_arrays_are_read_only():
    sampler = fk.RandomWalk(proposal_cov=np.eye(2))
    with pytest.raises(ValueError, match="read-only"):
        sampler.proposal_cov[0, 0] = 2.0


def test_a_data_frame_becomes_an_array(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.diag([1.0, 2.0]), columns=["a", "b"])
    sampler = fk.RandomWalk(proposal_cov=frame)
    frame *= 100
    path = tmp_path / "run.fk"
    whole = fk.sample(density, [0.0, 0.0], sampler=sampler, **OPTIONS | {"draws": 40})
    fk.sample(density, [0.0, 0.0], sampler=sampler, checkpoint=path, **OPTIONS)
    assert type(fk.load(path).sampler.proposal_cov) is np.ndarray
    np.testing.assert_array_equal(fk.resume(path, 20, target=density).draws, whole.draws)


@dataclass(frozen=True, kw_only=True, eq=False)
class Odd(fk.RandomWalk):
    extra: object = None


class Unprintable:
    def __repr__(self):
        raise ZeroDivisionError


VALUES = [{(1, 2): 3}, {1: 2}, np.longdouble(3), np.array([1j]), np.array([object()]), b"bytes", 1j,
          np.datetime64("2020-01-01"), np.array(["2020"], dtype="M8[D]"), Unprintable(),
          np.ones(2, np.longdouble), object(), print, {"a": [1, {2}]}]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_a_parameter_that_no_file_can_hold_is_refused_before_the_run(tmp_path, value):
    """The file leaves it out, and the run resumes if it is given again."""
    path, sampler = tmp_path / "run.fk", Odd(extra=value)
    whole = fk.sample(density, [0.0, 0.0], sampler=sampler, **OPTIONS | {"draws": 40})
    fk.sample(density, [0.0, 0.0], sampler=sampler, checkpoint=path, **OPTIONS)
    with pytest.raises(ValueError, match=r"could not hold .* give sampler="):
        fk.load(path)
    again = fk.resume(path, 20, target=density, sampler=sampler)
    np.testing.assert_array_equal(again.draws, whole.draws)


@pytest.mark.parametrize("value", [
    None, True, 3, 0.5, float("inf"), "text", np.float32(0.1), np.arange(3), np.ones((2, 2), bool),
    np.array(["a"]), {"a": [1, np.ones(2)]}], ids=repr)
def test_parameters_are_the_same_after_a_file(value):
    np.testing.assert_equal(revived(plain(value)), value)


def test_a_file_that_cannot_be_made_does_not_hide_the_error_of_the_density(tmp_path, monkeypatch):
    class Broken(Exception):
        pass

    def fails(x):
        raise Broken("for its own reason")

    monkeypatch.setattr("fastkam.run.checkpoint.plain", lambda value: 1 / 0)
    with pytest.raises(fk.SamplingError, match=r"Broken: for its own reason.*division by zero"):
        fk.sample(fails, [0.0], checkpoint=tmp_path / "run.fk", **OPTIONS)
    with pytest.raises(fk.SamplingError, match="complete, but checkpoint=") as caught:
        fk.sample(density, [0.0], checkpoint=tmp_path / "run.fk", **OPTIONS)
    assert caught.value.result.draws.shape == (2, 20, 1)


@dataclass
class Own:
    value: int = 1


def test_a_dataclass_of_the_user_is_left_out_of_a_file():
    assert plain(Own()) == {"left out": repr(Own())}
    assert plain([Own(), 2]) == [{"left out": repr(Own())}, 2]


@pytest.mark.parametrize("cls", [fk.NUTS, fk.kernels.Gaussian, fk.schedules.Finite, Odd])
def test_help_and_editors_see_the_parameters(cls):
    """The signature is not (*places, **named), that of the metaclass."""
    names = [field.name for field in fields(cls)]
    assert names
    assert list(inspect.signature(cls).parameters) == names
