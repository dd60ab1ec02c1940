"""Simulation-based calibration: correct models pass, mistakes are detected, no fit is lost."""

from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from scipy import stats

import fastkam as fk
from fastkam.plots.style import plain
from fastkam.testing.fits import Fit
from fastkam.testing.ranks import band, counts_below, p_value_of, uniformity

N = 5
RATE = 1e-3  # of false alarms, in each test
PRIOR = {"mu": stats.norm(0, 1)}

calibration = partial(
    fk.testing.calibration, sampler="ram", search=False, chains=1, tune=200, progress=False,
    false_alarm_rate=RATE)


def simulate(mu, rng):
    return rng.normal(mu, 1.0, N)


def loglike(mu, data):
    return -0.5 * float(((data - mu) ** 2).sum())


def first_half(mu, data):
    return loglike(mu, data[:2])


class WrongRatio(fk.PythonSampler):
    """A proposal drawn towards 0, accepted as if it were symmetric: the draws are too narrow."""

    def propose(self, x, rng):
        return 0.3 * x + 0.4 * rng.standard_normal(self.d)


# ---- the test of ranks ----


@pytest.mark.parametrize(("n", "L"), [(20, 10), (60, 7), (200, 100), (30, 1)])
def test_p_values_of_uniform_ranks(n, L):
    """P(p <= a) is a or less, and near a where ranks have many values; |z| < 4 in 1200 sets."""
    rng = np.random.default_rng(n)
    p = np.array([uniformity(rng.integers(0, L + 1, n), L) for _ in range(1200)])
    for a in (0.02, 0.1, 0.3):
        assert (p <= a).mean() < a + 4 * np.sqrt(a * (1 - a) / len(p))
    if L > 7:
        assert (p <= 0.3).mean() > 0.2


def test_p_value_is_exact():
    """All 3^4 outcomes of four ranks from 0 to 2."""
    sets = np.array(np.meshgrid(*[range(3)] * 4)).reshape(4, -1).T
    p = np.array([uniformity(ranks, 2) for ranks in sets])
    for one in np.unique(p):
        assert one == pytest.approx((p <= one + 1e-9).mean(), abs=1e-12)


def test_ranks_leave_the_band_where_they_deviate():
    rng = np.random.default_rng(5)
    low, high = band(300, 50, 0.05)
    for ranks in (rng.integers(0, 51, 300) for _ in range(100)):
        R = counts_below(ranks, 50)
        assert ((R < low) | (R > high)).any() == (uniformity(ranks, 50) <= 0.05)


def test_small_p_values_are_positive():
    assert 0 < uniformity(np.zeros(500, dtype=int), 100) < 1e-100
    assert p_value_of(50, 20, 1.0) == 1.0


@pytest.mark.parametrize(
    ("ranks", "L", "error", "says"),
    [([0.5], 3, TypeError, "ranks must be an array of integers"),
     ([], 3, TypeError, "ranks must be an array of integers"),
     ([[1]], 3, ValueError, r"ranks must have shape \(n,\)"),
     ([1, 4], 3, ValueError, "ranks must be from 0 to L = 3, not from 1 to 4"),
     ([1], 0, ValueError, "L must be at least 1, not 0")],
)
def test_bad_ranks(ranks, L, error, says):
    with pytest.raises(error, match=says):
        uniformity(ranks, L)


# ---- correct models pass ----


@pytest.mark.parametrize("seed", range(5))
def test_correct_model_passes(seed):
    """A false alarm in 1 of 1000 seeds at most, and p-values that are not all large or small."""
    found = calibration(PRIOR, simulate, loglike, n=40, draws=20, seed=seed)
    assert found.ok, found
    assert set(found.ranks) == {"mu", "log_likelihood"}
    assert found.correlated <= 2
    assert "no deviation found in 40 fits" in str(found)


@pytest.mark.long
def test_p_values_of_correct_models_are_uniform():
    """60 seeds, among which the smallest p-value of a coordinate is as those of uniform ones."""
    p = [calibration(PRIOR, simulate, loglike, n=60, draws=20, seed=100 + seed).p_values["mu"]
         for seed in range(60)]
    assert stats.kstest(p, "uniform", alternative="greater").pvalue > RATE


