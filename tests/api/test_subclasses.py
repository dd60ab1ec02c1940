"""Subclasses of samplers, schedules and kernels are read from files as they were written.

A file names the class of each object; one that this process has not defined is refused by name,
and can be given beside the file.
"""

import gc
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import densities
import numpy as np
import pytest
import subclasses
from densities import D
from runs import sample
from same import assert_same

import fastkam as fk
from fastkam.parameters import class_path
from fastkam.samplers import SAMPLERS

TINY = {"ckam": {"cycle": 20}, "kpca": {"subsample": 12}}     # where defaults need a longer run
OPTIONS = {"tune": 40, "chains": 2, "seed": 9, "progress": False}
LAST = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import densities"


def whole_and_part(path, sampler, **options):
    """A run of 60 draws, and the first 23 of it in a file."""
    options = OPTIONS | {"sampler": sampler} | options
    whole = sample(densities.python, np.ones(D), draws=60, **options)
    part = sample(densities.python, np.ones(D), draws=23, checkpoint=path, **options)
    return whole, part


def in_a_new_process(script, *args):
    """Return what a new Python prints for `script`, or the last line of its error."""
    run = subprocess.run([sys.executable, "-W", "error", "-c", f"{LAST}\nimport fastkam as fk\n"
                          + script, *map(str, args)], capture_output=True, text=True, timeout=120)
    return run.stdout if run.returncode == 0 else run.stderr.splitlines()[-1]


@pytest.mark.parametrize("name", subclasses.SAMPLERS)
def test_a_subclass_is_read_back_from_a_file(name, tmp_path):
    sampler = subclasses.SAMPLERS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole, part = whole_and_part(tmp_path / "run.fk", sampler, diagnose=False)
        part.save(tmp_path / "saved.fk")
        for path in (tmp_path / "run.fk", tmp_path / "saved.fk"):
            loaded = fk.load(path)
            assert type(loaded.sampler) is type(sampler)
            assert repr(loaded.sampler) == repr(sampler)
            assert_same(fk.resume(path, 37, target=densities.python, diagnose=False), whole)
            assert_same(loaded.resume(37, target=densities.python, diagnose=False), whole)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_subclass_of_every_sampler_is_read_back_from_a_file(name, tmp_path):
    own = getattr(subclasses, f"My{SAMPLERS[name].__name__}")
    options = {"sampler": own(**TINY.get(name, {})), "draws": 20, **OPTIONS, "tune": 60}
    part = sample(densities.python_pair, np.ones(D), checkpoint=tmp_path / "run.fk", **options)
    loaded = fk.load(tmp_path / "run.fk")
    assert type(loaded.sampler) is own
    built_in = sample(densities.python_pair, np.ones(D),
                      **options | {"sampler": SAMPLERS[name](**TINY.get(name, {}))})
    np.testing.assert_array_equal(loaded.draws, built_in.draws)
    assert_same(loaded.resume(5, target=densities.python_pair),
                part.resume(5, target=densities.python_pair))


def test_nested_classes_are_read_back(tmp_path):
    _, part = whole_and_part(tmp_path / "run.fk", subclasses.SAMPLERS["a parameter of its own"])
    assert type(fk.load(tmp_path / "run.fk").sampler.gain) is subclasses.Decay
    whole_and_part(tmp_path / "kernel.fk", subclasses.SAMPLERS["a kernel within"])
    assert type(fk.load(tmp_path / "kernel.fk").sampler.kernel) is subclasses.Smooth
    whole_and_part(tmp_path / "inner.fk", subclasses.SAMPLERS["a subclass within"])
    assert type(fk.load(tmp_path / "inner.fk").sampler.sampler) is subclasses.InPoints
    assert type(part.sampler.gain) is subclasses.Decay


def test_a_subclass_is_not_the_built_in_of_its_name(tmp_path):
    whole, _ = whole_and_part(tmp_path / "run.fk", subclasses.RandomWalk(proposal_cov=1.0))
    other, _ = whole_and_part(tmp_path / "other.fk", fk.RandomWalk(proposal_cov=1.0))
    assert not np.array_equal(whole.draws, other.draws)
    assert type(fk.load(tmp_path / "run.fk").sampler) is subclasses.RandomWalk
    assert type(fk.load(tmp_path / "other.fk").sampler) is fk.RandomWalk


@pytest.mark.parametrize("name", subclasses.SAMPLERS)
def test_a_new_process_needs_the_module(name, tmp_path):
    """Reading a file imports nothing: the classes that it names must have been defined."""
    path, out = tmp_path / "run.fk", tmp_path / "out.fk"
    whole, _ = whole_and_part(path, subclasses.SAMPLERS[name])
    resume = ("fk.resume(sys.argv[1], 37, target=densities.python, diagnose=False)"
              ".save(sys.argv[2])")
    error = in_a_new_process(resume, path, out)
    assert error.startswith("ValueError") or "ValueError: " in error
    assert f"{path} names the class 'subclasses:" in error
    assert "import the module 'subclasses' first" in error
    assert "give sampler=" in error
    assert in_a_new_process(f"import subclasses; {resume}", path, out) == ""
    assert_same(fk.load(out), whole)


def test_the_sampler_can_be_given(tmp_path):
    path = tmp_path / "run.fk"
    Local = subclasses.made_in_a_function()
    whole, _ = whole_and_part(path, Local())
    assert type(fk.load(path).sampler) is Local
    assert_same(fk.resume(path, 37, target=densities.python), whole)
    script = """
import numpy as np, subclasses
try:
    fk.load(sys.argv[1])
except ValueError as error:
    assert "made_in_a_function.<locals>.Local" in str(error) and "sampler=" in str(error), error
else:
    raise AssertionError
sampler = subclasses.made_in_a_function()()
assert fk.load(sys.argv[1], sampler=sampler).sampler is sampler
again = fk.resume(sys.argv[1], 37, target=densities.python, sampler=sampler, diagnose=False)
again.save(sys.argv[2])
"""
    assert in_a_new_process(script, path, tmp_path / "out.fk") == ""
    assert_same(fk.load(tmp_path / "out.fk"), whole)


