"""Bad arguments: an error that names the argument and shows its value, before any evaluation."""

import inspect
import re

import densities
import numpy as np
import pytest
from densities import D
from runs import sample

import fastkam as fk
from fastkam import schedules

SAMPLE = [
    # argument, value, what the error says besides the argument's name
    ("target", None, "None"),
    ("target", 3.5, "3.5"),
    ("x0", None, "not None"),
    ("x0", {"a": "b"}, "'b'"),
    ("prior", 5, "5"),
    ("prior", {}, "{}"),
    ("prior", {"a": 3.0}, "3.0"),
    ("bounds", 5, "5"),
    ("bounds", [(0, 1)], "1 pair"),
    ("bounds", [(0, 1), (1, 0)], "1.0 and 0.0"),
    ("bounds", {"a": 1}, "'a'"),
    ("transforms", 5, "5"),
    ("transforms", {"y": "log"}, "'y'"),
    ("transforms", {"x": "exp"}, "'exp'"),
    ("transforms", {"x": "interval"}, "(-inf, inf)"),
    ("args", 5, "5"),
    ("kwargs", 5, "5"),
    ("derived", 5, "5"),
    ("x0", "ab", "'ab'"),
    ("x0", ["1", "2"], "['1', '2']"),
    ("x0", 1.0, "()"),
    ("x0", [], "(0,)"),
    ("x0", np.zeros((4, 0)), "(4, 0)"),
    ("x0", np.zeros((3, 2)), "3 rows, but there are 4 chains"),
    ("x0", np.zeros((1, 1, 4, 2)), "(1, 1, 4, 2)"),
    ("x0", [0.0, np.nan], "nan at index (0, 1)"),
    ("x0", [np.inf, 0.0], "inf at index (0, 0)"),
    ("x0", [1j, 0.0], "1j"),
    ("x0", np.array([1j, 0.0]), "1.j"),
    ("x0", [[0.0], [0.0, 1.0]], "[[0.0], [0.0, 1.0]]"),
    ("sampler", "none such", "'none such'"),
    ("sampler", None, "None"),
    ("sampler", fk.RandomWalk, "RandomWalk"),
    ("sampler", ["ram"], "['ram']"),
    ("draws", 0, "0"),
    ("draws", -5, "-5"),
    ("draws", 10.0, "10.0"),
    ("draws", True, "True"),
    ("draws", "10", "'10'"),
    ("tune", -1, "-1"),
    ("tune", 1.5, "1.5"),
    ("chains", 0, "0"),
    ("chains", 2.0, "2.0"),
    ("chains", None, "None"),
    ("seed", "text", "'text'"),
    ("seed", -1, "-1"),
    ("seed", 1.5, "1.5"),
    ("schedule", "never", "'never'"),
    ("schedule", None, "None"),
    ("schedule", schedules.Finite, "Finite"),
    ("keep_stats", "yes", "'yes'"),
    ("share", "yes", "'yes'"),
    ("share", 1, "1"),
    ("share", None, "None"),
    ("thin", 0, "0"),
    ("thin", 1.0, "1.0"),
    ("threads", 0, "0"),
    ("threads", "two", "'two'"),
    ("names", ["a"], "1 coordinate, but x0 has 2"),
    ("names", ["a", "a"], "['a', 'a']"),
    ("names", ["a", 1], "['a', 1]"),
    ("names", 5, "5"),
    ("shapes", {"a": (3,)}, "3 coordinates, but x0 has 2"),
    ("shapes", {"a": "xy"}, "'x'"),
    ("shapes", {"a": 1.5}, "1.5"),
    ("shapes", {"a": (-1, -2)}, "-1"),
    ("shapes", 5, "5"),
    ("shapes", {1: 2}, "{1: 2}"),
    ("dims", 5, "5"),
    ("dims", {"a": 2}, "2: the shape of a parameter is given as shapes={'a': 2}"),
    ("dims", {"a": (2,)}, "shapes={'a': (2,)}"),
    ("dims", {"a": ["chain"]}, "['chain']"),
    ("dims", {"a": ["k", "k"]}, "['k', 'k']"),
    ("dims", {"a": ["a"]}, "['a']"),
    ("dims", {"a": ["k"]}, "['k']"),
    ("coords", 5, "5"),
    ("coords", {"k": [1, 2]}, "['k']"),
    ("coords", {"k": 3}, "3"),
    ("coords", {"k": [None, [1]]}, "[None, [1]]"),
    ("progress", 1, "1"),
    ("progress", "bar", "'bar'"),
    ("stop", 400, "400"),
    ("stop", "10min", "'10min'"),
    ("checkpoint", 5, "5"),
    ("store", 5, "5"),
    ("checkpoint", "/no/such/folder/run.fk", "'/no/such/folder/run.fk'"),
    ("checkpoint", "/", "'/'"),
    ("checkpoint_interval", -1.0, "-1.0"),
    ("checkpoint_interval", None, "None"),
    ("checkpoint_interval", float("nan"), "nan"),
    ("executor", 0, "0"),
    ("executor", "4", "'4': for four processes write executor=4"),
    ("diagnose", "yes", "'yes'"),
    ("diagnose", None, "None"),
    ("vectorized", "yes", "'yes'"),
    ("vectorized", 1, "1"),
    ("keep_warmup", None, "None"),
    ("search", 1, "1"),
    ("spread", "point", "'point'"),
    ("evaluations", 3, "3"),
    ("on_error", "raise", "'raise'"),
    ("check_gradient", 0, "0"),
    ("surrogate", 5, "5"),
    ("surrogate", "text", "'text'"),
    ("surrogate_steps", 2, "2"),
    ("budget", 0, "0"),
    ("budget", 1e4, "10000.0"),
    ("bit_generator", "default_rng", "'default_rng'"),
    ("bit_generator", None, "None"),
    ("bit_generator", ["PCG64"], "['PCG64']"),
]
RESUME = ["target", "draws", "threads", "progress", "stop", "checkpoint", "checkpoint_interval",
          "executor", "spread", "evaluations", "on_error", "surrogate", "sampler", "schedule",
          "diagnose", "vectorized", "store"]