def test_bounded_and_vector_parameters_pass():
    """Ranks are of parameters, not of the unconstrained points; a gradient, and quantities."""
    prior = {"rate": (stats.gamma(2.0), 2), "order": stats.uniform(0, 1)}

    def simulate(rate, order, rng):
        return rng.poisson(rate, (4, 2))

    def loglike(rate, order, data):
        return float((data.sum(axis=0) * np.log(rate) - 4 * rate).sum())

    def quantities(rate, order, data):
        return {"total": rate.sum(), "two": rate * data.mean(axis=0)}

    found = calibration(prior, simulate, loglike, n=40, draws=15, seed=3, quantities=quantities)
    assert set(found.ranks) == {"rate[0]", "rate[1]", "order", "log_likelihood", "total", "two[0]",
                                "two[1]"}
    assert found.ok, found
    assert (found.parameters[:, :2] > 0).all()


SCALE = np.array([1.0, 0.5])


def by_array(x, data, scale=SCALE):
    return -0.5 * np.sum(((data - x) / scale) ** 2)


def with_gradient(x, data):
    return by_array(x, data), ((data - x) / SCALE**2).sum(axis=0)


def many_points(x, data):
    return -0.5 * np.sum(((data - x[:, None, :]) / SCALE) ** 2, axis=(1, 2))


@pytest.mark.parametrize(
    ("loglike", "options"),
    [(by_array, {"kwargs": {"scale": SCALE}}), (with_gradient, {"sampler": "mala"}),
     (many_points, {"vectorized": True, "chains": 2}),
     (by_array, {"transforms": {"mu": "ordered"}}), (by_array, {"sampler": "auto", "chains": 4})],
    ids=["kwargs", "gradient", "vectorized", "ordered", "auto"],
)
def test_forms_of_a_likelihood(loglike, options):
    """The array of parameters, and what `Problem` and `sample` take besides."""
    def simulate(x, rng):
        return x + SCALE * rng.standard_normal((3, 2))

    found = calibration({"mu": (stats.norm(0, 1), 2)}, simulate, loglike, n=20, draws=10, seed=1,
                        quantities=lambda x, data: {"sum": x.sum()},
                        **{"search": "auto" in options.values()} | options)
    assert set(found.ranks) == {"mu[0]", "mu[1]", "log_likelihood", "sum"}
    assert found.ok, found
    if "transforms" in options:
        assert (found.parameters[:, 0] < found.parameters[:, 1]).all()


# ---- mistakes are detected ----


@pytest.mark.parametrize(
    ("mistake", "sd", "says"),
    [
        (lambda mu, data: 4 * loglike(mu, data), 1.0, "draws too narrow"),
        (lambda mu, data: 0.2 * loglike(mu, data), 1.0, "log_likelihood above all"),
        (lambda mu, data: loglike(mu - 0.6, data), 1.0, "draws too high"),
        (lambda mu, data: loglike(mu, data) + 0.5 * (mu / 0.4) ** 2, 0.4, "not uniform"),
    ],
    ids=["scale too small", "scale too large", "shifted", "prior forgotten"],
)
def test_wrong_likelihood_is_detected(mistake, sd, says):
    """The prior is that of mu ~ N(0, sd^2)."""
    found = calibration({"mu": stats.norm(0, sd)}, simulate, mistake, n=80, draws=20, seed=2)
    assert found.p_value < RATE, found
    assert not found.ok
    assert says in " ".join(str(found).split())


def test_wrong_sampler_is_detected():
    found = calibration(PRIOR, simulate, loglike, n=80, draws=20, seed=2, sampler=WrongRatio())
    assert found.p_value < RATE, found


def test_a_derived_quantity_shows_what_coordinates_hide():
    """A posterior of some data alone is calibrated; the likelihood of all shows that it is not."""
    def quantities(mu, data):
        return {"likelihood of all": loglike(mu, data)}

    found = calibration(PRIOR, simulate, first_half, n=120, draws=20, seed=4,
                        quantities=quantities)
    assert found.worst == "likelihood of all"
    assert found.deviating == ["likelihood of all"], found


