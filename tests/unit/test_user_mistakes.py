"""Common first mistakes: each has one error that names the argument, the value and the remedy.

Those of arguments come before the density is called. What the function returns is seen at its first
call: there the run ends with a SamplingError, and no draw is made.
"""

import functools
import re
import types
from concurrent.futures import Executor, ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

import fastkam as fk
from fastkam.arguments import no_attribute


def logp(x):
    return -0.5 * x @ x


def run(target=logp, x0=(0.0, 0.0), **options):
    if isinstance(x0, tuple):
        x0 = np.array(x0)
    return fk.sample(target, x0, **{"draws": 20, "tune": 20, "chains": 2, "seed": 1,
                                    "progress": False} | options)


def never(x):
    raise AssertionError("the density was called")


def problem():
    return fk.Problem(lambda a: -a * a, prior={"a": stats.norm()})


class Communicator:
    """A stand-in for a communicator of mpi4py."""

    def Get_rank(self): ...

    def logp(self, x): ...


class Series:
    """A stand-in for a Series of pandas, with its own index, which becomes an array."""

    def __init__(self, values):
        self.values = np.asarray(values, dtype=float)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)

    def __len__(self):
        return len(self.values)


class Tensor:
    """A stand-in for a tensor of torch with a gradient: float converts it if it is a number."""

    def __init__(self, values):
        self.values = np.asarray(values, dtype=float)
        self.ndim, self.shape = self.values.ndim, self.values.shape

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad")

    def __float__(self):
        return float(self.values)


# ---- arguments: refused before any work ----