def refuses(name, says):
    return pytest.raises((TypeError, ValueError),
                         match=rf"(?s)\b{name}\b.*{re.escape(says)}|{re.escape(says)}.*\b{name}\b")


@pytest.mark.parametrize(("name", "value", "says"), SAMPLE)
def test_sample_refuses(name, value, says):
    calls = []

    def density(x):
        calls.append(x)
        return 0.0

    with refuses(name, says):
        sample(**{"target": density, "x0": np.zeros(D), name: value})
    assert not calls


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [case for case in SAMPLE if case[0] in RESUME and case[:2] not in (
        ("target", None), ("draws", 0), ("sampler", None), ("schedule", None))])
def test_resume_refuses(name, value, says):
    calls = []

    def density(x):
        calls.append(x)
        return densities.python(x)

    result = sample(density, np.zeros(D), draws=5, tune=0, chains=2)
    calls.clear()
    with refuses(name, says):
        result.resume(**{"draws": 5, name: value})
    assert not calls


@pytest.mark.parametrize("result", [None, 5, np.zeros(3)])
def test_resume_refuses_other_objects_than_results(result):
    with pytest.raises(TypeError, match="result must be a Result or the path of one"):
        fk.resume(result)


def test_resume_with_a_target_of_another_dimension():
    result = sample(densities.python, np.zeros(D), draws=5, tune=0)
    other = fk.Target.from_python(densities.python, 3)
    with pytest.raises(ValueError, match="target has dimension 3, but x0 has 2 coordinates"):
        result.resume(5, target=other)