# ---- what else is reported ----


def test_failures_are_counted():
    """Data of one in four raise, in simulate or in loglike."""
    def simulate_some(mu, rng):
        if mu > 1.2:
            raise OverflowError("too large")
        return simulate(mu, rng)

    def loglike_some(mu, data):
        return -np.inf if data.mean() < -1.2 else loglike(mu, data)

    found = calibration(PRIOR, simulate_some, loglike_some, n=40, draws=10, seed=1)
    assert not found.ok
    assert 2 <= len(found.failures) <= 20
    texts = set(found.failures.values())
    assert "OverflowError: too large" in texts
    assert any("simulate and loglike must be of the same model" in text for text in texts)
    assert all(len(ranks) == 40 - len(found.failures) for ranks in found.ranks.values())
    assert f"{len(found.failures)} of 40 fits have failed" in str(found)
    assert found.parameters.shape == (40, 1)


def test_every_fit_fails():
    calls = 0

    def loglike_for_the_check(mu, data):
        nonlocal calls
        calls += 1
        if calls > 400:  # a run of a single draw is made before
            raise ZeroDivisionError("later")
        return loglike(mu, data)

    with pytest.raises(fk.SamplingError, match=r"every fit has failed, the first with .*later"):
        calibration(PRIOR, simulate, loglike_for_the_check, n=20, draws=10, seed=1)


def test_functions_that_always_raise_raise_their_own_exception():
    def wrong(mu, data):
        raise KeyError("column")

    with pytest.raises(KeyError, match="column") as caught:
        calibration(PRIOR, simulate, wrong, n=20)
    assert "with the first data set" in caught.value.__notes__[0]


def test_chains_that_stick_are_counted():
    found = calibration(PRIOR, simulate, loglike, n=20, draws=10, seed=1, tune=0,
                        sampler=fk.RandomWalk(proposal_cov=1e-8))
    assert found.correlated == 20
    assert not found.ok
    assert "In 20 of 20 fits the draws are not nearly independent" in str(found)


def test_a_constant_likelihood_is_named():
    found = calibration(PRIOR, simulate, lambda mu, data: 0.0, n=20, draws=10, seed=1)
    assert found.constant == ["log_likelihood"]
    assert set(found.ranks) == {"mu"}
    assert "The log likelihood does not depend" in str(found)


def test_findings_are_counted():
    fits = [Fit(np.zeros(1), {"mu": i % 11}, {"mu": 0}, {"boundary"} if i < 3 else set(), 100.0)
            for i in range(22)]
    found = fk.testing.Calibration.of(fits, 10, 0.01)
    assert found.found == {"boundary": 3}
    assert found.ok
    assert "boundary in 3" in str(found)


def test_ties_are_broken_at_random():
    """A discrete quantity; with ties counted as above the parameters, ranks would be too low."""
    found = calibration(PRIOR, simulate, loglike, n=60, draws=10, seed=6,
                        quantities=lambda mu, data: {"positive": mu > 0})
    assert found.p_values["positive"] > RATE
    assert found.ranks["positive"].max() > 8


# ---- seeds and executors ----


def test_same_seed_same_ranks():
    run = partial(calibration, PRIOR, simulate, loglike, draws=10)
    short, whole = run(n=20, seed=7), run(n=25, seed=7)
    with ThreadPoolExecutor(2) as executor:
        threads = run(n=25, seed=np.random.SeedSequence(7), executor=executor)
    for name in whole.ranks:
        np.testing.assert_array_equal(short.ranks[name], whole.ranks[name][:20])
        np.testing.assert_array_equal(threads.ranks[name], whole.ranks[name])


class InOneProcess:
    """An executor that sends tasks as other processes would receive them."""

    def submit(self, f, *args):
        future = Future()
        future.set_result(f(*args))
        return future


def test_executor_of_processes():
    run = partial(calibration, PRIOR, simulate, loglike, draws=10, n=20, seed=7)
    sent, whole = run(executor=InOneProcess()), run()
    np.testing.assert_array_equal(sent.ranks["mu"], whole.ranks["mu"])