REFUSED = {
    # the sampler
    "a class": ({"sampler": fk.NUTS}, "sampler must be .*: write NUTS(), an object"),
    "a misspelled name": ({"sampler": "nut"}, "not 'nut': did you mean 'nuts'?"),
    "another case": ({"sampler": "NUTS"}, "not 'NUTS': did you mean 'nuts'?"),
    "a class's name": ({"sampler": "RobustAdaptiveMetropolis"}, "did you mean 'ram'?"),
    "a name of textbooks": ({"sampler": "Metropolis-Hastings"}, "did you mean 'rwm'?"),
    "no such sampler": ({"sampler": "gibbs sampling"}, "not 'gibbs sampling'"),
    "no sampler": ({"sampler": fk.samplers.Sampler()}, "sampler must be .* not Sampler()"),
    "no schedule": ({"schedule": fk.schedules.Schedule()}, "schedule must be .* not Schedule("),
    "a dict": ({"sampler": {"name": "ram"}}, "sampler must be a Sampler or one of .*not {'name'"),
    # names of arguments
    "misspelled": ({"drws": 10}, "sample() has no argument 'drws': did you mean 'draws'?"),
    "of PyMC": ({"random_seed": 1}, "'random_seed': did you mean 'seed'?"),
    "of Stan": ({"iter_warmup": 1}, "'iter_warmup': did you mean 'tune'?"),
    "of emcee": ({"nwalkers": 1}, "'nwalkers': did you mean 'chains'?"),
    "unknown": ({"wibble": 1}, "sample() has no argument 'wibble'; it has target, x0, sampler"),
    "a sampler's": ({"target_acceptance": 0.3}, "Those of a sampler are given to it, as in"),
    "bounds of one": ({"x0": [0.5], "bounds": (0, 1)},
                      "bounds must be a list of pairs (low, high), one per .*, as [(0, 1)]"),
    "data": ({"args": np.ones(3)}, "args must be a tuple of arguments, as args=(data,), not array"),
    # integers
    "1e3 draws": ({"draws": 1e3}, "draws must be an integer, not 1000.0: write 1000"),
    "half a draw": ({"draws": 10.5}, "draws must be an integer, not 10.5"),
    "draws=True": ({"draws": True}, "draws must be an integer, not True"),
    "draws as text": ({"draws": "1000"}, "draws must be an integer, not '1000'"),
    "no draws": ({"draws": 0}, "draws must be at least 1, not 0"),
    "negative tune": ({"tune": -1}, "tune must be at least 0, not -1"),
    "no chains": ({"chains": 0}, "chains must be at least 1, not 0"),
    "no thinning": ({"thin": 0}, "thin must be at least 1, not 0"),
    "all threads": ({"threads": "all"}, "threads must be an integer, not 'all'"),
    # seeds
    "a text": ({"seed": "abc"}, "seed must be an integer from 0 on, None, .* not 'abc'"),
    "a RandomState": ({"seed": np.random.RandomState(1)}, "write numpy.random.default_rng(...)"),
    "a bit generator": ({"bit_generator": "pcg64"}, "did you mean 'PCG64'?"),
    # the target
    "a number": ({"target": np.float64(-1.0)}, "not what it returns (logp, not logp(x))"),
    "a list": ({"target": [never]}, "target must be .*: give one function, the sum of"),
    "a path": ({"target": "model.py:logp"}, "give the function itself, not its name"),
    "a module": ({"target": np}, "target must be a function, a pointer or a Target, not <module"),
    "a class of targets": ({"target": fk.targets.Gaussian},
                           "target must be an object, not the class Gaussian: write Gaussian(...)"),
    "no argument": ({"target": lambda: 0.0}, "target must be a function of one argument"),
    "two arguments": ({"target": lambda x, data: 0.0},
                      "missing a required argument: 'data'): data go in as lambda x: f(x, data)"),
    "a keyword": ({"target": lambda x, *, data: 0.0}, "target must be a function of one argument"),
    "a method's class": ({"target": types.MethodType(lambda self: 0.0, 1)},
                         "target must be a function of one argument"),
    "a generator function": ({"target": lambda x: (yield 0.0)}, "is a generator function"),
    "another dimension": ({"target": fk.targets.Gaussian(np.zeros(3))},
                          "target has dimension 3, but x0 has 2 coordinates"),
    "no gradient": ({"target": fk.as_target(never, 2), "sampler": "nuts"},
                    "NUTS needs the gradient, and target .* must return the pair"),
    # the start
    "a NaN": ({"x0": [np.nan, 0.0]}, "x0 must be finite, not nan at index (0, 0)"),
    "a scalar": ({"x0": 0.0}, "x0 must have shape (d,) or (chains, d), not (): write [0.0] where"),
    "texts": ({"x0": ["a", "b"]}, "x0 must be an array of numbers, not ['a', 'b']"),
    "an empty list": ({"x0": []}, "x0 must have shape (d,) or (chains, d), not (0,)"),
    "ragged": ({"x0": [[0.0], [0.0, 1.0]]}, "x0 must be .*: its rows have different lengths"),
    "transposed": ({"x0": np.zeros((3, 2))}, "x0 has 3 rows, .* 2 chains: give its transpose"),
    "rows for more chains": ({"x0": np.zeros((5, 3))}, "x0 has 5 rows, .*: give chains=5, or one"),
    "one row": ({"x0": np.zeros((1, 2))}, "x0 has 1 row, .* one point (d,) for all chains"),
    "a set": ({"x0": {0.0, 1.0}}, "x0 must be .*: give a list"),
    "nothing": ({"x0": None}, "x0 must be the point where the search begins, not None"),
    "a masked array": ({"x0": np.ma.masked_array([0.0, 1.0], [False, True])},
                       "x0 must be an array without masked elements"),
    "complex": ({"x0": [0.0, 1j]}, "x0 must be an array of numbers, not [0.0, 1j]"),
    # executors
    "a communicator": ({"executor": Communicator()}, "give mpi4py.futures.MPIPoolExecutor()"),
    "a class of executors": ({"executor": ThreadPoolExecutor},
                             "give an object, ThreadPoolExecutor(...)"),
    "no workers": ({"executor": 0}, "executor must be a number of processes from 1 to .*, not 0"),
    "a fraction of workers": ({"executor": 2.5}, "executor must be .*: for four processes write"),
    "the base class": ({"executor": Executor()}, "executor must be a concurrent.futures.Executor"),
    # the rest
    "no such folder": ({"checkpoint": "no/such/run.fk"},
                       "checkpoint must be a file in a folder that exists, not 'no/such/run.fk'"),
    "a switch": ({"checkpoint": True}, "checkpoint must be a path, not True"),
    "one name": ({"names": ["a"]}, "describe 1 coordinate, but x0 has 2: .* give shapes={'a': 2}"),
    "a number of draws": ({"stop": 400}, "stop must be .*, not 400: .* write fk.stop.ESS(400)"),
    "a time": ({"stop": "10min"}, "stop must be .*: for a time write fk.stop.Time('10min')"),
    "a class of rules": ({"stop": fk.stop.ESS}, "stop must be .*: write ESS(...), an object"),
    "a rule of one's own": ({"stop": lambda run: True}, "write a subclass of fk.stop.StopRule"),
    "a schedule": ({"schedule": "diminish"}, "'diminish': did you mean 'diminishing'?"),
    "a class of schedules": ({"schedule": fk.schedules.Finite}, "write Finite(), an object"),
    "vectorized": ({"vectorized": "yes"}, "vectorized must be True or False, not 'yes'"),
    "a rule that one chain cannot meet": (
        {"stop": fk.stop.ESS(400) & fk.stop.Rhat(1.01), "chains": 1, "draws": None},
        "stop must have no Rhat if there is one chain.*: give chains=2"),
    "progress": ({"progress": "yes"}, "progress must be True, False, None, a logger, a function"),
    "keep_warmup": ({"keep_warmup": "no"}, "keep_warmup must be True or False, not 'no'"),
    "diagnose": ({"diagnose": 1}, "diagnose must be True or False, not 1"),
}


