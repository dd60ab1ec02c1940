"""A cheap density before a costly one: forms, resuming, what is refused."""

from concurrent.futures import ThreadPoolExecutor

import densities
import numpy as np
import pytest
from densities import D, Stop, replaced
from runs import sample
from same import assert_same
from test_noisy import OPTIONS, PLAIN, noisy, small

import fastkam as fk
from fastkam.samplers import SAMPLERS, DelayedAcceptance, Field


def cheap(x):
    return -0.4 * float(x @ x)


def test_auto_takes_no_gradient_where_there_is_a_surrogate():
    target = fk.targets.Gaussian(np.zeros(D), 1.0)
    result = sample(target, np.ones(D), sampler="auto", surrogate=target, draws=50, tune=50,
                    chains=1, seed=1)
    assert isinstance(result.sampler.sampler, SAMPLERS["gam"])


BEHIND = [name for name in PLAIN if not SAMPLERS[name]().several_evaluations]


@pytest.mark.parametrize("name", BEHIND)
def test_a_surrogate_resumes(tmp_path, name):
    options = OPTIONS | {"surrogate": cheap, "sampler": small(name)}
    runs = []
    for target in (densities.python, noisy(correlation=0.9), noisy(True, correlation=0.9)):
        whole = sample(target, np.ones(D), draws=60, **options)
        part = sample(target, np.ones(D), draws=23, threads=2, **options)
        assert_same(part.resume(20).resume(17), whole)
        replaced(part, requested=60).save(tmp_path / "run.fk")
        with pytest.raises(ValueError, match="surrogate must be given for a run of Delayed"):
            fk.resume(tmp_path / "run.fk", target=target)
        assert_same(fk.resume(tmp_path / "run.fk", target=target, surrogate=cheap), whole)
        fields = type(small(name)).kernel_class().FIELDS
        learned = {name for name, field in fields.items() if field.learned}
        assert set(whole.adaptation) == {"step"} | learned
        runs.append(whole)
    assert_same(runs[1], runs[2])


@pytest.mark.parametrize("steps", [1, 5])
@pytest.mark.parametrize("name", ["ram", "kam", "jumps"])
def test_a_surrogate_that_failed_once_changes_no_draw(tmp_path, name, steps):
    """The run goes on at the point where it failed, also in another process."""
    def failing(at):
        calls = [0]

        def surrogate(x):
            calls[0] += 1
            if calls[0] == at:
                raise RuntimeError("once")
            return cheap(x)
        return surrogate

    options = OPTIONS | {"sampler": small(name), "surrogate_steps": steps, "draws": 60}
    whole = sample(densities.python, np.ones(D), surrogate=cheap, **options)
    for at in (3, 7, 12, 19, 26, 33, 40, 47, 54, 61):
        with pytest.raises(fk.SamplingError, match="once") as caught:
            sample(densities.python, np.ones(D), surrogate=failing(at), **options)
        assert_same(caught.value.result.resume(), whole)
        caught.value.result.save(tmp_path / "run.fk")
        assert_same(fk.resume(tmp_path / "run.fk", target=densities.python, surrogate=cheap), whole)


def test_the_density_is_evaluated_only_at_points_that_the_surrogate_accepts():
    calls = [0]

    def costly(x):
        calls[0] += 1
        return densities.python(x)

    result = sample(costly, np.ones(D), draws=500, tune=0, chains=1, seed=1, surrogate=cheap)
    assert result.evaluations == calls[0] - 1 == result.stats["passed"].sum() < 450
    assert isinstance(result.sampler, DelayedAcceptance)
    assert (result.stats["accepted"] <= result.stats["passed"]).all()
    assert (result.stats["acceptance_rate"][result.stats["passed"] == 0] == 0).all()


def test_a_perfect_surrogate_leads_to_no_rejection_by_the_density():
    result = sample(densities.python, np.ones(D), draws=300, seed=1, surrogate=densities.python)
    np.testing.assert_array_equal(result.stats["accepted"], result.stats["passed"])


