"""Densities that misbehave: what is rejected, what stops a run, and that no draw is lost."""

import _thread
import ctypes
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path

import densities
import numpy as np
import pytest
from densities import D, ctypes_function, short
from runs import sample
from same import assert_same

import fastkam as fk
from fastkam.samplers import SAMPLERS

EDGE = 1.5
KINDS = ["python", "vectorized", "c"]


def faulty(kind, library, *, answer=0.0, code=0, edge=EDGE):
    """A standard normal density that returns another value, or a code, where x0 > edge."""
    if kind == "c":
        data = (ctypes.c_double * 3)(edge, code, answer)
        return fk.Target.from_c(ctypes_function(library, "faulty"), D,
                                user_data=ctypes.cast(data, ctypes.c_void_p))

    def density(x):
        return answer if x[0] > edge else -0.5 * float(x @ x)

    def densities(X):
        return np.where(X[:, 0] > edge, answer, -0.5 * (X * X).sum(axis=1))

    vectorized = kind == "vectorized"
    return fk.Target.from_python(densities if vectorized else density, D, vectorized=vectorized)


def batch_means_z(draws, truth):
    """Return the error of the mean of draws (chains, n) in standard errors."""
    means = draws.reshape(-1, draws.shape[1] // 20).mean(axis=1)
    return (means.mean() - truth) / (means.std(ddof=1) / np.sqrt(len(means)))


# ---- rejected: NaN, -inf, positive codes ----


@pytest.mark.parametrize(
    ("kind", "answer", "code", "counted"),
    [(kind, np.nan, 0, "nan") for kind in KINDS]
    + [(kind, -np.inf, 0, "outside") for kind in KINDS]
    + [("c", 0.0, 3, "failed")],
)
def test_impossible_points_are_rejected_and_counted(library, kind, answer, code, counted):
    """The mean of a normal cut at 1.5 is -phi(1.5)/Phi(1.5); |z| < 5, false-alarm rate 1e-6."""
    target = faulty(kind, library, answer=answer, code=code)
    draws = 40_000 if kind == "c" else 5_000
    result = sample(target, np.zeros(D), draws=draws, seed=11, diagnose=False)
    assert (result.draws[:, :, 0] <= EDGE).all()
    truth = -0.12951759566589174 / 0.9331927987311419
    assert abs(batch_means_z(result.draws[:, :, 0], truth)) < 5
    assert abs(batch_means_z(result.draws[:, :, 0], 0.0)) > 5  # the test has the power to tell
    counts = {name: count.sum() for name, count in result.rejected.items()}
    assert counts.pop(counted) > 100
    assert set(counts.values()) == {0}
    points = result.offending[counted]
    assert points.shape == (20, D)
    assert (points[:, 0] > EDGE).all()
    assert all(len(p) == 0 for name, p in result.offending.items() if name != counted)


# ---- fatal: +inf, negative codes, exceptions ----


@pytest.mark.parametrize("kind", KINDS)
def test_plus_infinity_stops_the_run(library, kind):
    with pytest.raises(fk.SamplingError, match=r"is \+inf, which no density is \(chain ") as caught:
        sample(faulty(kind, library, answer=np.inf, edge=2.5), np.zeros(D), seed=1)
    assert caught.value.x[0] > 2.5
    assert caught.value.result.status == "failed"


@pytest.mark.parametrize("at", [41, 42])
def test_the_first_failure_of_a_group_is_reported(at):
    """Two chains are evaluated in turn; from one evaluation on every other raises."""
    calls = 0

    def density(x):
        nonlocal calls
        calls += 1
        if calls == at:
            return np.inf
        if calls > at:
            raise Mistake
        return -0.5 * float(x @ x)

    with pytest.raises(fk.SamplingError, match=r"is \+inf, which no density is") as caught:
        sample(density, np.zeros(D), sampler="ram", share=True, chains=2, seed=1)
    assert caught.value.chain == (at - 1) % 2


@pytest.mark.parametrize("code", [-1, -101, -7])
def test_negative_codes_stop_the_run(library, code):
    with pytest.raises(fk.SamplingError, match=f"the fatal code {code} ") as caught:
        sample(faulty("c", library, code=code), np.zeros(D), seed=1)
    assert caught.value.x[0] > EDGE


@pytest.mark.parametrize("code", [-1, -101, -7])
@pytest.mark.parametrize("chains", [1, 2])
def test_negative_codes_of_a_hessian_product_stop_the_run(library, code, chains):
    data = (ctypes.c_double * 3)(EDGE, code, 0.0)
    provider = densities.Provider(library)
    provider.struct.hvp = ctypes.cast(provider.library.faulty_product, ctypes.c_void_p).value
    provider.struct.data = ctypes.addressof(data)
    with pytest.raises(fk.SamplingError, match=f"the fatal code {code} ") as caught:
        sample(provider, np.zeros(D), sampler=fk.samplers.GradientAdaptiveMALA(exact=True),
               chains=chains, share=chains > 1, threads=1, seed=1)
    assert caught.value.x[0] > EDGE


class Mistake(Exception):
    pass


class Failing:
    """A density that raises an error at one evaluation, once."""

    def __init__(self, at, error=Mistake, vectorized=False):
        self.at, self.error, self.calls = at, error, 0
        self.density = densities.vectorized_pair if vectorized else densities.python_pair

    def __call__(self, x):
        self.calls += 1
        if self.calls == self.at:
            raise self.error("at this very point")
        return self.density(x)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize("at", [1, 2, 40, 105])
def test_a_failed_run_resumes_bit_for_bit(name, vectorized, at):
    """A run that failed at the start, in warm-up or later resumes as if it had not."""
    options = {"sampler": short(name), "tune": 50, "draws": 60, "chains": 2, "seed": 3,
               "check_gradient": False}

    def target(f):
        return fk.as_target(f, D, vectorized=vectorized, gradient=True)

    whole = sample(target(Failing(0, vectorized=vectorized)), np.ones(D), **options)
    with pytest.raises(fk.SamplingError, match="raised Mistake: at this very point") as caught:
        sample(target(Failing(at, vectorized=vectorized)), np.ones(D), **options)
    error = caught.value
    assert isinstance(error.__cause__, Mistake)
    assert any(entry.name == "__call__" for entry in caught.traceback) or (
        error.__cause__.__traceback__.tb_next is not None)
    state = error.result.states[error.chain]
    assert error.step == state["t"]
    assert_same(error.result.resume(), whole)


def test_a_failed_search_for_a_start_resumes_bit_for_bit():
    """The start has no density; the search for one is interrupted in the middle."""
    calls = 0

    def density(x, fail_at=None):
        nonlocal calls
        calls += 1
        if calls == fail_at:
            raise Mistake("in the search")
        return -0.5 * float(x @ x) if x[0] > 3 else -np.inf

    options = {"draws": 50, "tune": 0, "chains": 1, "seed": 8}
    whole = sample(density, np.zeros(D), **options)
    calls = 0
    with pytest.raises(fk.SamplingError) as caught:
        sample(lambda x: density(x, 6), np.zeros(D), **options)
    assert_same(caught.value.result.resume(target=density), whole)


def test_an_exception_that_is_not_the_densitys_keeps_the_draws():
    """A progress function that raises when each chain has draws."""

    def progress(p):
        if min(p.draws) > 0:
            raise Mistake("no screen")

    options = {"draws": 3000, "tune": 10, "chains": 2, "seed": 4}
    with pytest.raises(fk.SamplingError, match="stopped by Mistake: no screen") as caught:
        sample(densities.python, np.zeros(D), progress=progress, **options)
    assert isinstance(caught.value.__cause__, Mistake)
    assert caught.value.result.trace.counts.sum() > 0
    whole = sample(densities.python, np.zeros(D), **options)
    assert_same(caught.value.result.resume(progress=False), whole)


# ---- return values of a wrong type ----


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "None of type NoneType"),
        ("1.5", "'1.5' of type str"),
        (b"1", "of type bytes"),
        (1 + 2j, "of type complex"),
        (np.complex128(1 + 2j), "of type complex128"),
        (np.array(1j), r"a complex128 array of shape \(\)"),
        (np.array(["1"]), r"array of shape \(1,\)"),
        (np.zeros(2), r"a float64 array of shape \(2,\)"),
        (np.zeros(0), r"a float64 array of shape \(0,\)"),
        ([1.0, 2.0, 3.0], r"\[1.0, 2.0, 3.0\] of type list"),
        ((1.0, 2.0, 3.0), "of type tuple"),
        ({}, "{} of type dict"),
    ],
)
def test_a_density_that_does_not_return_a_number(answer, says):
    with pytest.raises(fk.SamplingError, match="must be one real number, not .*" + says) as caught:
        sample(lambda x: answer, np.zeros(D))
    assert isinstance(caught.value.__cause__, TypeError)