def says(pattern):
    """A regular expression of a message in which ".*" alone stands for something."""
    return "(?s)" + ".*".join(map(re.escape, pattern.split(".*")))


@pytest.mark.parametrize("name", REFUSED)
def test_refused_before_any_work(name):
    options, pattern = REFUSED[name]
    with pytest.raises((TypeError, ValueError), match=says(pattern)):
        run(**{"target": never} | options)


CALLS = {
    "by its place": (lambda: fk.sample(never, [0.0], "ram"), TypeError,
                     "sample() takes only target and x0 as positional arg.*, as sampler='ram'"),
    "a path for lines": (lambda: fk.progress.Lines("log.txt"), TypeError,
                         "write must be a function of a str, not 'log.txt'"),
    "exchanged": (lambda: fk.sample([0.0, 0.0], never), TypeError, "the density comes first"),
    "a parameter": (lambda: fk.NUTS(target_accept=0.9), TypeError,
                    "NUTS has no argument 'target_accept': did you mean 'target_acceptance'?"),
    "a parameter by its place": (lambda: fk.RandomWalk(1.0), TypeError,
                                 "RandomWalk takes no positional arguments.*, as proposal_cov=1.0"),
    "within another": (lambda: fk.ParallelTempering(sampler="mla"), ValueError, "mean 'mala'?"),
    "a schedule's parameter": (lambda: fk.schedules.Finite(gian=1.0), TypeError, "mean 'gain'?"),
    "a rule's parameter": (lambda: fk.stop.Evaluations(1e5), TypeError, ": write 100000"),
    "a rule and a number": (lambda: fk.stop.ESS(10) | 5, TypeError, "write fk.stop.ESS(5)"),
    "a time as a text": (lambda: fk.stop.Time("10 minutes"), ValueError, 'must be like "90s"'),
    "a class in capitals": (lambda: fk.Nuts, AttributeError, "did you mean 'NUTS'?"),
    "a function": (lambda: fk.resum, AttributeError, "did you mean 'resume'?"),
    "a method of results": (lambda: fk.log_evidence, AttributeError, "result.log_evidence"),
    "no file": (lambda: fk.load("none.fk"), FileNotFoundError, "there is no file 'none.fk' in"),
    "no file to go on from": (lambda: fk.resume("none.fk", target=never), FileNotFoundError,
                              "there is no file 'none.fk' in"),
    "a folder": (lambda: fk.load("."), IsADirectoryError,
                 "path must be a file or a store of fastkam, not the folder"),
    "no path": (lambda: fk.load(None), TypeError, "path must be that of a file, not None"),
    "a function to go on from": (lambda: fk.resume(never), TypeError,
                                 "result must be a Result or the path of one, not <function never"),
    "a column": (lambda: run().summary()["rhat"], KeyError, "did you mean 'r_hat'?"),
    "a name": (lambda: run(names=["alpha", "beta"])["alphas"], KeyError, "did you mean 'alpha'?"),
    "where to save": (lambda: run().save("no/such/run.fk"), ValueError,
                      "path must be a file in a folder that exists, not 'no/such/run.fk'"),
    "misspelled": (lambda: run().resume(drws=5), TypeError, "resume() has no argument 'drws': did"),
    "no near name": (lambda: run().resume(5, seed=3), TypeError, "no argument 'seed'; it has"),
    "a scale below 0": (lambda: fk.sample(lambda a: 0.0, prior={"a": stats.norm(0, -1)}),
                        ValueError, "such as a scale that is not positive"),
    "a method of no object": (lambda: fk.sample(Communicator.logp, [0.0]), TypeError,
                              "is a method: give that of an object"),
    "a discrete prior": (lambda: fk.sample(lambda n: -n, prior={"n": stats.poisson(3)}), TypeError,
                         "prior['n'] must be continuous, and poisson is discrete: sum over"),
    "a parameter as an attribute": (lambda: run(names=["mean", "b"]).mean, AttributeError,
                                    "a Result has no 'mean': use result['mean']"),
    "a conversion": (lambda: run().to_xarray, AttributeError, "use to_datatree(), or to_arviz()"),
    "a log density": (lambda: run().logp, AttributeError, "no 'logp': use stats['lp']"),
    "R-hat": (lambda: run().rhat, AttributeError, "use summary(), whose columns are r_hat, ess_bu"),
    "a number of chains": (lambda: run().n_chains, AttributeError, "did you mean 'chains'?"),
    "a misspelled attribute": (lambda: run().drwas, AttributeError, "did you mean 'draws'?"),
    "a gradient beside": (lambda: run(jac=lambda x: -x), TypeError,
                          r"no argument 'jac'; the gradient is returned by the function itself"),
    "a gradient by name": (lambda: run(gradient=lambda x: -x), TypeError, "the pair (log density"),
    "a statistic": (lambda: run().stats["logp"], KeyError, "no statistic 'logp'; there are"),
    "no statistics": (lambda: run(keep_stats=False).stats["lp"], KeyError, "were not recorded"),
    "a column as an attribute": (lambda: run().summary().mean, AttributeError,
                                 "a Summary has no 'mean': use summary['mean']"),
    "a misspelled column": (lambda: run().summary().rhat, AttributeError, "mean 'r_hat'?"),
    "a module of priors": (lambda: fk.priors, AttributeError, "are distributions of scipy.stats"),
    "a prior": (lambda: fk.Normal, AttributeError, "are distributions of scipy.stats"),
    "no near attribute": (lambda: run().zzz, AttributeError, "a Result has no 'zzz'"),
    "a prior predictive": (lambda: problem().prior_samples, AttributeError,
                           "a Problem has no 'prior_samples': use constrain(sample_prior(n, rng))"),
    "a method of other packages": (lambda: problem().log_prob, AttributeError, "use logp(z)"),
    "a misspelled method": (lambda: problem().sampl_prior, AttributeError, "mean 'sample_prior'?"),
    "a moment": (lambda: run().mean, AttributeError, "a Result has no 'mean': use summary()"),
    "a plot of the package": (lambda: fk.plot_trace, AttributeError,
                              "did you mean 'plots.plot_trace'?"),
    "fewer draws": (lambda: run().resume(-5), ValueError, "draws must be at least 0, not -5"),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    call, error, pattern = CALLS[name]
    with pytest.raises(error, match=says(pattern)):
        call()


@pytest.mark.parametrize("content", [b"", b"hello", b"\x93NUMPY", None])
def test_a_file_that_is_no_result_is_refused(content, tmp_path):
    path = tmp_path / "run.fk"
    if content is None:
        with open(path, "wb") as file:
            np.savez(file, a=1)
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"run\.fk is not a fastkam result, which Result\.save"):
        fk.load(path)


