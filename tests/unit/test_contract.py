"""Needs that a kernel declares, and kernels that the engine refuses."""

import importlib
import pkgutil
from dataclasses import dataclass

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam._core import samplers as compiled
from fastkam._core.engine.chain import NUMBERS, ChainState
from fastkam._core.engine.fields import Field
from fastkam._core.engine.group import Group
from fastkam._core.engine.state import State, offsets, zeros
from fastkam.samplers import SAMPLERS
from fastkam.samplers.sampler import Composite, Sampler
from fastkam.schedules import Plan
from fastkam.testing import replicate

MODULES = [importlib.import_module(f"fastkam._core.samplers.{module.name}")
           for module in pkgutil.iter_modules(compiled.__path__)]
STATES = sorted({value for module in MODULES for value in vars(module).values()
                 if isinstance(value, type) and issubclass(value, State)},
                key=lambda cls: cls.__name__)


def logp(x):
    return -0.5 * x @ x


@dataclass(frozen=True, kw_only=True, eq=False)
class UndeclaredMALA(Sampler):
    """Only its compiled class says that it needs the gradient."""

    KERNEL = "mala.MALA"

    def build(self, x0):
        return self.kernel_class()(len(x0), np.array(1.0), step_size=0.5, target_acceptance=0.5,
                                   jitter=0.0)


def test_the_compiled_class_says_that_it_needs_the_gradient():
    assert UndeclaredMALA().needs_gradient
    with pytest.raises(TypeError, match="needs the gradient: the function must return the pair"):
        sample(logp, [0.0, 0.0], sampler=UndeclaredMALA(), progress=False)
    with pytest.raises(ValueError, match="UndeclaredMALA needs the gradient"):
        sample(fk.as_target(logp, 2), [0.0, 0.0], sampler=UndeclaredMALA(), progress=False)
    result = sample(lambda x: (logp(x), -x), [0.0, 0.0], sampler=UndeclaredMALA(), draws=20,
                    tune=0, progress=False)
    assert result.draws.shape == (4, 20, 2)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_target_without_a_gradient_is_refused_by_samplers_that_need_it(name):
    if not SAMPLERS[name]().needs_gradient:
        result = sample(fk.as_target(logp, 2), [0.0, 0.0], sampler=name, draws=10, tune=450,
                        progress=False)
        assert result.draws.shape == (4, 10, 2)
        return
    with pytest.raises(ValueError, match="needs the gradient"):
        sample(fk.as_target(logp, 2), [0.0, 0.0], sampler=name, progress=False)
    kernel = SAMPLERS[name]().kernel_class().__name__
    with pytest.raises(TypeError, match=f"{kernel} needs the gradient, and <Target"):
        replicate(name, fk.as_target(logp, 2), np.zeros((1, 2)), 1, seed=1)


@pytest.mark.parametrize("name", SAMPLERS)
def test_needs_of_a_sampler_are_those_of_its_kernel(name):
    sampler = SAMPLERS[name]()
    kernel = sampler.build(np.zeros(2))
    assert kernel.gradient == sampler.needs_gradient
    assert kernel.several == sampler.several_evaluations
    assert tuple(kernel.stat_names()) == sampler.stat_names


def test_composites_need_what_their_parts_need():
    assert fk.ParallelTempering(sampler="mala").build(np.zeros(2)).gradient
    assert fk.Scout(main="ram", scout="mala").needs_gradient
    kernel = fk.ParallelTempering(sampler="nuts", n_replicas=2).build(np.zeros(2))
    chain = ChainState(kernel, np.random.PCG64(1), np.zeros(2))
    with pytest.raises(TypeError, match="Exchange needs the gradient"):
        Group(fk.as_target(logp, 2).bind(), [chain], Plan())