@pytest.mark.parametrize(
    "cast", [int, np.float32, np.float64, np.longdouble, np.array, np.atleast_1d,
             lambda v: np.full((1, 1), v), lambda v: [v], lambda v: (v, None)])
def test_a_density_that_is_a_number_in_some_form(cast):
    result = sample(lambda x: cast(-int(x @ x)), np.zeros(D), draws=20, tune=0, seed=2)
    expected = sample(lambda x: -float(int(x @ x)), np.zeros(D), draws=20, tune=0, seed=2)
    np.testing.assert_array_equal(result.draws, expected.draws)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda X: 0.0, r"shape \(4,\), not a float64 array of shape \(\): sum over"),
        (lambda X: X, r"of shape \(4, 2\)"),
        (lambda X: np.zeros((4, 1)), r"of shape \(4, 1\): return its column, \[:, 0\]"),
        (lambda X: X[:, 0] < 9, r"a bool array of shape \(4,\): return 0.0 or -inf"),
        (lambda X: np.zeros(4, complex), "complex128"),
        (lambda X: ["0"] * 4, "<U1"),
        (lambda X: None, "not None"),
    ],
)
def test_vectorized_densities_that_are_no_numbers(answer, says):
    with pytest.raises(fk.SamplingError, match="the log density must be a real array.*" + says
                       ) as caught:
        sample(answer, np.zeros(D), vectorized=True, chains=4)
    assert str(caught.value).count("vectorized=True") == 1
    estimated = fk.Target.from_estimator(lambda X, U: answer(X), D, 3, vectorized=True)
    with pytest.raises(fk.SamplingError, match="the log density must be a real array.*" + says):
        sample(estimated, np.zeros(D), chains=4)


