"""Samplers written in Python pass what is tested of every sampler."""

import re
from concurrent.futures import ProcessPoolExecutor

import densities
import numpy as np
import pytest
from densities import D, stopped_at, with_gradient
from python_samplers import SAMPLERS, Langevin, MultipleTry, Scaling
from runs import sample
from same import assert_same

import fastkam as fk
from fastkam.run.options import RunOptions
from fastkam.run.state import BIT_GENERATORS
from fastkam.samplers import Decision, Field, Point, Proposal

OPTIONS = {"tune": 40, "draws": 60, "chains": 2, "seed": 9, "check_gradient": False,
           "progress": False}
SHARED = [name for name, sampler in SAMPLERS.items()
          if any(field.shared for field in sampler.FIELDS.values())]
ONE = [name for name, sampler in SAMPLERS.items() if not sampler.several_evaluations]


def pair(x):
    return densities.python(x), -np.asarray(x)


def interrupted_at(target, evaluation, **options):
    with pytest.raises(fk.SamplingError) as caught:
        sample(stopped_at(target, evaluation), np.ones(D), **OPTIONS | options)
    return caught.value.result


def around(name, what):
    """A Python sampler within a compiled one."""
    inner = SAMPLERS[name]
    if what == "pt":
        return fk.ParallelTempering(sampler=inner, n_replicas=3)
    if what == "jumps":
        return fk.ModeJumping(sampler=inner, jump_probability=0.4, means=[[0.0, 0.0], [1.0, 1.0]])
    return inner