def test_more_replicas_than_the_kernel_has_room_for_are_refused():
    from fastkam._core.samplers.exchange import Exchange

    kernels = [fk.RandomWalk().build(np.zeros(1)) for _ in range(Exchange.LARGEST + 1)]
    with pytest.raises(ValueError, match=f"1 to {Exchange.LARGEST} kernels, not"):
        Exchange(kernels, np.linspace(1, 0.1, len(kernels)), scheme="even-odd", every=1,
                 reference=None, widening=1.0, fits=False, tunes=True)
    with pytest.raises(ValueError, match=f"n_replicas must be at most {Exchange.LARGEST}"):
        fk.ParallelTempering(n_replicas=Exchange.LARGEST + 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class NotWhatItBuilds(Sampler):
    """Its KERNEL is a random walk; what it builds is another sampler's kernel."""

    KERNEL = "rwm.RandomWalk"
    builds: Sampler

    def build(self, x0):
        return self.builds.build(x0)


@pytest.mark.parametrize("other", [fk.MALA(), fk.NUTS(), fk.AutoStepRandomWalk(),
                                   fk.ParallelTempering(n_replicas=30)], ids=repr)
def test_a_surrogate_before_another_kernel_than_was_declared_is_refused(other):
    with pytest.raises(TypeError, match="inner must be a kernel with one evaluation a step"):
        sample(logp, [0.0, 0.0], sampler=NotWhatItBuilds(builds=other), surrogate=logp,
               progress=False)


def group_of(samplers, d=2):
    target = fk.as_target(lambda x: (logp(x), -x), 2, gradient=True)
    chains = [ChainState(one.build(np.zeros(d)), np.random.PCG64(k), np.zeros(d))
              for k, one in enumerate(samplers)]
    return Group(target, chains, (1.0, 0.0, 0.0, 1.0, 0, 0, 0.0))


def test_every_chain_of_a_group_must_fit():
    group_of([fk.MALA(), fk.MALA()])
    with pytest.raises(TypeError, match="MALA has 300 dimensions, and <Target"):
        group_of([fk.MALA()], d=300)
    with pytest.raises(TypeError, match="must evaluate equally many points a step"):
        group_of([fk.RandomWalk(), fk.MALA()])
    with pytest.raises(TypeError, match=r"Exchange has width \d+ and .* RandomWalk has 1"):
        group_of([fk.RandomWalk(), fk.ParallelTempering(n_replicas=3)])


# ---- the table of the state ----


@pytest.mark.parametrize("cls", [*STATES, ChainState], ids=lambda cls: cls.__name__)
def test_the_table_names_everything_public(cls):
    """A public attribute that a step could change and a checkpoint would not hold."""
    assert all(isinstance(field, Field) and field.meaning for field in cls.FIELDS.values())
    declared = {*cls.FIELDS, *NUMBERS} if issubclass(cls, ChainState) else set(cls.FIELDS)
    writable = {name for base in cls.__mro__ for name, value in vars(base).items()
                if type(value).__name__ == "getset_descriptor" and not name.startswith("__")
                and is_writable(cls, name)}
    assert writable <= declared, writable - declared


def is_writable(cls, name):
    try:
        setattr(cls.__new__(cls), name, object())
    except AttributeError:
        return False
    except TypeError:
        return True
    return True


@pytest.mark.parametrize("name", SAMPLERS)
def test_numbers_are_found_where_they_are(name):
    """Setting the view of a number sets the attribute, and nothing else of the kernel."""
    kernel = SAMPLERS[name]().build(np.zeros(2))
    for field in offsets(kernel):
        before = kernel.state()
        value = 7 if kernel.FIELDS[field].dtype == "i8" else 0.625
        kernel.numbers()[field][...] = value
        assert getattr(kernel, field) == value
        after = kernel.state()
        changed = {key for key in before
                   if not np.array_equal(before[key], after[key], equal_nan=True)}
        assert changed <= {field}
        kernel.numbers()[field][...] = before[field]


def test_a_shared_number_is_taken_over_and_others_are_not():
    sampler = fk.GradientAdaptiveMALA()
    result = sample(lambda x: (logp(x), -x), [0.0, 0.0], sampler=sampler, share=True, chains=3,
                    draws=10, tune=50, progress=False, seed=1)
    fields = sampler.kernel_class().FIELDS
    for name, field in fields.items():
        values = [state[f"kernel.{name}"] for state in result.states]
        if field.shared:
            np.testing.assert_array_equal(values, [values[0]] * 3, err_msg=name)
    own = [name for name, field in fields.items() if not field.shared and name == "e"]
    assert own
    assert len({result.states[k]["kernel.e"].tobytes() for k in range(3)}) == 3


def test_parts_of_composites_have_tables_too():
    assert issubclass(Composite, Sampler)
    state = fk.ParallelTempering(n_replicas=3).build(np.zeros(2)).state()
    for name in ("ladder", "swaps.attempted", "evidence.stones", "reference.mean", "rung0.log_pi_x",
                 "rung2.kernel.S"):
        assert name in state


@pytest.mark.parametrize("dtype", [float, np.int64, np.int8])
@pytest.mark.parametrize("shape", [1, 3, (5, 7), (32, 32)])
def test_arrays_begin_at_a_cache_line(shape, dtype):
    array = zeros(shape, dtype, "F")
    assert array.ctypes.data % 64 == 0
    assert array.dtype == dtype
    assert array.shape == (shape if isinstance(shape, tuple) else (shape,))
    assert not array.any()