def test_objects_that_cannot_be_sent_are_refused():
    class Local:
        def __call__(self, mu, data):
            return loglike(mu, data)

        def __reduce__(self):
            raise TypeError("cannot travel")

    with pytest.raises(TypeError, match=r"executor, and it says: .*cannot travel"):
        calibration(PRIOR, simulate, Local(), n=20, executor=InOneProcess())


def test_a_broken_executor_keeps_the_fits():
    class Breaking(InOneProcess):
        tasks = 0

        def submit(self, f, *args):
            self.tasks += 1
            future = Future()
            if self.tasks > 12:
                future.set_exception(BrokenExecutor("a worker died"))
                return future
            return super().submit(f, *args)

    with pytest.warns(fk.SamplingWarning, match=r"broken \(a worker died\) after 12 of"):
        found = calibration(PRIOR, simulate, loglike, n=20, draws=10, seed=1, executor=Breaking())
    assert len(found.ranks["mu"]) == 12


def test_an_interrupt_keeps_the_fits():
    calls = 0

    def simulate_some(mu, rng):
        nonlocal calls
        calls += 1
        if calls == 12:
            raise KeyboardInterrupt
        return simulate(mu, rng)

    with pytest.warns(fk.SamplingWarning, match="interrupted after 10 of 20 fits") as caught:
        found = calibration(PRIOR, simulate_some, loglike, n=20, draws=10, seed=1)
    assert caught[0].filename == __file__
    assert caught[0].message.result is found  # nothing is lost where warnings are errors
    assert len(found.ranks["mu"]) == 10


@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")
def test_an_interrupt_within_a_run_keeps_the_fits():
    calls = 0

    def loglike_some(mu, data):
        nonlocal calls
        calls += 1
        if calls == 3000:
            raise KeyboardInterrupt
        return loglike(mu, data)

    found = calibration(PRIOR, simulate, loglike_some, n=20, draws=10, seed=1)
    assert 1 <= len(found.ranks["mu"]) < 20
    assert not found.failures


def test_quantities_that_depend_on_the_data_are_failures():
    """Some were dropped without a word; others raised KeyError after all fits."""
    for quantities, other in (
            (lambda mu, data: {"low" if data[0] < 0 else "high": mu}, "['high', 'low']"),
            (lambda mu, data: {"all": data[: 2 + (data[0] < 0)]}, "['all[2]']")):
        found = calibration(PRIOR, simulate, loglike, n=20, draws=10, seed=1,
                            quantities=quantities)
        assert 0 < len(found.failures) < 20
        assert all(text.endswith(f"differ from those of the first fit in {other}")
                   for text in found.failures.values())
        assert len(found.ranks["mu"]) == 20 - len(found.failures)


# ---- bad arguments ----


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"n": 5}, ValueError, "n must be at least 20, not 5"),
        ({"draws": 3}, ValueError, "draws must be at least 10, not 3"),
        ({"false_alarm_rate": 1.0}, ValueError, "false_alarm_rate must be below 1"),
        ({"prior": {"mu": None}}, ValueError, r"calibration needs a prior of every parameter"),
        ({"prior": [1]}, TypeError, "prior must be a dict of distributions"),
        ({"simulate": 3}, TypeError, "simulate must be a function, not 3"),
        ({"loglike": None}, TypeError, "loglike must be a function, not None"),
        ({"quantities": "mu"}, TypeError, "quantities must be a function, not 'mu'"),
        ({"quantities": lambda mu, data: 3.0}, TypeError, "quantities must return a dict"),
        ({"quantities": lambda mu, data: {"mu": 1}}, ValueError, "'mu', which is a quantity"),
        ({"quantities": lambda mu, data: {"a": np.nan}}, ValueError, "not NaN for 'a'"),
        ({"quantities": lambda mu, data: {"a": 1j}}, TypeError, "real numbers"),
        ({"prior": {"log_likelihood": stats.norm(0, 1)}}, ValueError, "'log_likelihood', which is"),
        ({"simulate": lambda nu, tau, rng: 0}, TypeError, "has no argument 'mu'"),
        ({"loglike": lambda mu, data, more: 0}, TypeError, "'more', which is no parameter"),
        ({"executor": 0}, ValueError, "executor must be a number of processes from 1 "),
        ({"progress": 1}, TypeError, "progress must be True or False, not 1"),
        ({"args": (1,)}, TypeError, "does not take 'args': give further arguments .* in kwargs"),
        ({"stop": None}, TypeError, "does not take 'stop'"),
        ({"burnin": 3}, TypeError, "has an argument 'burnin': did you mean 'tune'?"),
        ({"sampler": "rwmm"}, ValueError, "rwm"),
        ({"chains": 0}, ValueError, "chains must be at least 1, not 0"),
        ({"seed": "a"}, TypeError, "seed must be"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, dict) else None,
)
def test_bad_arguments(change, error, says):
    given = {"prior": PRIOR, "simulate": simulate, "loglike": loglike, "n": 20} | change
    with pytest.raises(error, match=says):
        calibration(**given)


