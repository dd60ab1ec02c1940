"""Public functions with odd arguments: each call works, or is refused by the argument's name."""

import collections
import inspect

import fuzz.calls
import fuzz.workers
import numpy as np
import pytest
from fuzz.calls import REFUSED, WORKS, judged, outcome
from fuzz.entries import ENTRIES
from fuzz.entry import Entry, plain_run
from fuzz.values import LONG, RaisesInRepr, in_itself_alone, nested
from fuzz.workers import DIES, SLEEPS, Worker, tried

import fastkam as fk

SOME = 700  # calls; others by ``python -m fuzz``
SEED = 11
GOOD = ("works", "refused", "stopped with an error")
# what has no arguments of a user's, or is tried through others
OTHERS = {
    "__version__", "get_include", "Target", "SamplingError", "SamplingWarning", "PythonSampler",
    "Transform", "diagnostics.Finding", "errors", "progress", "kernels.Kernel", "stop.StopRule",
    "schedules.Schedule", "samplers.Sampler", "samplers.Field", "samplers.Proposal",
    "samplers.Decision", "samplers.Point", "samplers.Composite",
    "targets.glass_classification"}  # needs its data set


def test_the_entries_themselves_work(tmp_path, monkeypatch):
    """The given arguments work, or are refused without a compiled function or data set."""
    monkeypatch.chdir(tmp_path)  # some write files
    refused = {"Target.from_c", "Target.from_numba", "targets.load_dataset",
               "targets.logistic_regression"}
    slow = {"choose_sampler", "plot_trace", "plot_2d", "targets.horseshoe"}
    for name, entry in ENTRIES.items():
        if name not in refused | slow | {"resume a file", "load", "Result.save", "Evaluations",
                                       "Result.to_netcdf"}:
            entry.check(entry.call(**entry.good()))


def test_every_public_name_has_an_entry():
    covered = {name for entry in ENTRIES.values() for name in entry.covers}
    public = {name for name in fk.__all__ if not inspect.ismodule(getattr(fk, name))}
    for module in ("diagnostics", "targets"):
        public |= {f"{module}.{name}" for name in getattr(fk, module).__all__
                   if callable(getattr(getattr(fk, module), name))}
    without = {f"targets.{name}" for name in fk.targets.__all__  # functions without arguments
               if callable(made := getattr(fk.targets, name)) and not (
                   inspect.signature(made).parameters)}
    assert public - covered - OTHERS - without == set()


def test_some_calls():
    counts, bad = collections.Counter(), []
    for number, name, what in tried(SEED, range(SOME)):
        counts[what] += 1
        if what not in GOOD:
            bad.append(f"{number} {name}: {what}")
    assert not bad
    assert counts[REFUSED] > 0.6 * SOME
    assert counts[WORKS] > 0.05 * SOME


def test_calls_that_end_or_delay_the_process_are_noticed():
    """The calls after such a call are made as usual."""
    worker = Worker()
    try:
        assert worker.ask(0, 0, DIES)[1].startswith("ended with")
        worker.seconds = 0.1        # of the processor, or 3 by the clock
        assert worker.ask(0, 60, SLEEPS)[1].startswith("took more than")
        worker.seconds = fuzz.workers.SECONDS
        assert worker.ask(SEED, 1)[1] in GOOD
    finally:
        worker.close()


def planted(error):
    """Return the outcome of a call whose function raises an error."""
    def call(bins=1):
        raise error

    return Entry(call, dict, ("bins",))


@pytest.mark.parametrize("error", [
    IndexError("bins"), AttributeError("bins"), OverflowError("bins"), UnboundLocalError("bins"),
    RecursionError("bins"), ValueError("operands could not be broadcast"), TypeError(""),
    ValueError("bins must be " + 10_000 * "x"), UnicodeEncodeError("utf-8", "x", 0, 1, "bins"),
    AssertionError("bins")], ids=lambda error: type(error).__name__)
def test_other_ends_are_noticed(monkeypatch, error):
    monkeypatch.setitem(fuzz.calls.ENTRIES, "planted", planted(error))
    assert outcome(0, 0, "planted")[1] not in GOOD


def test_a_message_must_name_the_argument():
    entry = planted(None)
    assert judged(entry, ["bins"], ValueError("bins must be 2")) == REFUSED
    assert judged(entry, ["bins"], ValueError("bins[0] must be 2")) == REFUSED
    assert judged(entry, ["bins"], ValueError("cabins must be 2")) != REFUSED


# ---- what was found, and mended ----


def sample(**options):
    return fk.sample(**plain_run() | options)