@pytest.mark.parametrize("gradient", [np.zeros(3), None, np.zeros(2, complex), np.zeros(2, bool)])
def test_gradients_that_are_refused(gradient):
    target = fk.Target.from_python(lambda x: (0.0, gradient), D, gradient=True)
    with pytest.raises(TypeError, match=r"the gradient must be a real array of shape \(2,\)"):
        target.logp_grad(np.zeros(D))


def test_gradients_with_a_point_in_each_column():
    target = fk.Target.from_python(
        lambda X: (np.zeros(len(X)), X.T), D, vectorized=True, gradient=True)
    with pytest.raises(fk.SamplingError, match=r"array of shape \(2, 4\): return its transpose"):
        sample(target, np.zeros(D), sampler="mala", chains=4)


# ---- the argument ----


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_point_that_the_density_keeps_does_not_change(vectorized):
    kept, copies = [], []

    def density(x):
        kept.append(x[:])  # a view
        copies.append(x.copy())
        return densities.vectorized(x) if vectorized else densities.python(x)

    sample(density, np.zeros(D), draws=50, tune=0, chains=2, vectorized=vectorized)
    np.testing.assert_array_equal(kept, copies)


def test_the_argument_is_read_only():
    def density(x):
        x[0] = 0.0
        return 0.0

    with pytest.raises(fk.SamplingError, match="ValueError: assignment destination is read-only"):
        sample(density, np.zeros(D))


def test_a_density_may_call_sample():
    def inner(x):
        return -0.5 * float(x @ x)

    def density(x):
        before = x.copy()
        mean = sample(inner, x, draws=5, tune=0, chains=2, seed=1).draws.mean()
        assert (x == before).all()
        return -0.5 * float(x @ x) - 0 * mean

    result = sample(density, np.zeros(D), draws=10, tune=0, chains=2, seed=1)
    expected = sample(inner, np.zeros(D), draws=10, tune=0, chains=2, seed=1)
    np.testing.assert_array_equal(result.draws, expected.draws)


def test_a_target_may_call_itself():
    def density(x):
        if x[0] < 10:
            target.logp(x + 100)
        return -0.5 * float(x @ x)

    target = fk.Target.from_python(density, D)
    assert target.logp([1.0, 2.0]) == -2.5


# ---- the start ----


@pytest.mark.parametrize("kind", KINDS)
def test_a_start_without_density_is_searched_around(library, kind):
    result = sample(faulty(kind, library, answer=-np.inf), [EDGE + 0.5, 0.0], draws=50, seed=6)
    assert (result.warmup.draws[:, :, 0] <= EDGE).all()
    assert result.evaluations == 4 * 1050


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("answer", [np.nan, -np.inf])
def test_a_start_without_density_anywhere_near_is_an_error(library, kind, answer):
    with pytest.raises(fk.SamplingError, match="no finite log density at the start, nor at 100 "
                                               r"points around it \(chain 0.*: it is (nan|-inf) "
                                               "there; give x0 inside the support") as caught:
        sample(faulty(kind, library, answer=answer, edge=-1e300), np.ones(D), threads=1)
    np.testing.assert_array_equal(caught.value.x, np.ones(D))
    assert caught.value.result.trace.counts.sum() == 0


