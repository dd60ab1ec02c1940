"""share=True: chains with a common adaptation, however they are run and continued."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import densities
import numpy as np
import pytest
from densities import D, short, stopped_at, with_gradient
from runs import sample
from same import assert_same

import fastkam as fk
from fastkam.samplers import SAMPLERS

STARTS = np.random.default_rng(3).uniform(-1, 1, (3, D))
OPTIONS = {"x0": STARTS, "tune": 60, "draws": 50, "chains": 3, "seed": 4, "share": True,
           "check_gradient": False}
ALONE = ("ckam", "dm", "pt", "scout")
SHARING = [name for name in SAMPLERS if name not in ALONE]
LEARNING = {"rwm": {"target_acceptance": 0.3}, "fishermala": {"plain_steps": 10},
            "jumps": {"sampler": "kam"}}


def sampler_of(name):
    return SAMPLERS[name](**LEARNING[name]) if name in LEARNING else short(name)


def shared_fields(sampler):
    """The names in a chain's state of all that is shared, parts included."""
    names = [f"kernel.{name}" for name in shared(sampler)]
    for part in sampler.parts() if hasattr(sampler, "parts") else []:
        names += [f"kernel.inner.{name}" for name in shared(part)]
    return names


def shared(sampler):
    return [name for name, field in sampler.kernel_class().FIELDS.items() if field.shared]


@pytest.mark.parametrize("schedule", ["finite", "perpetual"])
@pytest.mark.parametrize("name", SHARING)
def test_shared_fields_are_equal_in_all_chains(name, schedule):
    sampler = sampler_of(name)
    one, two = (sample(with_gradient("python", None), sampler=sampler, schedule=schedule,
                       **OPTIONS | {"tune": tune}) for tune in (60, 61))
    assert shared_fields(sampler)
    moved = False
    for field in shared_fields(sampler):
        values = [state[field] for state in one.states]
        for value in values[1:]:
            np.testing.assert_array_equal(value, values[0], err_msg=field)
        moved = moved or not np.array_equal(values[0], two.states[0][field])
    assert moved
    assert len({chain.tobytes() for chain in one.draws}) == 3


@pytest.mark.parametrize("name", SHARING)
def test_shared_fields_are_fixed_after_warm_up(name):
    sampler = sampler_of(name)
    some, more = (sample(with_gradient("python", None), sampler=sampler,
                         **OPTIONS | {"draws": draws}) for draws in (1, 40))
    for field in shared_fields(sampler):
        np.testing.assert_array_equal(some.states[0][field], more.states[0][field], err_msg=field)


@pytest.mark.parametrize("name", SHARING)
def test_resuming(tmp_path, name):
    """Runs resume from a file, and after a failure at any chain in warm-up or later."""
    target, path = with_gradient("python", None), tmp_path / "run.fk"
    whole = sample(target, sampler=sampler_of(name), **OPTIONS)
    assert whole.share
    sample(target, sampler=sampler_of(name), **OPTIONS | {"draws": 20}).save(path)
    assert_same(fk.resume(path, 30, target=target), whole)
    for evaluation in (50, 51, 52, 250):
        with pytest.raises(fk.SamplingError) as caught:
            sample(stopped_at(target, evaluation), sampler=sampler_of(name), **OPTIONS)
        caught.value.result.save(path)
        assert_same(fk.resume(path, target=target), whole)


@pytest.mark.parametrize("name", SHARING)
def test_every_form_threads_and_executors(library, name):
    expected = sample(with_gradient("python", None), sampler=sampler_of(name), **OPTIONS)
    for kind in ("vectorized", "c"):
        for threads in (1, 3):
            target = with_gradient(kind, library)
            assert_same(sample(target, sampler=sampler_of(name), threads=threads, **OPTIONS),
                        expected)
    with ThreadPoolExecutor(2) as pool:
        assert_same(sample(with_gradient("python", None), sampler=sampler_of(name),
                           executor=pool, **OPTIONS), expected)