def test_a_script_defines_a_class(tmp_path):
    """The same script finds it again; another does not."""
    define = "class Mine(fk.RandomWalk):\n    pass\n"
    script = """fk.sample(densities.python, [1.0, 1.0], sampler=Mine(), draws=9, progress=False,
          checkpoint=sys.argv[1])"""
    path = tmp_path / "run.fk"
    assert in_a_new_process(define + script, path) == ""
    assert in_a_new_process(define + "print(type(fk.load(sys.argv[1]).sampler) is Mine)",
                            path) == "True\n"
    assert "names the class '__main__:Mine'" in in_a_new_process("fk.load(sys.argv[1])", path)
    script = "print(fk.resume(sys.argv[1], 3, sampler='rwm', target=densities.python).draws.shape)"
    assert in_a_new_process(script, path) == "(4, 12, 2)\n"


def test_two_classes_of_one_function_are_not_mixed_up(tmp_path):
    def made(cov):
        class Local(fk.RandomWalk):
            def build(self, x0):
                return fk.RandomWalk(proposal_cov=cov).build(x0)

        return Local

    path, bold, timid = tmp_path / "run.fk", made(4.0), made(0.1)
    whole, _ = whole_and_part(path, bold())
    with pytest.raises(ValueError, match=r"2 classes under that name.*sampler="):
        fk.load(path)
    assert_same(fk.resume(path, 37, target=densities.python, sampler=bold()), whole)
    del timid
    gc.collect()
    assert type(fk.load(path).sampler) is bold


def test_a_schedule_can_be_given(tmp_path):
    path = tmp_path / "run.fk"
    whole, _ = whole_and_part(path, "ram", schedule=subclasses.Late())
    assert type(fk.load(path).schedule) is subclasses.Late
    assert_same(fk.resume(path, 37, target=densities.python), whole)
    assert "subclasses:Late" in in_a_new_process("fk.load(sys.argv[1])", path)
    assert "give schedule=" in in_a_new_process("fk.load(sys.argv[1])", path)
    given = fk.load(path, schedule=subclasses.Late())
    assert_same(given.resume(37, target=densities.python), whole)


def test_objects_that_no_file_can_hold_can_be_passed_to_resume(tmp_path):
    @dataclass(frozen=True, kw_only=True, eq=False)
    class Odd(fk.RandomWalk):
        scale: object = abs

    path, sampler = tmp_path / "run.fk", Odd()
    whole, _ = whole_and_part(path, sampler)
    with pytest.raises(ValueError, match=r"could not hold .*abs.*give sampler="):
        fk.load(path)
    assert_same(fk.resume(path, 37, target=densities.python, sampler=sampler), whole)


def test_a_surrogate_and_a_given_sampler(tmp_path):
    path = tmp_path / "run.fk"
    both = {"target": densities.python, "surrogate": densities.python}
    whole, _ = whole_and_part(path, subclasses.RandomWalk(proposal_cov=1.0),
                              surrogate=densities.python)
    assert_same(fk.resume(path, 37, **both), whole)
    assert_same(fk.resume(path, 37, sampler=subclasses.RandomWalk(proposal_cov=1.0), **both), whole)


def test_a_sampler_beside_a_result_is_refused():
    result = sample(densities.python, np.ones(D), draws=5, tune=0, progress=False)
    with pytest.raises(ValueError, match="sampler and schedule must be given with a file"):
        result.resume(5, sampler="ram")


# ---- the registry ----


def test_a_class_registers_itself():
    class Mine(fk.RandomWalk, name="mine"):
        pass

    try:
        result = sample(densities.python, np.ones(D), sampler="mine", draws=5, progress=False)
        assert type(result.sampler) is Mine
    finally:
        del SAMPLERS["mine"]


def test_a_registered_name_cannot_be_used_again():
    with pytest.raises(ValueError, match="name must be new, not 'rwm', which is fastkam"):
        class Mine(fk.RandomWalk, name="rwm"):
            pass
    assert SAMPLERS["rwm"] is fk.RandomWalk


def test_paths_of_built_ins():
    for cls in SAMPLERS.values():
        assert class_path(cls).startswith("fastkam.samplers.")


def test_a_copy_of_a_class_does_not_hide_it(tmp_path):
    """Workers may send such copies, which are gone later."""
    cls = subclasses.RandomWalk
    result = sample(densities.python, np.ones(D), sampler=cls(), draws=5, tune=5, chains=1, seed=1)
    result.save(tmp_path / "run.fk")
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "build": cls.build}
    other = type(cls)(cls.__name__, cls.__bases__, names)
    assert class_path(other) == class_path(cls)
    assert type(fk.load(tmp_path / "run.fk").sampler) is cls
    del other
    gc.collect()
    assert type(fk.load(tmp_path / "run.fk").sampler) is cls


def test_another_sampler_for_a_file_is_refused_by_name(tmp_path):
    result = sample(densities.python, np.ones(D), sampler="ram", draws=5, tune=5, chains=1, seed=1)
    result.save(tmp_path / "run.fk")
    with pytest.raises(ValueError, match=r"sampler must be the one whose states .*mu is missing"):
        fk.load(tmp_path / "run.fk", sampler="am")