# ---- what the function returns ----

RETURNED = {
    "None": (None, "not None of type NoneType: the function has to return it"),
    "three numbers": (np.zeros(3), "float64 array of shape (3,): sum it, or give vectorized=True"),
    "a list": ([1.0, 2.0], "not [1.0, 2.0] of type list: sum it"),
    "a series": (Series([1.0, 2.0]), "of type Series: sum it"),
    "a tensor": (Tensor([1.0, 2.0]), "of type Tensor"),
    "masked": (np.ma.masked, "not masked of type MaskedConstant"),
    "a masked array": (np.ma.masked_array([1.0], [True]), "of type MaskedArray"),
    "complex": (1j, "not 1j of type complex: take its real part"),
    "a text": ("1.0", "not '1.0' of type str"),
    "a truth value": (True, "not True of type bool: return 0.0 or -inf"),
    "a truth value of numpy": (np.True_, "of type bool: return 0.0 or -inf"),
    "a dict": ({"lp": 1.0}, "not {'lp': 1.0} of type dict"),
    "a generator": ((i for i in (1.0,)), "of type generator"),
}


@pytest.mark.parametrize("name", RETURNED)
def test_no_log_density_is_returned(name):
    value, pattern = RETURNED[name]
    message = says("the log density must be one real number, .*" + pattern)
    with pytest.raises(fk.SamplingError, match=message) as caught:
        run(lambda x: value)
    assert caught.value.result is None  # no draw had been made