def test_every_argument_of_sample_and_resume_has_a_bad_value():
    assert {name for name, *_ in SAMPLE} == set(inspect.signature(fk.sample).parameters)
    others = {"result", "check_target"}
    assert set(RESUME) | others == set(inspect.signature(fk.resume).parameters)


@pytest.mark.parametrize("dim", [0, -1, 1.0, True, None, "2"])
def test_dim(dim):
    with pytest.raises(ValueError, match=f"dim must be a positive integer, not {dim!r}"):
        fk.Target.from_python(densities.python, dim)


@pytest.mark.parametrize(
    "x", [np.zeros(3), np.zeros((2, 3)), np.zeros((2, 2, 2)), 1.0])
def test_points_of_another_shape(x):
    target = fk.Target.from_python(densities.python_pair, D, gradient=True)
    for method in (target.logp, target.logp_grad):
        with pytest.raises(ValueError, match="x must "):
            method(x)
    with pytest.raises(ValueError, match=r"x must be one point \(2,\), not of shape \(3, 2\)"):
        target.logp_grad(np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: fk.stop.ESS(0), "size must be above 0, not 0"),
        (lambda: fk.stop.Rhat(1), "most must be above 1, not 1"),
        (lambda: fk.stop.Evaluations(0), "count must be at least 1, not 0"),
        (lambda: fk.stop.Time("soon"), "limit must be like .*, not 'soon'"),
        (lambda: fk.stop.Time("1.2.3s"), "limit must be like .*, not '1.2.3s'"),
        (lambda: fk.stop.Time(-1), "limit must be above 0, not -1"),
        (lambda: fk.stop.ESS() | 5, "stop must be a rule of fastkam.stop, not 5"),
    ],
)
def test_stop_rules_that_are_refused(make, says):
    with pytest.raises((TypeError, ValueError), match=says):
        make()


def test_seeds_of_every_kind():
    def draws(seed):
        return sample(densities.python, np.zeros(D), draws=5, tune=0, seed=seed).draws

    np.testing.assert_array_equal(draws(7), draws(np.random.SeedSequence(7)))
    np.testing.assert_array_equal(draws([1, 2]), draws(np.array([1, 2])))
    one, other = (np.random.default_rng(7) for _ in range(2))
    first = draws(one)
    np.testing.assert_array_equal(first, draws(other.bit_generator))
    assert (first != draws(one)).any()  # the next run of one generator is another
    assert (draws(None) != draws(None)).any()


def test_a_seed_sequence_that_has_children_gives_chains_of_their_own():
    seed = np.random.SeedSequence(7)
    child = seed.spawn(1)[0]
    result = sample(densities.python, np.zeros(D), draws=5, tune=0, seed=seed)
    taken = np.random.PCG64(child).state["state"]["inc"]
    assert taken not in [state["state"]["inc"] for state in result.state.generators]
    assert seed.n_children_spawned == 1


BIT_STREAMS = {
    "philox with a key": lambda: np.random.Generator(np.random.Philox(key=7)),
    "a legacy generator's": lambda: np.random.RandomState(3)._bit_generator,
    "jumped": lambda: np.random.Generator(np.random.PCG64(3).jumped()),
    "advanced": lambda: advanced(np.random.default_rng(3)),
    "plain": lambda: np.random.default_rng(3),
}


def advanced(rng):
    rng.random(1000)
    return rng


def test_the_state_of_a_generator_determines_the_draws():
    def run(seed):
        return fk.sample(lambda x: -0.5 * x @ x, np.zeros(2), sampler="ram", draws=5, tune=5,
                         seed=seed, progress=False, diagnose=False).draws.tobytes()

    found = [run(make()) for make in BIT_STREAMS.values()]
    assert len(set(found)) == len(found)
    assert found == [run(make()) for make in BIT_STREAMS.values()]
    rng = np.random.default_rng(3)
    assert run(rng) != run(rng)