# ---- interrupts ----


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("at", [30, 150])
def test_an_interrupt_inside_the_density(at, threads):
    options = {"tune": 50, "draws": 60, "chains": 2, "seed": 3, "threads": threads}
    failing = Failing(at, KeyboardInterrupt)
    with pytest.warns(fk.SamplingWarning, match="interrupted after .* of 60 draws") as caught:
        part = sample(failing, np.ones(D), **options)
    assert part.status == "interrupted"
    assert caught[0].filename == __file__
    assert_same(part.resume(), sample(Failing(0), np.ones(D), **options))


def test_an_interrupt_where_warnings_are_errors_keeps_the_draws():
    options = {"tune": 50, "draws": 60, "chains": 1, "seed": 3}
    warnings.simplefilter("error")  # undone by pytest
    with pytest.raises(fk.SamplingWarning) as caught:
        sample(Failing(90, KeyboardInterrupt), np.ones(D), **options)
    assert_same(caught.value.result.resume(diagnose=False),
                sample(Failing(0), np.ones(D), diagnose=False, **options))


@pytest.mark.parametrize("chains", [1, 2])
def test_an_interrupt_in_the_search_for_a_start(library, chains):
    """Each of the hundred points takes a compiled density 20 ms; the GIL is free meanwhile."""
    timer = threading.Timer(0.1, _thread.interrupt_main)
    timer.start()
    with pytest.warns(fk.SamplingWarning, match="interrupted after"):
        result = sample(ctypes_function(library, "nowhere"), np.zeros(D), chains=chains)
    timer.join()
    assert result.evaluations == 0


SCRIPT = """
import os, sys, warnings
import numpy as np
sys.path[:0] = {folders!r}
import densities, same
import fastkam as fk

def slow(x):
    for _ in range(2000):
        pass
    return densities.python(x)

def ready(progress):
    if min(progress.draws) > 0:
        print("drawing", flush=True)

target = {{"python": slow, "c": densities.ctypes_function({library!r}, "slow")}}[{kind!r}]
options = dict(sampler="ram", search=False, tune=100, chains=2, seed=1, threads={threads})
warnings.simplefilter("ignore")
part = fk.sample(target, [0.0, 0.0], draws=100_000, progress=ready, **options)
assert part.status == "interrupted", part
n = part.trace.counts
assert 0 < n.min() <= n.max() < 100_000, n
rows = int(n.max()) + 20
whole = fk.sample(target, [0.0, 0.0], draws=rows, **options)
same.assert_same(part.resume(20), whole)
print("same", flush=True)
"""


@pytest.mark.parametrize(("kind", "threads"), [("python", 1), ("python", 2), ("c", 1), ("c", 2)])
def test_ctrl_c(library, kind, threads):
    """SIGINT from outside, while draws are made: they are returned, and go on bit for bit."""
    folders = [str(path) for path in Path(__file__).parents[:2]]
    script = textwrap.dedent(SCRIPT).format(
        folders=folders, library=library, kind=kind, threads=threads)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "drawing\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert out.endswith("same\n"), err


@pytest.mark.parametrize(("code", "said"), [(-7, -7), (-(2**31), -999_999)])
def test_the_fatal_code_of_a_surrogate(library, code, said):
    """However far below 0 it is, it is not taken for a code of the density."""
    with pytest.raises(fk.SamplingError,
                       match=rf"the surrogate returned the fatal code {said} \(chain"):
        sample(densities.python, np.zeros(D), sampler="am", seed=1,
               surrogate=faulty("c", library, code=code))


def test_a_chain_that_hardly_moves_is_warned_of():
    def narrow(x):
        return -0.5e12 * float(x @ x)

    with pytest.warns(fk.SamplingWarning, match="No chain ever moved: no proposal was acc"):
        sample(narrow, [0.0, 0.0], sampler="rwm", draws=200, tune=0, seed=1)
    with pytest.warns(fk.SamplingWarning, match=r"Chain . accepts .* % of the proposals of Rand"):
        sample(lambda x: narrow(x) * 1e-10, [0.0, 0.0], sampler="rwm", draws=4000, seed=1)
