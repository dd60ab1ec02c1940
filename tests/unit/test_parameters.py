"""Parameter objects own what they are given, compare by value, and go into files."""

import copy
import inspect
import pickle
from dataclasses import dataclass, fields

import numpy as np
import pytest

import fastkam as fk
from fastkam.parameters import plain, revived
from fastkam.samplers.delayed import DelayedAcceptance
from fastkam.samplers.importance import ImportanceWeighted

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


@dataclass(frozen=True, kw_only=True)
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


# ---- equality ----

NAMED = {name: cls for kind in (fk.samplers.Sampler, fk.schedules.Schedule, fk.kernels.Kernel)
         for name, cls in kind.NAMES.items() if cls.__module__.startswith("fastkam.")}
COV = np.array([[2.0, 0.5], [0.5, 1.0]])
WITH_ARRAYS = {
    "rwm": lambda cov: fk.RandomWalk(proposal_cov=cov),
    "am": lambda cov: fk.AdaptiveMetropolis(target_cov=cov, mean=cov[0]),
    "nuts": lambda cov: fk.NUTS(inverse_mass_matrix=cov),
    "pt": lambda cov: fk.ParallelTempering(sampler=fk.RandomWalk(proposal_cov=cov),
                                           reference=(cov[0], cov)),
    "scout": lambda cov: fk.Scout(scout=fk.RandomWalk(proposal_cov=cov)),
    "jumps": lambda cov: fk.ModeJumping(sampler=fk.ParallelTempering(), means=[cov[0], cov[1]],
                                        covs=[cov, cov]),
    "delayed": lambda cov: DelayedAcceptance(sampler=fk.RandomWalk(proposal_cov=cov)),
    "importance": lambda cov: ImportanceWeighted(sampler=fk.RandomWalk(proposal_cov=cov)),
}


def assert_equal(one, other):
    assert one == other
    assert (one != other) is False
    assert hash(one) == hash(other)
    assert {one: "found"}[other] == "found"


@pytest.mark.parametrize("name", NAMED)
def test_objects_with_equal_parameters_are_equal(name):
    made = NAMED[name]()
    for other in (NAMED[name](), copy.deepcopy(made), pickle.loads(pickle.dumps(made)),
                  revived(plain(made))):
        assert_equal(made, other)
    assert made != name
    assert all(made != cls() for cls in NAMED.values() if cls is not NAMED[name])
    for field in fields(made):
        other = copy.copy(made)
        object.__setattr__(other, field.name, object())
        assert made != other, field.name


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_arrays_are_compared_by_their_elements(name):
    make = WITH_ARRAYS[name]
    made = make(COV)
    for other in (make(COV.copy()), pickle.loads(pickle.dumps(made)), revived(plain(made))):
        assert_equal(made, other)
    assert made != make(COV * [[1, 1], [1, 1 + 1e-15]])


def test_forms_of_the_same_values_are_equal():
    assert_equal(fk.RandomWalk(proposal_cov=COV), fk.RandomWalk(proposal_cov=COV.tolist()))
    assert_equal(fk.RandomWalk(proposal_cov=2), fk.RandomWalk(proposal_cov=np.array(2.0)))
    assert fk.RandomWalk(proposal_cov=[2.0]) != fk.RandomWalk(proposal_cov=2.0)
    assert fk.RandomWalk(proposal_cov=[2.0]) != fk.RandomWalk(proposal_cov=[[2.0]])


def test_classes_of_the_user_are_compared_alike():
    class Walk(fk.PythonSampler):
        proposal_cov: object = 1.0

    @dataclass(frozen=True, kw_only=True, eq=False)
    class Plain(fk.RandomWalk):
        pass

    class Never(fk.RandomWalk):
        def __eq__(self, other):
            return False

    for cls in (Walk, Plain, Odd):
        assert_equal(cls(proposal_cov=COV), cls(proposal_cov=COV.copy()))
        assert cls(proposal_cov=COV) != cls(proposal_cov=2 * COV)
        assert cls(proposal_cov=COV) != fk.RandomWalk(proposal_cov=COV)
    assert Never() != Never()
    with pytest.raises(TypeError, match="unhashable"):
        hash(Never())


def test_parameters_without_a_hash_of_their_own_do_not_prevent_one():
    assert_equal(Odd(extra={"a": [1, np.ones(2)]}), Odd(extra={"a": [1, np.ones(2)]}))
    assert Odd(extra={"a": [1, np.ones(2)]}) != Odd(extra={"a": [1, np.zeros(2)]})


def test_large_arrays_are_shown_by_their_shape():
    """The sampler of a default run has fitted means and covariances."""
    assert f"proposal_cov={np.eye(3)!r}," in repr(fk.RandomWalk(proposal_cov=np.eye(3)))
    sampler = fk.ModeJumping(sampler=fk.MALA(preconditioner=np.eye(10)), means=np.zeros((2, 10)))
    text = repr(sampler)
    assert "preconditioner=<array (10, 10)>" in text
    assert "means=<array (2, 10)>" in text
    assert "\n" not in text