@pytest.mark.parametrize("what", ["alone", "pt", "jumps"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_resume_within_a_step(library, tmp_path, name, what):
    """A run resumes at every evaluation of some steps, from memory and from a file."""
    target = with_gradient("python", library)
    sampler = around(name, what)
    whole = sample(target, np.ones(D), sampler=sampler, **OPTIONS)
    assert len(np.unique(whole.draws[..., 0])) > 20
    for evaluation in (*range(20, 32), 90, 91, 161, 162):
        part = interrupted_at(target, evaluation, sampler=sampler)
        part.save(tmp_path / "part.fk")
        assert_same(part.resume(target=target), whole)
        assert_same(fk.resume(tmp_path / "part.fk", target=target), whole)


@pytest.mark.parametrize("bits", BIT_GENERATORS)
def test_resume_with_every_bit_generator(library, tmp_path, bits):
    target, options = with_gradient("python", library), {"sampler": SAMPLERS["leapfrog"]}
    whole = sample(target, np.ones(D), bit_generator=bits, **options, **OPTIONS)
    for evaluation in (33, 34, 35):
        part = interrupted_at(target, evaluation, bit_generator=bits, **options)
        part.save(tmp_path / "part.fk")
        assert_same(fk.resume(tmp_path / "part.fk", target=target), whole)


@pytest.mark.parametrize("name", SHARED)
def test_share(library, name):
    target = with_gradient("python", library)
    whole = sample(target, np.ones(D), sampler=SAMPLERS[name], share=True, **OPTIONS)
    one, other = whole.states
    for field, row in SAMPLERS[name].FIELDS.items():
        if row.shared:
            np.testing.assert_array_equal(one[f"kernel.{field}"], other[f"kernel.{field}"])
    for evaluation in (20, 21, 22, 23, 90, 161):
        part = interrupted_at(target, evaluation, sampler=SAMPLERS[name], share=True)
        assert_same(part.resume(target=target), whole)


def test_samplers_without_shared_fields_refuse_to_share():
    with pytest.raises(ValueError, match=r"share must be False for MultipleTry.*shared=True"):
        sample(densities.python, np.ones(D), sampler=SAMPLERS["tries"], share=True)


@pytest.mark.parametrize("name", ["scaling", "langevin", "rejection"])
@pytest.mark.parametrize("schedule", ["diminishing", "rare", "perpetual"])
def test_schedules(library, name, schedule):
    target = with_gradient("python", library)
    whole = sample(target, np.ones(D), sampler=SAMPLERS[name], schedule=schedule, **OPTIONS)
    part = sample(target, np.ones(D), sampler=SAMPLERS[name], schedule=schedule,
                  **OPTIONS | {"draws": 17})
    assert_same(part.resume(43), whole)


@pytest.mark.parametrize("kind", ["python", "vectorized", "c"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_threads_and_kinds_of_targets(library, name, kind):
    """The same bits from every number of threads."""
    target = with_gradient(kind, library)
    one, two = (sample(target, np.ones(D), sampler=SAMPLERS[name], threads=n, **OPTIONS)
                for n in (1, 2))
    assert_same(one, two)


def test_one_thread_is_the_default(library):
    target = with_gradient("c", library)
    for sampler in (Scaling(), fk.ParallelTempering(sampler=Scaling(), n_replicas=3)):
        assert RunOptions().number_of_threads(target, sampler) == 1


@pytest.mark.parametrize("name", ["langevin", "tries"])
def test_executor(name):
    target = fk.Target.from_python(densities.python_pair, D, gradient=True)
    here = sample(target, np.ones(D), sampler=SAMPLERS[name], **OPTIONS)
    with ProcessPoolExecutor(2) as pool:
        there = sample(target, np.ones(D), sampler=SAMPLERS[name], executor=pool, **OPTIONS)
    assert_same(here, there)


@pytest.mark.parametrize("name", ONE)
def test_delayed_acceptance(name):
    if SAMPLERS[name].needs_gradient:
        pytest.skip("a surrogate has no gradient")
    options = {"sampler": SAMPLERS[name], "surrogate": lambda x: -0.45 * x @ x}
    target = fk.Target.from_python(densities.python_pair, D, gradient=True)
    whole = sample(target, np.ones(D), **options, **OPTIONS)
    for evaluation in (20, 21, 60):
        part = interrupted_at(target, evaluation, **options)
        assert_same(part.resume(target=target, surrogate=options["surrogate"]), whole)


def test_estimated_density():
    target = fk.Target.from_estimator(lambda x, u: -0.5 * x @ x + 0.1 * u.sum(), D, n_aux=3)
    ours = sample(target, np.ones(D), sampler=Plain(), **OPTIONS)
    theirs = sample(target, np.ones(D), sampler=fk.RandomWalk(proposal_cov=1.0), **OPTIONS)
    np.testing.assert_array_equal(ours.draws, theirs.draws)
    with pytest.raises(fk.SamplingError, match="several evaluations a step and does not say which"):
        sample(target, np.ones(D), sampler=SAMPLERS["rejection"], **OPTIONS)


class Plain(fk.PythonSampler):
    def propose(self, x, rng):
        return x + rng.standard_normal(self.d)


def test_the_random_numbers_are_those_of_compiled_samplers():
    ours = sample(densities.python, np.ones(D), sampler=Plain(), **OPTIONS)
    theirs = sample(densities.python, np.ones(D), sampler=fk.RandomWalk(proposal_cov=1.0),
                    **OPTIONS)
    np.testing.assert_array_equal(ours.draws, theirs.draws)


@pytest.mark.parametrize("name", SAMPLERS)
def test_points_without_a_density(name):
    """NaN, -inf and a gradient that is not finite."""
    def holes(x):
        if x[0] > 1.2:
            return (np.nan if x[1] > 0 else -np.inf), x
        return -0.5 * x @ x, (np.full(D, np.nan) if x[1] > 1.5 else -x)

    result = sample(holes, np.zeros(D), sampler=SAMPLERS[name], **OPTIONS)
    assert result.draws[..., 0].max() <= 1.2
    assert all(result.rejected[kind].sum() for kind in ("nan", "outside"))
    assert len(np.unique(result.draws[..., 0])) > 20


# ---- interrupts in the sampler's own code ----


def interrupting(method, call):
    """A Langevin sampler whose `method` is cut short at its n-th call, in its middle."""
    left = [call]

    class Interrupted(Langevin):
        pass

    whole = getattr(Langevin, method)

    def cut(self, *args):
        if method == "adapt":
            self.mu += 1.0
            args[-1].random()
        if method == "propose":
            args[-1].random()
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return whole(self, *args) if method != "adapt" else undo(self, *args)

    def undo(self, *args):
        self.mu -= 1.0
        return whole(self, *args)

    setattr(Interrupted, method, cut)
    return Interrupted()


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("method", ["propose", "log_q", "adapt"])
def test_an_interrupt_in_a_method_undoes_it(method, share):
    options = OPTIONS | {"share": share}
    whole = sample(pair, np.ones(D), sampler=interrupting(method, -1), **options)
    with pytest.warns(fk.SamplingWarning, match="interrupted") as caught:
        sample(pair, np.ones(D), sampler=interrupting(method, 57), **options)
    part = next(w.message for w in caught if "interrupted" in str(w.message)).result
    again = part.resume(target=pair)
    np.testing.assert_array_equal(again.draws, whole.draws)
    np.testing.assert_array_equal(again.states[0]["kernel.mu"], whole.states[0]["kernel.mu"])


def test_an_interrupt_in_a_step_undoes_it():
    left = [0]

    class Tries(MultipleTry):
        def step(self, x, rng):
            inner, answer = super().step(x, rng), None
            while True:
                try:
                    found = inner.send(answer)
                except StopIteration as stop:
                    return stop.value
                left[0] -= 1
                if left[0] == 0:
                    raise KeyboardInterrupt
                answer = yield found

    whole = sample(pair, np.ones(D), sampler=Tries(), **OPTIONS)
    for call in (60, 61, 62, 63):
        left[0] = call
        with pytest.warns(fk.SamplingWarning, match="interrupted") as caught:
            sample(pair, np.ones(D), sampler=Tries(), **OPTIONS)
        part = next(w.message for w in caught if "interrupted" in str(w.message)).result
        np.testing.assert_array_equal(part.resume(target=pair).draws, whole.draws)


@pytest.mark.parametrize("times", [2, 3])
def test_interrupts_that_come_again(times):
    """A method is called again after the first and the second; a third one ends the call."""
    left = [1 << 30]

    class Interrupted(Scaling):
        def propose(self, x, rng):
            left[0] -= 1
            if 0 <= left[0] < times:
                raise KeyboardInterrupt
            return super().propose(x, rng)

    whole = sample(pair, np.ones(D), sampler=Interrupted(), **OPTIONS)
    left[0] = 57 + times
    with pytest.warns(fk.SamplingWarning, match="interrupted") as caught:
        sample(pair, np.ones(D), sampler=Interrupted(), **OPTIONS)
    part = next(w.message for w in caught if "interrupted" in str(w.message)).result
    steps = sum(int(state["t"]) for state in part.states)
    assert steps == 57 if times == 3 else steps > 57
    np.testing.assert_array_equal(part.resume(target=pair).draws, whole.draws)


# ---- what a step returns, and fields ----


@pytest.mark.parametrize("decides", [False, True])
def test_a_point_that_the_sampler_has_made_itself(decides):
    """The sampler may know the log density at its point without an evaluation."""
    class Knows(fk.PythonSampler):
        def step(self, x, rng):
            wide = yield x + 100.0
            assert wide.logp < self.logp_x
            y = rng.standard_normal(self.d)
            point = Point(y, densities.python(y))
            if not decides:
                return Proposal(point, log_q=0.5 * (y @ y - x @ x))
            log_ratio = point.logp - self.logp_x + 0.5 * (y @ y - x @ x)
            return Decision(point, alpha=np.exp(min(0.0, log_ratio)), accepted=-log_ratio < self.E)

    result = sample(densities.python, np.ones(D), sampler=Knows(), **OPTIONS)
    assert len(np.unique(result.draws[..., 0])) > 20
    np.testing.assert_array_equal(
        result.stats["lp"], [[densities.python(x) for x in chain] for chain in result.draws])


def test_fields_may_be_set_to_lists_and_to_integers():
    """They are stored as arrays of the type that FIELDS says."""
    class Lists(fk.PythonSampler):
        FIELDS = {"a": Field("a list"), "n": Field("integers"), "m": Field("i8", dtype="i8")}

        def start(self, x0):
            self.a, self.n, self.m = [0.5, 1.5], np.array([1, 2, 3]), np.array([4, 5])

        def propose(self, x, rng):
            self.a, self.n, self.m = [self.a[0] + 1, 2.5], np.arange(3), [6, 7]
            return x + rng.standard_normal(self.d)

    result = sample(densities.python, np.ones(D), sampler=Lists(), **OPTIONS)
    state = result.states[0]
    np.testing.assert_array_equal(state["kernel.a"], [100.5, 2.5])
    np.testing.assert_array_equal(state["kernel.n"], [0.0, 1.0, 2.0])
    assert [state[f"kernel.{name}"].dtype for name in "anm"] == [np.float64, np.float64, np.int64]


# ---- parameters ----


def test_parameters_are_those_of_every_sampler():
    assert repr(Scaling()) == "Scaling(target_acceptance=0.234)"
    with pytest.raises(AttributeError):
        Scaling().target_acceptance = 0.5
    with pytest.raises(TypeError, match="no argument 'acceptance': did you mean 'target_acc"):
        Scaling(acceptance=0.5)
    assert sample(pair, np.ones(D), sampler=Scaling(target_acceptance=0.5), **OPTIONS
                  ).sampler.target_acceptance == 0.5


def test_statistics_and_history():
    result = sample(pair, np.ones(D), sampler=Langevin(), **OPTIONS)
    assert result.stats["n"][0, -1] == 40
    np.testing.assert_array_equal(result.warmup.stats["n"][0], np.arange(1, 41))
    assert result.adaptation["C"].shape == (2, 40, D, D)


# ---- mistakes ----


def variant(**methods):
    return type("Mine", (fk.PythonSampler,), {"propose": Plain.propose} | methods)


def generator(*found):
    """A step that yields x and returns `found` of the point."""
    def step(self, x, rng):
        point = yield x
        return found[0](point)
    return {"step": step}


def beyond(self, x, rng):
    point = yield np.full(D, 1e200)
    return Decision(point, alpha=1, accepted=True)


FIELD = {"a": Field("a field")}
MISTAKES = {
    "neither": (type("Mine", (fk.PythonSampler,), {}), TypeError, "Mine must define propose, or"),
    "shape": (variant(propose=lambda self, x, rng: x[:1]), ValueError,
              "Mine.propose must return a real array of shape (2,), not an array of shape (1,)"),
    "nothing": (variant(propose=lambda self, x, rng: None), ValueError,
                "Mine.propose must return a real array of shape (2,), not None"),
    "nan": (variant(propose=lambda self, x, rng: x + np.nan), ValueError,
            "Mine.propose must return numbers, not [nan nan], at step 0 from x = [1. 1.]"),
    "log_q": (variant(log_q=lambda self, x, y: y), TypeError, "Mine.log_q must return a number"),
    "read-only": (variant(adapt=lambda self, x, *rest: x.fill(0)), ValueError, "read-only"),
    "not set": (variant(FIELDS=FIELD), AttributeError,
                "Mine.start must set self.a, which FIELDS names"),
    "a tuple": (variant(FIELDS={"a": ("a field",)}), TypeError,
                "Mine.FIELDS must have a fastkam.samplers.Field for 'a', not ('a field',)"),
    "taken": (variant(FIELDS={"logp_x": Field("x")}), ValueError,
              "Mine.FIELDS names 'logp_x', which is an attribute of every PythonSampler"),
    "a parameter": (variant(FIELDS=FIELD, a=1.0, __annotations__={"a": float}), ValueError,
                    "Mine.FIELDS names 'a', which is a parameter"),
    "written": (variant(a=1.0, __annotations__={"a": float},
                        start=lambda self, x0: setattr(self, "a", 2.0)), AttributeError,
                "Mine.a is a parameter: keep what changes from step to step in a field"),
    "a statistic": (variant(FIELDS={"a": Field("x", stat="a")},
                            start=lambda self, x0: setattr(self, "a", x0)), TypeError,
                    "Mine.a is recorded as the statistic 'a': it must be a number"),
    "other shape": (variant(FIELDS=FIELD, start=lambda self, x0: setattr(self, "a", x0),
                            adapt=lambda self, *rest: setattr(self, "a", self.a[:1])), ValueError,
                    "Mine.a must keep the shape (2,) that start has given it, not (1,)"),
    "no integer": (variant(FIELDS={"a": Field("x", dtype="i8")},
                           start=lambda self, x0: setattr(self, "a", 0.5)), TypeError,
                   "Mine.a must be an integer, as its row of FIELDS says, not 0.5"),
    "no number": (variant(FIELDS={"a": Field("x", stat="a")},
                          start=lambda self, x0: setattr(self, "a", 0.5),
                          adapt=lambda self, *rest: setattr(self, "a", None)), TypeError,
                  "Mine.a must be a number"),
    "no generator": (variant(step=lambda self, x, rng: x), TypeError,
                     "Mine.step must be a generator, which yields the points to be evaluated"),
    "no decision": (variant(**generator(lambda point: point)), TypeError,
                    "Mine.step must return a Proposal or a Decision, not Point("),
    "alpha": (variant(**generator(lambda point: Decision(point, alpha=2, accepted=True))),
              ValueError, "Mine.step must return an alpha from 0 to 1, not 2.0"),
    "accepted": (variant(**generator(lambda point: Decision(alpha=1, accepted=True))),
                 ValueError, "Mine.step must return the point that is accepted, not None"),
    "no density": (variant(**generator(lambda point: Decision(
        Point(point.x, -np.inf), alpha=1, accepted=True))), ValueError,
        "Mine.step must move the chain to a finite point with a finite log density, not to Point("),
    "no density there": (variant(step=beyond), ValueError,
                         "Mine.step must move the chain to a finite point"),
    "infinite": (variant(**generator(lambda point: Decision(
        Point([np.inf, 0.0], 0.0), alpha=1, accepted=True))), ValueError,
        "Mine.step must move the chain to a finite point"),
    "begins nowhere": (variant(**generator(lambda point: Decision(
        point, alpha=0, accepted=False, x=Point(point.x, np.nan)))), ValueError,
        "Mine.step must move the chain to a finite point"),
    "its log_q": (variant(**generator(lambda point: Proposal(point, log_q="a"))), TypeError,
                  "Mine.step must return a log_q that is a number, not 'a'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(name):
    cls, kind, text = MISTAKES[name]
    with pytest.raises((kind, fk.SamplingError), match=re.escape(text)) as caught:
        sample(pair, np.ones(D), sampler=cls(), **OPTIONS)
    if isinstance(caught.value, fk.SamplingError):
        assert isinstance(caught.value.__cause__, kind)


@pytest.mark.parametrize("width", [0, -1, 1.5, "x", None, True, 2**31])
@pytest.mark.parametrize("method", [{"propose": lambda self, x, rng: x}, generator(None)])
def test_a_width_must_be_a_number_of_points(width, method):
    cls = variant(WIDTH=width, **method)
    with pytest.raises((TypeError, ValueError), match=r"^Mine\.WIDTH must be "):
        sample(pair, np.ones(D), sampler=cls(), **OPTIONS)


def test_the_traceback_is_that_of_the_user():
    def propose(self, x, rng):
        return x + 1 / 0

    with pytest.raises(fk.SamplingError, match="ZeroDivisionError") as caught:
        sample(pair, np.ones(D), sampler=variant(propose=propose)(), **OPTIONS)
    frames = caught.value.__cause__.__traceback__
    while frames.tb_next:
        frames = frames.tb_next
    assert frames.tb_frame.f_code is propose.__code__


def test_a_ratio_of_minus_infinity_rejects():
    cls = variant(log_q=lambda self, x, y: -np.inf)
    result = sample(pair, np.ones(D), sampler=cls(), **OPTIONS | {"draws": 20})
    assert not result.stats["accepted"].any()


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("coupled", [
    lambda one: one, lambda one: fk.ModeJumping(sampler=one),
    lambda one: fk.ParallelTempering(sampler=one, n_replicas=2)])
def test_a_ratio_that_is_no_number_ends_the_run(value, coupled):
    """If it rejected, the draws would leave out where it is NaN, without a word."""
    for cls, name in (
            (variant(log_q=lambda self, x, y: 0.0 if y[0] < 1 else value), "log_q"),
            (variant(**generator(lambda point: Proposal(point, log_q=value))), "step")):
        with pytest.raises(fk.SamplingError, match=rf"Mine.{name} must .* or -inf, not {value}"):
            sample(pair, np.ones(D), sampler=coupled(cls()), **OPTIONS | {"draws": 200})


def test_a_ratio_does_not_count_where_there_is_no_density():
    def half(x):
        return (-0.5 * float(x @ x), -x) if x[0] > 0 else -np.inf

    class Mine(fk.PythonSampler):
        def step(self, x, rng):
            point = yield x + rng.standard_normal(self.d)
            return Proposal(point, log_q=0.0 if point.logp > -np.inf else np.nan)

    result = sample(half, np.ones(D), sampler=Mine(), **OPTIONS | {"draws": 100})
    assert (result.draws[..., 0] > 0).all()
    assert result.rejected["outside"].sum() > 0


def test_a_point_of_another_step_is_refused():
    old = []

    class Mine(fk.PythonSampler):
        def step(self, x, rng):
            old.append((yield x))
            return Proposal(old[0])

    with pytest.raises(fk.SamplingError, match="must propose a point of this step"):
        sample(pair, np.ones(D), sampler=Mine(), **OPTIONS)


def test_points_that_were_known_before():
    """A sampler may move the chain itself, and propose points whose density it knows."""
    class Mine(fk.PythonSampler):
        def step(self, x, rng):
            point = yield x + 1.0
            here = Point(x + 2.0, -1.0)
            return Decision(point, alpha=0.0, accepted=False, x=here)

    result = sample(pair, np.zeros(D), sampler=Mine(), **OPTIONS | {"tune": 0, "draws": 5})
    np.testing.assert_array_equal(result.draws[0, :, 0], [2.0, 4.0, 6.0, 8.0, 10.0])
    with pytest.raises(fk.SamplingError, match="must not move the chain by itself"):
        sample(pair, np.zeros(D), sampler=fk.ParallelTempering(sampler=Mine(), n_replicas=2),
               **OPTIONS)