@pytest.mark.parametrize("value", [
    1, np.float32(1), np.int64(1), np.array(1.0), np.array([1.0]), [1.0], Series([1.0]),
    Tensor(1.0)], ids=lambda value: type(value).__name__)
def test_a_log_density_in_some_form(value):
    assert run(lambda x: value).stats["lp"].min() == 1


GRADIENTS = {
    "None": None, "a number too many": np.zeros(3), "a row": np.zeros((1, 2)), "a number": 0.0,
    "complex": np.zeros(2, complex), "booleans": np.zeros(2, bool),
    "masked": np.ma.masked_array([0.0, 1.0], [0, 1]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_no_gradient_is_returned(name):
    value = GRADIENTS[name]
    message = r"must be a real array of shape \(2,\), .*not|an array of 2 numbers, or extras"
    with pytest.raises(fk.SamplingError, match=message):
        run(lambda x: (logp(x), value), sampler="mala")


@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize("name", ["complex", "booleans", "masked"])
def test_no_gradient_is_returned_to_a_file_of_calls(name, vectorized, tmp_path):
    def density(x):
        wrong = GRADIENTS[name]
        return ((logp(x), wrong) if not vectorized else
                (np.zeros(len(x)), np.ma.stack([wrong] * len(x)) if name == "masked"
                 else np.stack([wrong] * len(x))))

    with pytest.raises(fk.SamplingError, match=r"the gradient must be a real array of shape .*not"):
        run(density, sampler="mala", vectorized=vectorized, evaluations=tmp_path / "calls.fk")


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("wrong", [
    lambda X: X[:, 0] < 9, lambda X: np.ma.masked_less(X[:, 0], 9), lambda X: X[:, :1]])
def test_no_log_densities_are_returned(wrong, keep, tmp_path):
    options = {"evaluations": tmp_path / "calls.fk"} if keep else {}
    with pytest.raises(fk.SamplingError, match="the log density must be a real array of shape"):
        run(wrong, vectorized=True, **options)


def test_no_pair_is_returned():
    with pytest.raises(TypeError, match=says("(log density, gradient), not .* such as \"ram\"")):
        run(sampler="nuts")
    assert run(lambda x: (logp(x), [-x[0], -x[1]]), sampler="mala").draws.shape == (2, 20, 2)


FUNCTIONS = {
    "many points": (lambda X: -0.5 * (X**2).sum(axis=1), {}, "array of shape (2,), one point"),
    "parameters by name": (lambda x: x["mu"], {}, "array of shape (2,), one point"),
    "as attributes": (lambda x: x.mu, {}, "array of shape (2,), one point"),
    "too many parameters": (lambda x: x[2], {}, "array of shape (2,), one point"),
    "one point": (logp, {"vectorized": True}, "takes points (k, d), one per row"),
    "a sum over all": (lambda X: (X**2).sum(), {"vectorized": True}, "takes points (k, d)"),
    "x changed": (lambda x: x.sort(), {}, "x is read-only, change a copy, x.copy()"),
    "outside": (lambda x: -np.inf, {}, "it is -inf there; give x0 inside the support"),
    "NaN": (lambda x: np.nan, {}, "it is nan there; give x0 inside the support"),
    "gradient": (lambda x: (0.0, np.full(2, np.nan)), {"sampler": "mala"},
                 "it is 0 there, but its gradient is not finite"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_cannot_be_sampled(name):
    function, options, pattern = FUNCTIONS[name]
    with pytest.raises(fk.SamplingError, match=says(pattern)):
        run(function, **options)


# ---- harmless ----


def test_unusual_but_valid_arguments_are_accepted(capsys):
    def prints(x):
        print("called")
        return logp(x)

    class Model:
        def logp(self, x, scale=1.0):
            return -0.5 * x @ x / scale

        __call__ = logp

    same = run().draws
    for target in (prints, Model(), Model().logp, functools.partial(Model.logp, Model()),
                   lambda x, *more, **others: logp(x), np.vectorize(logp, signature="(d)->()")):
        np.testing.assert_array_equal(run(target).draws, same)
    for x0 in ([0, 0], np.zeros(2, int), Series([0.0, 0.0]), np.zeros((2, 2)),
               np.ma.masked_array([0.0, 0.0], [False, False]), [False, False]):
        np.testing.assert_array_equal(run(x0=x0).draws, same)
    assert "called" in capsys.readouterr().out
    for draws in (np.int64(20), np.array(20)[()]):
        np.testing.assert_array_equal(run(draws=draws).draws, same)


@pytest.mark.parametrize(("more", "mend"), [
    ({}, "take thin="), ({"stop": fk.stop.Time(1)}, "leave draws out with stop=")])
def test_more_draws_than_there_is_memory_for_are_refused(more, mend):
    with pytest.raises(ValueError, match=f"draws must fit into memory, not {10**13} .*{mend}"):
        run(never, draws=10**13, **more)


def test_the_error_of_a_property_is_not_replaced():
    class Made:
        @property
        def broken(self):
            raise AttributeError("within")

        def __getattr__(self, name):
            return no_attribute(self, name, {"other": "broken"})

    for name, text in (("broken", "^within$"), ("brokn", "did you mean 'broken'"),
                       ("other", "a Made has no 'other': use broken"), ("__x", "has no attribute")):
        with pytest.raises(AttributeError, match=text):
            getattr(Made(), name)