def test_a_surrogate_in_every_form(library):
    function = densities.ctypes_function(library, "plain_form")
    whole = sample(cheap, np.ones(D), draws=60, surrogate=densities.python, **OPTIONS)
    pair = fk.Target.from_python(densities.python_pair, D, gradient=True)
    many = fk.Target.from_python(densities.vectorized, D, vectorized=True)
    for surrogate in (function, pair, many, densities.ctypes_function(library, "own_grad")):
        assert_same(sample(cheap, np.ones(D), draws=60, surrogate=surrogate, **OPTIONS), whole)
    assert_same(sample(lambda X: np.array([cheap(x) for x in X]), np.ones(D), draws=60,
                       surrogate=function, vectorized=True, **OPTIONS), whole)
    with ThreadPoolExecutor(2) as pool:
        assert_same(sample(cheap, np.ones(D), draws=60, surrogate=function, executor=pool,
                           **OPTIONS), whole)


@pytest.mark.parametrize(("name", "says"), [
    ("nuts", "not for the gradient that NUTS needs"),
    ("dram", "DelayedRejectionAdaptiveMetropolis makes several"),
    ("autorwm", "AutoStepRandomWalk makes several"),
    ("pt", "ParallelTempering makes several"),
    ("scout", "Scout makes several"),
])
def test_samplers_that_refuse_a_surrogate(name, says):
    with pytest.raises(ValueError, match=says):
        sample(densities.python_pair, np.ones(D), sampler=name, surrogate=cheap)


def test_surrogates_that_are_refused():
    with pytest.raises(ValueError, match="surrogate must be a known density, not the estimate"):
        sample(densities.python, np.ones(D), surrogate=noisy())
    with pytest.raises(ValueError, match=r"surrogate must be finite .* -inf at x = \[1. 1.\]"):
        sample(densities.python, np.ones(D), surrogate=lambda x: -np.inf)
    with pytest.raises(TypeError, match="surrogate: target must be a function"):
        sample(densities.python, np.ones(D), surrogate=3)
    with pytest.raises(ValueError, match=r"surrogate raised TypeError: .* a chain starts, at x = "):
        sample(densities.python, np.ones(D), surrogate=np.zeros_like)
    with pytest.raises(ValueError, match="surrogate raised ZeroDivisionError: division by zero"):
        sample(densities.python, np.ones(D), surrogate=lambda x: 1 / 0)
    part = sample(densities.python, np.ones(D), draws=5, **OPTIONS)
    with pytest.raises(ValueError, match="surrogate must not be given for a run of Robust"):
        part.resume(5, surrogate=cheap)
    delayed = DelayedAcceptance(sampler=SAMPLERS["ram"]())
    with pytest.raises(ValueError, match="surrogate must be given for a run of DelayedAcceptance"):
        sample(densities.python, np.ones(D), sampler=delayed)
    for coupling in (fk.ParallelTempering, DelayedAcceptance):
        with pytest.raises(ValueError, match="DelayedAcceptance"):
            coupling(sampler=delayed)


def test_a_surrogate_without_a_density_where_the_search_starts_a_chain():
    def narrow(x):
        return cheap(x) if np.abs(x - 1).max() < 0.1 else -np.inf

    with pytest.raises(fk.SamplingError, match=r"^the log density of the surrogate is .* begins "
                       r"\(chain 0, step 0, at x = .*\): it must be finite .* search=False; "):
        sample(lambda x: cheap(x) if np.abs(x - 1).max() > 0.2 else -np.inf, np.ones(D),
               surrogate=narrow, search=True, sampler="auto", draws=5, seed=1)
    result = sample(densities.python, np.ones(D), surrogate=narrow, search=True, sampler="auto",
                    draws=5, seed=1)    # it is not dispersed
    assert (result.state.x0 == 1).all()


class Clock(fk.PythonSampler):
    """A random walk that notes the number of the step at which it proposes."""

    FIELDS = {"made": Field("steps made before this one", stat="made")}

    def start(self, x0):
        self.made = 0.0

    def propose(self, x, rng):
        self.made = float(self.t)
        return x + rng.standard_normal(self.d)


def test_the_sampler_behind_a_surrogate_knows_the_step():
    """Samplers have a first phase, or cycles, as without a surrogate."""
    for more in ({}, {"surrogate": cheap}):
        result = sample(densities.python, np.ones(D), sampler=Clock(), tune=12, draws=20, chains=1,
                        seed=1, thin=3, **more)
        np.testing.assert_array_equal(result.stats["made"][0], np.arange(14, 74, 3))


