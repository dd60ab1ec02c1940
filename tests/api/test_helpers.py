"""Threads that help a group with its evaluations: another speed, and no other draw."""

import ctypes
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import densities
import numpy as np
import pytest
from densities import D, ctypes_function, with_gradient
from runs import sample
from same import assert_same

import fastkam as fk

ONE_CHAIN = {"chains": 1, "tune": 40, "draws": 40, "seed": 2, "check_gradient": False}
SHARED = ONE_CHAIN | {"chains": 5, "share": True}


def slow(library, form="counted"):
    """A compiled target that takes some 100 microseconds."""
    f = ctypes_function(library, form)
    if form == "counted_estimate":
        return fk.Target.from_estimator(f, D, 1)
    return fk.as_target(f, D)


def sampled(library, target, threads, **options):
    """(result, the most evaluations at once)"""
    most = ctypes_function(library, "most_at_once")
    most()
    return sample(target, np.ones(D), threads=threads, **options), most()


@pytest.mark.parametrize(("form", "options"), [
    ("counted", ONE_CHAIN | {"sampler": "pt"}),
    ("counted", ONE_CHAIN | {"sampler": fk.ParallelTempering(sampler="dram", n_replicas=5)}),
    ("counted", SHARED | {"sampler": "ram"}),
    ("counted", SHARED | {"sampler": "kam", "thin": 3}),
    ("counted_grad", SHARED | {"sampler": "nuts"}),
    ("counted_grad", ONE_CHAIN | {"sampler": "dm"}),
    ("counted_grad", ONE_CHAIN | {"sampler": fk.ParallelTempering(sampler="mala")}),
    ("counted_estimate", SHARED | {"sampler": "am"}),
    ("counted_estimate", ONE_CHAIN | {"sampler": "pt"}),
], ids=str)
def test_the_same_draws(library, form, options):
    expected, most = sampled(library, slow(library, form), 1, **options)
    assert most == 1
    for threads in (2, 4):
        result, most = sampled(library, slow(library, form), threads, **options)
        assert_same(result, expected)
        assert 1 < most <= threads


def test_groups_divide_the_threads(library):
    """Two chains with eight replicas each, and two threads for each."""
    options = ONE_CHAIN | {"sampler": "pt", "chains": 2}
    expected, _ = sampled(library, slow(library), 1, **options)
    for threads, least in ((2, 1), (4, 3)):
        result, most = sampled(library, slow(library), threads, **options)
        assert_same(result, expected)
        assert least <= most <= threads


def test_a_cheap_density_has_no_helpers(library):
    cheap = with_gradient("c", library)
    sample(cheap, np.ones(D), sampler="pt", threads=4, **ONE_CHAIN)
    before = threads_of_this_process()
    seen = []
    sample(cheap, np.ones(D), sampler="pt", threads=4, **ONE_CHAIN | {"draws": 30_000},
           progress=lambda p: seen.append(threads_of_this_process()))
    assert set(seen) == {before}


def test_a_serial_target_and_a_python_function_have_none(library):
    f = ctypes_function(library, "counted")
    _, most = sampled(library, fk.Target.from_c(f, D, thread_safe=False), 4, **SHARED)
    assert most == 1
    _, most = sampled(library, lambda x: f(D, x.ctypes.data_as(densities.DOUBLES)), 4, **SHARED)
    assert most == 1


# ---- faults ----


def faulty(library, form, code, answer):
    data = (ctypes.c_double * 3)(1.2, code, answer)
    return fk.Target.from_c(ctypes_function(library, form), D,
                            user_data=ctypes.cast(data, ctypes.c_void_p))


@pytest.mark.parametrize(("code", "answer"), [(0, np.nan), (3, 0.0)])
def test_rejected_points_are_counted_alike(library, code, answer):
    expected = sample(faulty(library, "faulty", code, answer), np.zeros(D), **SHARED)
    result = sample(faulty(library, "slow_and_faulty", code, answer), np.zeros(D), threads=3,
                    **SHARED)
    assert_same(result, expected)
    assert sum(counts.sum() for counts in result.rejected.values()) > 0


@pytest.mark.parametrize(("code", "answer"), [(0, np.inf), (-7, 0.0)])
@pytest.mark.parametrize("options", [ONE_CHAIN | {"sampler": "pt"}, SHARED], ids=["pt", "shared"])
def test_a_fatal_point_stops_the_run_alike(library, options, code, answer):
    errors = []
    for form, threads in (("faulty", 1), ("slow_and_faulty", 3)):
        with pytest.raises(fk.SamplingError) as caught:
            sample(faulty(library, form, code, answer), np.zeros(D), threads=threads, **options)
        errors.append(caught.value)
    one, other = errors
    assert str(one) == str(other)
    assert (one.chain, one.step, one.x.tolist()) == (other.chain, other.step, other.x.tolist())
    mended = [fk.resume(error.result, target=slow(library), threads=threads)
              for error, threads in ((one, 1), (other, 3))]
    assert_same(*mended)


def test_an_exception_of_numba():
    numba = pytest.importorskip("numba")

    @numba.njit
    def f(x):
        s = 0.0
        for k in range(10_000):
            s += np.sin(x[0] + k)
        if x[0] > 1.2:
            raise ValueError("beyond")
        return -0.5 * (x[0] ** 2 + x[1] ** 2) + 0.0 * s

    target, errors = fk.Target.from_numba(f, D), []
    for threads in (1, 3):
        with pytest.raises(fk.SamplingError, match="raised ValueError: beyond") as caught:
            sample(target, np.zeros(D), threads=threads, **SHARED)
        errors.append(caught.value)
    assert str(errors[0]) == str(errors[1])


# ---- nothing is left ----


def threads_of_this_process():
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("this system does not tell how many threads there are")
    return len(os.listdir("/proc/self/task"))


def test_no_thread_is_left_between_chunks_nor_after(library):
    before, seen = threads_of_this_process(), []
    for _ in range(3):
        _, most = sampled(library, slow(library), 4, progress=lambda p: seen.append(
            threads_of_this_process()), **SHARED | {"draws": 400})
        assert most > 1
    assert len(seen) > 10
    # a thread that has been waited for may still be listed for a moment
    assert sorted(seen)[len(seen) // 2] == before
    with pytest.raises(fk.SamplingError):
        sample(faulty(library, "slow_and_faulty", -7, 0.0), np.zeros(D), threads=4, **SHARED)
    assert threads_of_this_process() <= before + 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_is_forked_from_a_run(library):
    """In a pool of forked processes, made in the midst of a run with helpers."""
    recipe = fk.TargetRecipe("densities:ctypes_function", library, "counted")
    expected = sample(recipe, np.ones(D), threads=1, **SHARED)
    found = []

    def fork(progress):
        if not found and not progress.tuning:
            with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
                found.append(pool.submit(helped, recipe).result(timeout=60))

    result = sample(recipe, np.ones(D), threads=3, progress=fork, **SHARED)
    assert_same(result, expected)
    assert_same(found[0], expected)


def helped(recipe):
    return sample(recipe, np.ones(D), threads=3, progress=False, **SHARED)