DRAWS = np.random.default_rng(1).normal(size=(2, 9, 2))
SAMPLERS = fk.samplers.SAMPLERS
FOUND = {
    # numpy ends the process where it is asked for the elements of these
    "seed": lambda: fk.Problem(lambda a: 0.0, {"a": __import__("scipy.stats").stats.norm()}
                               ).sample_prior(2, in_itself_alone()),
    # messages that could not be made, or of half a megabyte
    "share": lambda: sample(share=LONG),
    "prior": lambda: sample(prior={"a": LONG}, x0=None),
    "bounds": lambda: sample(bounds=RaisesInRepr()),
    "gamma": lambda: SAMPLERS["kam"](gamma=nested(5000)),
    "preconditioner": lambda: SAMPLERS["mala"](preconditioner=nested(5000)),
    "threads": lambda: sample(threads=[0.0] * 100_000),
    "out": lambda: fk.linalg.mvn_logpdf([0.0], [0.0], [[1.0]], out=LONG),
    "provider": lambda: fk.Target.from_capsule(nested(5000)),
    # comparisons of arrays
    "metric": lambda: SAMPLERS["automala"](metric=np.zeros(2)),
    "transforms": lambda: sample(transforms=np.zeros(2)),
    "named": lambda: fk.Problem(lambda a: 0.0, bounds={"a": (0, 1)}, named=np.zeros(2)),
    "vectorized": lambda: fk.as_target(lambda x: 0.0, 2, vectorized=np.zeros(2)),
    "length": lambda: fk.kernels.Gaussian(np.zeros(2)),
    "intercept": lambda: fk.targets.standardize([[1.0], [2.0]], intercept=np.zeros(2)),
    # integers by their class, that are none
    "start": lambda: fk.schedules.Finite(start=np.timedelta64(3, "D")),
    "step_size": lambda: SAMPLERS["mala"](step_size=np.timedelta64(3, "D")),
    # numpy's and Python's own errors
    "draws": lambda: fk.diagnostics.ess_bulk("text"),
    "labels": lambda: fk.diagnostics.summary(DRAWS, 7),
    "mode_of": lambda: fk.diagnostics.mode_occupancy(DRAWS, "text", [1.0]),
    "logps": lambda: fk.diagnostics.marginal_symmetric_kl(DRAWS[0], [None] * 2, [[0, 1]] * 2),
    "x": lambda: fk.as_target(lambda x: 0.0, 2).logp([10**400, 1]),
    "names": lambda: fk.Problem(lambda x: 0.0, names=7),
    "L": lambda: fk.LKJ(2).logpdf("text"),
    "size": lambda: fk.LKJ(2).rvs([None]),
    "random_state": lambda: fk.LKJ(2).rvs(2, "text"),
    "path": lambda: fk.sample(**plain_run(draws=1)).save("a\x00b"),
    "checkpoint": lambda: sample(checkpoint="\ud800"),
    "X": lambda: fk.targets.LogisticRegression([[1.0], [1.0, 2.0]], [0, 1]),
    "means": lambda: fk.targets.GaussianMixture([[1.0], [1.0, 2.0]]),
    "variances": lambda: fk.targets.BananaMixture([0], [1], [1.0], [1.0], [[1.0], [1.0, 2.0]]),
    "spacing": lambda: fk.targets.LatticeMixture(spacing=1e200),
    "d": lambda: fk.targets.basis_vectors(2**40),
    "location": lambda: fk.targets.StudentT(location=[[1.0], [1.0, 2.0]]),
    "df": lambda: fk.targets.StudentT(df=5e-324),
    "n": lambda: fk.LKJ(2**40).rvs(),
    "prior_draws": lambda: fk.diagnostics.symmetric_kl(
        DRAWS[0], lambda x: -(x**2).sum(1), [[-3, 3]] * 2, 5, prior_draws=10**400),
    "n_importance": lambda: fk.targets.GaussianProcessClassification(
        [[1.0], [2.0]], [0, 1], n_importance=2**40),
    "w": lambda: fk.targets.Flower(A=0.1, w=2**40),
    "name": lambda: fk.targets.load_dataset([]),
    "moves": lambda: fk.ModeJumping(moves=[{}]),
    "result": lambda: fk.tempering(7),
    "pair": lambda: fk.plots.plot_2d(fk.sample(**plain_run(draws=1)), (0, 1, 2)),
    "steps": lambda: fk.testing.replicate("rwm", fk.targets.Gaussian([0.0]), [[0.0]], 1.5, seed=1),
    "state": lambda: fk.testing.replicate("rwm", fk.targets.Gaussian([0.0]), [[0.0]], 1, seed=1,
                                          state={"s": "text"}),
    "points": lambda: fk.testing.replicate("rwm", fk.as_target(lambda x: -np.inf, 1), [[1.0]], 1,
                                           seed=1),
    "before": lambda: fk.testing.compare("text", DRAWS[0], seed=1),
    "n_directions": lambda: fk.testing.compare(DRAWS[0], DRAWS[1], seed=1, n_directions=-1),
    "chains": lambda: sample(chains=2**31),
    "a": lambda: fk.linalg.cholupdate(np.eye(2), np.ones(2), a=np.ones((1,) * 64)),
    # of the functions added later
    "path of a file of calls": lambda: fk.Evaluations("a\x00b"),
    "errors": lambda: sample(draws=None, stop=fk.stop.MCSE({3: 0.1})),
    "executor": lambda: sample(executor=LONG),
    "executor as a duration": lambda: sample(executor=np.timedelta64(3, "D")),
    "levels": lambda: fk.diagnostics.quantile_deviation([1.0, 2.0], 1, []),
    "var_names": lambda: fk.plots.plot_rank(fk.sample(**plain_run(draws=9)), np.zeros((1, 1, 2))),
    "var_names of no dimension": lambda: fk.plots.plot_rank(
        fk.sample(**plain_run(draws=9)), np.array("x")),
    "draws of other gradients": lambda: fk.diagnostics.implied_moments(
        np.zeros((2, 30, 1)), np.zeros((2, 30, 2))),
    "means and as many covs": lambda: sample(
        sampler=fk.ModeJumping(means=[[0.0, 1.0]], covs=[np.eye(2)] * 3)),
    "means far apart": lambda: sample(sampler=fk.ModeJumping(means=[[0.0, 1.0], [1.0, 1e308]])),
    "gradients of large draws": lambda: fk.diagnostics.implied_moments(
        1e150 * np.random.default_rng(1).normal(size=(2, 30, 1)), np.full((2, 30, 1), 1e200)),
    "covs far too large": lambda: sample(sampler=fk.ModeJumping(
        means=[[0.0, 1.0], [1.0, 2.0]], covs=1e308)),
    "dims": lambda: sample(names=["a", "b"], dims={"a": np.array("city")}),
    "logp that fails": lambda: fk.plots.plot_2d(
        fk.sample(**plain_run(draws=9)), logp=np.zeros, bins=9),
    "names nested too deeply": lambda: fk.plots.plot_adaptation(
        fk.sample(**plain_run(draws=9)), [nested(5000)]),
    "mean and cov of other dimensions": lambda: fk.linalg.mvn_logpdf([1.0], [0.0], np.eye(2)),
    "surrogate_steps": lambda: sample(surrogate=lambda x: -float(x @ x), surrogate_steps=2**31),
    "steps on a surrogate": lambda: fk.samplers.DelayedAcceptance(
        sampler=SAMPLERS["ram"](), steps=2**31),
    "x0": lambda: fk.AskTell(x0=lambda rng: {}),
    "x0 as a function of something else": lambda: sample(x0=len),
    "factory": lambda: sample(target=fk.TargetRecipe(len, gradient=1)),
    "bins": lambda: fk.plots.plot_trace(fk.sample(**plain_run(draws=9)), bins=5_000_000),
}