def test_samplers_without_shared_fields_do_not_share_behind_a_surrogate():
    with pytest.raises(ValueError, match=r"share must be False for \w+, not True: \w+"):
        sample(densities.python, np.ones(D), sampler=small("ckam"), surrogate=cheap,
               share=True, chains=2)


@pytest.mark.parametrize("value", ["raises", np.inf])
def test_a_surrogate_that_fails(value):
    calls = [0]

    def fails(x):
        calls[0] += 1
        if calls[0] == 80:
            if value == "raises":
                raise Stop
            return value
        return cheap(x)

    whole = sample(densities.python, np.ones(D), draws=60, surrogate=cheap, **OPTIONS)
    with pytest.raises(fk.SamplingError, match="the surrogate raised Stop" if value == "raises"
                       else "the log density of the surrogate is") as caught:
        sample(densities.python, np.ones(D), draws=60, surrogate=fails, **OPTIONS)
    assert_same(caught.value.result.resume(), whole)


@pytest.mark.parametrize("steps", [1, 5])
def test_a_surrogate_that_is_often_nan_is_a_finding(steps):
    """No draw can be where it is NaN, and the chains agree on the rest."""
    def half(x):
        return np.nan if x[0] > 0.5 else cheap(x)

    options = {"draws": 500, "tune": 500, "sampler": "ram", "seed": 1, "surrogate_steps": steps}
    with pytest.warns(fk.SamplingWarning, match=f"surrogate was NaN at .* {4000 * steps} prop"):
        result = fk.sample(densities.python, np.zeros(D), surrogate=half, progress=False, **options)
    assert result.verdict().status != "ok"
    good = sample(densities.python, np.zeros(D), surrogate=cheap, **options, diagnose=False)
    assert not any("surrogate" in one.text for one in good.verdict().reasons)


def test_a_surrogate_may_be_narrower_than_the_density():
    """No proposal passes where the surrogate is -inf or NaN."""
    def half(x):
        return cheap(x) if x[0] > 0 else (np.nan if x[1] > 0 else -np.inf)

    result = sample(densities.python, np.ones(D), draws=300, seed=1, surrogate=half, diagnose=False)
    assert (result.draws[..., 0] > 0).all()


# ---- surrogates that leave out a part ----


def light(x):
    """Positive everywhere, and far too small for a sixth of the distribution."""
    return -0.5 * float(x @ x) - 15 * float(x[0] > 1)


def without_a_part(x):
    return -0.5 * float(x @ x) if x[0] < 1 else -np.inf


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("surrogate", [light, without_a_part])
@pytest.mark.parametrize("options", [{}, {"sampler": "ram", "surrogate_steps": 10}])
def test_a_part_that_a_surrogate_leaves_out_is_found(surrogate, options, seed):
    starts = 0.3 * np.random.default_rng(seed).standard_normal((4, 2)) - 0.5
    with pytest.warns(fk.SamplingWarning, match="surrogate is far too small"):
        result = fk.sample(lambda x: -0.5 * float(x @ x), starts, surrogate=surrogate, seed=seed,
                           **options)
    assert result.verdict().status == "wrong"
    assert result.state.unvisited[0, 0] > 1
    assert 0.05 < result.state.unvisited[0, -1] < 0.6  # truth: 0.19


SOUND = {
    "equal": lambda x: -0.5 * float(x @ x), "wide": lambda x: -0.2 * float(x @ x),
    "narrow": lambda x: -0.9 * float(x @ x), "shifted": lambda x: -0.5 * float((x - 1) @ (x - 1)),
    "wrong in places": lambda x: -0.5 * float(x @ x) + float(np.sin(4 * x).sum())}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SOUND)
def test_a_surrogate_that_is_only_inaccurate_is_not_suspected(name, seed):
    result = fk.sample(lambda x: -0.5 * float(x @ x), np.zeros(3), surrogate=SOUND[name],
                       seed=seed)
    assert not result.warnings
    np.testing.assert_allclose(result.draws.std(axis=(0, 1)), 1, atol=0.15)


def test_ten_dimensions_behind_a_surrogate():
    """Warm-up is longer if 1000 steps do not suffice to learn the shape."""
    result = fk.sample(lambda x: -0.5 * float(x @ x), np.zeros(10),
                       surrogate=lambda x: -0.4 * float(x @ x), seed=0)
    assert not result.warnings
    np.testing.assert_allclose(result.draws.std(axis=(0, 1)), 1, atol=0.15)