def test_processes_and_milestones():
    expected = sample(densities.python, **OPTIONS | {"draws": 300})
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        result = sample(densities.python, executor=pool, **OPTIONS | {"draws": 300})
        part = sample(densities.python, executor=pool, stop=fk.stop.Evaluations(500),
                      **OPTIONS | {"draws": 300})
    assert_same(result, expected)
    assert part.trace.rows < 300
    assert_same(part.resume(300 - part.trace.rows), expected)


@pytest.mark.parametrize("name", SHARING)
def test_sharing_changes_nothing_for_a_single_chain(name):
    target = with_gradient("python", None)
    options = OPTIONS | {"x0": STARTS[0], "chains": 1}
    assert_same(sample(target, sampler=sampler_of(name), **options),
                sample(target, sampler=sampler_of(name), **options | {"share": False}))


@pytest.mark.parametrize("metric", ["diagonal", "dense"])
def test_a_metric_is_learned_to_the_end(metric):
    """The chains may fill the memory of draws before a window has its steps."""
    result = sample(with_gradient("python", None), STARTS[0], sampler=fk.NUTS(metric=metric),
                    chains=8, tune=700, draws=1, seed=1, share=True, check_gradient=False)
    learned, field = result.adaptation, "L" if metric == "dense" else "s"
    (middle,) = np.flatnonzero(learned["step"] == 350)
    assert (learned[field][:, middle] != learned[field][:, -1]).any()
    np.testing.assert_array_equal(learned[field][0], learned[field][-1])


def test_estimates_and_surrogates():
    def estimate(x, u):
        return densities.python(x) + 0.3 * u[0] - 0.045

    def estimates(X, U):
        return np.array([estimate(x, u) for x, u in zip(X, U, strict=True)])

    noisy = fk.Target.from_estimator(estimate, D, 1)
    for target, more in ((noisy, {}), (densities.python, {"surrogate": lambda x: -0.3 * x @ x})):
        whole = sample(target, sampler="gam", **OPTIONS | more)
        part = sample(target, sampler="gam", **OPTIONS | more | {"draws": 20})
        assert_same(part.resume(30), whole)
        inner = "inner." if "surrogate" in more else ""
        scales = {float(state[f"kernel.{inner}log_scale"]) for state in whole.states}
        assert len(scales) == 1
    vectorized = fk.Target.from_estimator(estimates, D, 1, vectorized=True)
    assert_same(sample(vectorized, sampler="gam", **OPTIONS),
                sample(noisy, sampler="gam", **OPTIONS))


# ---- what is refused ----


@pytest.mark.parametrize("name", ALONE)
def test_samplers_that_learn_for_one_chain(name):
    with pytest.raises(ValueError, match=r"share must be False for \w+, not True: \w+"):
        sample(with_gradient("python", None), sampler=short(name), **OPTIONS)
    if name in ("ckam", "dm"):
        within = fk.ModeJumping(sampler=short(name))
        with pytest.raises(ValueError, match=r"share must be False for \w+, not True: \w+"):
            sample(with_gradient("python", None), sampler=within, **OPTIONS)


def test_a_shared_step_size_follows_the_acceptances_of_all_chains():
    """Dual averaging as for one chain, but that K of its steps count as one."""
    K, tune = 3, 80
    result = sample(with_gradient("python", None), sampler=fk.HMC(metric="fixed"),
                    **OPTIONS | {"chains": K, "tune": tune, "draws": 1})
    state, H, mean = result.states[0], 0.0, 0.0
    for n, alpha in enumerate(result.warmup.stats["acceptance_rate"].T.ravel(), 1):
        H += (0.8 - alpha - H) / (n + 10 * K)
        log_eps = state["kernel.mu"] - np.sqrt(n / K) / 0.05 * H
        mean += n**-0.75 * (log_eps - mean)
    np.testing.assert_allclose(state["kernel.H_mean"], H, rtol=1e-9)
    np.testing.assert_allclose(state["kernel.log_eps_mean"], mean, rtol=1e-9)
    assert n == K * tune == state["kernel.n_eps"]