@pytest.mark.parametrize("name", FOUND)
def test_found_and_mended(name):
    with pytest.raises((TypeError, ValueError)) as caught:
        FOUND[name]()
    argument = {"seed": "rng"}.get(name, name.split()[0])
    assert judged(Entry(None, dict), [argument], caught.value) == REFUSED


def test_a_gain_of_numpy_numbers_of_few_bits():
    gain = fk.schedules.Power(offset=np.int8(1), k=np.int8(1))
    assert gain(3) == 0.25
    assert fk.schedules.Power(offset=np.int8(127))(2**31) > 0


def test_points_in_any_order_of_memory():
    points = np.random.default_rng(1).normal(size=(5, 2))
    moved = [fk.testing.replicate("rwm", fk.targets.Gaussian([0.0, 0.0]), x, 3, seed=1)
             for x in (points, np.asfortranarray(points))]
    assert (moved[0] == moved[1]).all()


def test_a_kernel_of_any_length_has_a_matrix():
    """exp(-(|x - z| / l)^2 / 2) and u^v K_v(u) are 0 far away, where powers overflow."""
    z = np.array([[0.0], [1.0], [1e9]])
    for kernel in (fk.kernels.Gaussian(1e-150), fk.kernels.Matern(1e-6, order=40.0)):
        K = kernel.matrix(z, kernel.length)
        assert np.isfinite(K).all()
        assert K[0, 0] == 1
        assert K[0, 2] == 0