# ---- figures ----


@pytest.mark.parametrize(("m", "kind"), [(1, "ecdf"), (5, "histogram"), (18, "ecdf")])
def test_figures(m, kind, tmp_path):
    Figure = pytest.importorskip("matplotlib.figure").Figure
    rng = np.random.default_rng(m)
    names = [f"q[{i}]" for i in range(m - 1)] + ["$a\\x"]
    fits = [Fit(np.zeros(1), {name: int(rng.integers(0, 31)) for name in names} | {names[0]: i % 5},
                dict.fromkeys(names, 0), set(), 100.0) for i in range(60)]
    found = fk.testing.Calibration.of(fits, 30, 0.01)
    figure = found.plot(kind)
    figure.savefig(tmp_path / "ranks.png", dpi=40)
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert len(panels) == min(m, 16)
    assert panels[0].get_title().startswith(f"{plain(names[0])}, p = ")
    for width in (2.0, 12.0):
        small = found.plot(kind, names=names[:3], columns=2, width=width)
        assert small.get_size_inches()[0] == width
        small.savefig(tmp_path / "again.png", dpi=40)
    assert found.plot(kind, figsize=(5, 3)).get_size_inches().tolist() == [5, 3]
    figure = Figure()
    into = figure.subplots(1, 2)
    if m > 1:
        assert found.plot(kind, names=names[:2], ax=into) is figure
        assert into[1].get_title().startswith(f"{names[1]}, p = ")
        assert into[0].get_xlabel() == "rank / draws"
        figure.savefig(tmp_path / "into.png", dpi=40)
    with pytest.raises(ValueError, match=f"ax must be {min(m, 16)} axes for this figure"):
        found.plot(kind, ax=figure.subplots(1, 17))
    with pytest.raises(ValueError, match="width excludes ax and figsize"):
        found.plot(kind, width=3, figsize=(5, 3))
    with pytest.raises(TypeError, match="figsize must be"):
        found.plot(kind, figsize=3)


def test_the_curve_leaves_the_band_where_the_table_says_so():
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(1)
    fits = [Fit(np.zeros(1), {"good": int(rng.integers(0, 31)), "bad": int(rng.integers(8, 31))},
                {"good": 0, "bad": 0}, set(), 100.0) for i in range(60)]
    found = fk.testing.Calibration.of(fits, 30, 0.01)
    assert found.deviating == ["bad"]
    for axes, outside in zip(found.plot().axes, (True, False), strict=True):
        curve = axes.lines[-1].get_ydata()
        low, high = band(60, 30, 0.01 / 2)
        z = np.arange(1, 31) / 31
        assert ((curve[1:-1] < low / 60 - z - 1e-12) | (curve[1:-1] > high / 60 - z + 1e-12)
                ).any() == outside


def test_bad_figures():
    pytest.importorskip("matplotlib")
    found = fk.testing.Calibration.of([Fit(np.zeros(1), {"mu": 1}, {"mu": 0})] * 20, 10, 0.01)
    with pytest.raises(ValueError, match="kind must be one of ecdf, histogram, not 'pie'"):
        found.plot("pie")
    with pytest.raises(ValueError, match=r"names has 'mus'.*did you mean 'mu'"):
        found.plot(names=["mus"])
    with pytest.raises(ValueError, match="columns must be at least 1"):
        found.plot(columns=0)
