"""Runs without a number of draws continue until their draws suffice, and no further."""

import math
import warnings

import numpy as np
import pytest
from densities import interrupted_at
from scipy import stats

import fastkam as fk
from fastkam.diagnostics import checks
from fastkam.run import drive
from fastkam.samplers import SAMPLERS
from fastkam.search import walks

SEED = 53  # of a run that must go on
WALKS = walks.walks


@pytest.fixture(scope="module", autouse=True)
def without_slabs():
    """Searches do not follow bent densities to their ends, so that some draws do not suffice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walks, "walks", lambda *_, **_options: [])
        yield


def bent(x):
    """Rosenbrock's function with powers of 1/20, turned by 45 degrees: chains are slow on its arms.
    """
    u, v = x[0] + x[1], x[0] - x[1]
    return -(100 * (v - u * u) ** 2 + (1 - u) ** 2) / 20


def normal(x):
    return -0.5 * float(x @ x)


def quietly(f, x0, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        return fk.sample(f, x0, progress=False, **{"seed": SEED} | options)


@pytest.fixture(scope="module")
def whole():
    return quietly(bent, [0.0, 0.0])


def test_a_run_goes_on_until_its_draws_suffice(whole):
    """The same run with a number of draws ends too soon, and says so."""
    short = quietly(bent, [0.0, 0.0], draws=1000)
    assert [one.kind for one in short.warnings] == ["moments"]
    assert not whole.warnings
    assert whole.draws.shape == short.draws.shape == (4, 1000, 2)
    assert whole.thin > short.thin
    assert whole.thin % short.thin == 0
    steps = [run.thin * (run.state.tune // run.thin + 1 + np.arange(1000))
             for run in (whole, short)]
    _, of_whole, of_short = np.intersect1d(*steps, return_indices=True)
    assert len(of_whole) > 50
    np.testing.assert_array_equal(whole.draws[:, of_whole], short.draws[:, of_short])
    assert whole.evaluations <= drive.BUDGET


def test_a_run_goes_on_until_standard_deviations_are_known():
    """A coordinate with a kurtosis of 8: to 4 %, or nearly as well as from independent draws."""
    steps = []
    for seed in range(8):
        result = quietly(lambda x: -0.5 * x[0] ** 2 - 0.5 * np.exp(-x[0]) * (x[1:] @ x[1:])
                         - 2.5 * x[0], np.zeros(6), seed=seed)
        table, x = result.summary(), result.draws.reshape(4000, 6)
        error = table["mcse_sd"] / table["sd"]
        independent = np.sqrt((stats.kurtosis(x, fisher=False) - 1) / (4 * len(x)))
        assert ((error <= 0.04) | (error <= 1.2 * independent)).all()
        steps.append(result.thin)
    assert max(steps) >= 2 * min(steps)


def test_independent_draws_do_not_go_on():
    """The draws kept of a log-normal density would be worth no more with ten times the steps."""
    result = quietly(lambda x: -0.5 * np.log(x) ** 2 - np.log(x), {"x": 1.0}, seed=0,
                     bounds={"x": (0, None)})
    table = result.summary()
    assert table["mcse_sd"][0] > 0.04 * table["sd"][0]
    assert result.evaluations < 30_000


def test_the_checks_are_made_once(monkeypatch):
    """For each number of steps, and not again for the warning; of the same draws as before."""
    looked_at, findings = [], checks.findings

    def counted(state):
        looked_at.append((state.thin, state.trace.rows))
        return findings(state)

    monkeypatch.setattr(checks, "findings", counted)
    result = quietly(bent, [0.0, 0.0])
    assert len(looked_at) == len(set(looked_at)) > 1
    assert result.warnings == findings(result.state)
    looked_at.clear()
    short = quietly(normal, np.zeros(2), sampler="am", chains=2, budget=3012)
    assert len(looked_at) == len(set(looked_at)) == 2   # first to see whether to warm up for longer
    assert short.warnings == findings(short.state) != []
    assert short.resume(5, progress=False).warnings != short.warnings


def test_findings_that_gradients_change_are_made_again():
    """A run that ends with its budget while the implied moments disagree says so."""
    result = quietly(bent, [0.0, 0.0], budget=40_000)
    assert result.warnings == checks.findings(result.state)


@pytest.mark.parametrize("seed", [2, 4])
def test_findings_by_earlier_gradients_are_dropped(seed):
    """The implied moments disagreed after fewer steps, and agree at the end."""
    result = quietly(lambda a: -0.005 * (a - 1) ** 2, None, prior={"a": stats.cauchy()}, seed=seed)
    assert result.warnings == checks.findings(result.state)


def test_a_large_budget_changes_nothing(whole):
    """Neither the draws nor the moments that gradients imply, for which it leaves enough."""
    result = quietly(bent, [0.0, 0.0], budget=drive.BUDGET)
    np.testing.assert_array_equal(result.draws, whole.draws)
    np.testing.assert_array_equal(result.state.implied, whole.state.implied)
    assert len(result.state.implied)


def test_draws_that_suffice_are_left_alone():
    result = quietly(normal, np.zeros(2))
    assert result.evaluations < 20_000
    np.testing.assert_array_equal(result.draws, quietly(normal, np.zeros(2), draws=1000).draws)


def test_a_named_sampler_goes_on_too():
    """A random walk with far too short steps is extended."""
    walk = fk.RandomWalk(proposal_cov=0.01 * np.eye(2), target_acceptance=None)
    short = quietly(normal, np.zeros(2), sampler=walk, draws=1000)
    result = quietly(normal, np.zeros(2), sampler=walk)
    assert {one.kind for one in short.warnings} & {"ess", "r_hat"}
    assert not {one.kind for one in result.warnings} & {"ess", "r_hat"}
    assert result.thin >= 50


def test_the_budget_ends_a_run():
    """One doubling is within it, the next is not; a small one ends even the first draws."""
    limits = [quietly(bent, [0.0, 0.0], budget=n) for n in (3000, 40_000)]
    for n, result in zip((3000, 40_000), limits, strict=True):
        assert result.evaluations <= n + 4
        assert result.warnings


def flat_along(x):
    return -0.5 * float(x[0] ** 2)


@pytest.mark.parametrize("options", [
    {}, {"vectorized": True}, {"surrogate": "learn"}, {"sampler": "arwm"},
    {"sampler": "mala"}, {"chains": 7, "share": True, "sampler": "ram"}])
@pytest.mark.parametrize("budget", [100, 1000])
@pytest.mark.parametrize("f", [normal, flat_along])
def test_a_budget_is_never_exceeded(f, budget, options):
    """Not by starts, by what is called before the run, nor where no surrogate is found."""
    calls = [0]

    def counted(x):
        calls[0] += 1 if x.ndim == 1 else len(x)
        if x.ndim == 2:
            return np.array([f(one) for one in x])
        return (f(x), -x * [1, f is normal]) if options.get("sampler") == "mala" else f(x)

    result = quietly(counted, [0.5, 0.5], budget=budget, **options)
    assert 0.8 * budget < calls[0] <= budget
    assert result.evaluations <= calls[0]


@pytest.mark.parametrize("name", SAMPLERS)
def test_half_of_a_budget_is_left_for_draws(name):
    """Steps of some samplers have ten evaluations; warm-up used to take all of them."""
    target = fk.targets.Gaussian(np.zeros(3), np.array([1.0, 0.1, 10.0]))
    result = quietly(target, np.ones(3), sampler=name, budget=10_000)
    steps = result.state.tune + result.draws.shape[1]
    assert result.evaluations < 10_050
    assert result.draws.shape[1] > 0.3 * steps > 50


def test_the_default_budget_is_kept(monkeypatch):
    monkeypatch.setattr("fastkam.beginning.BUDGET", 80_000)
    result = quietly(bent, [0.0, 0.0])
    assert result.status == "complete"
    assert result.evaluations <= 80_000
    assert result.warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        more = result.resume(progress=False)
    assert more.evaluations > result.evaluations
    assert more.thin > result.thin


def with_poles(x):
    """Infinite at two edges: steps that find their own length take more and more evaluations."""
    if x.min() <= 0:
        return -np.inf
    return -0.5 * math.log(x[0]) - x[0] - 0.9 * math.log(x[1]) - x[1]


@pytest.mark.parametrize("seed", range(3))
def test_the_default_budget_is_kept_where_steps_become_dearer(seed, monkeypatch):
    monkeypatch.setattr("fastkam.beginning.BUDGET", 150_000)
    calls = [0]

    def counted(x):
        calls[0] += 1
        return with_poles(x)

    result = quietly(counted, [1.0, 1.0], seed=seed)
    assert calls[0] <= 150_000
    assert result.warnings
    before = calls[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        result.resume(progress=False)
    assert before < calls[0] <= 300_000


@pytest.mark.parametrize("share", [0.1, 0.4, 0.7])
def test_an_interrupted_run_goes_on_as_if_it_had_not_been(whole, share):
    until = interrupted_at(bent, whole.evaluations - int(share * whole.state.evaluated))
    with pytest.warns(fk.SamplingWarning, match="interrupted"):
        part = fk.sample(until, [0.0, 0.0], seed=SEED, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = part.resume(progress=False)
    np.testing.assert_array_equal(result.draws, whole.draws)
    assert result.thin == whole.thin
    np.testing.assert_array_equal(result.state.implied, whole.state.implied)


def test_in_a_file_and_in_a_store(whole, tmp_path):
    stored = quietly(bent, [0.0, 0.0], store=tmp_path / "run")
    np.testing.assert_array_equal(stored.draws, whole.draws)
    whole.save(tmp_path / "run.fk")
    again = fk.load(tmp_path / "run.fk")
    assert again.state.budget == drive.BUDGET
    assert again.state.by_gradients
    more = fk.resume(tmp_path / "run.fk", target=bent, progress=False)
    np.testing.assert_array_equal(more.draws, whole.draws)


def test_draws_are_made_until_a_rule_is_met():
    result = quietly(normal, np.zeros(2), stop=fk.stop.ESS(6000))
    assert result.stopped_by == "ESS(size=6000, of='bulk')"
    assert result.summary()["ess_bulk"].min() > 5900
    assert result.draws.shape[1] > 1000


@pytest.mark.parametrize("limit", [fk.stop.Time(1.5), fk.stop.Evaluations(60_000)])
def test_a_rule_with_a_limit_needs_no_budget(limit, monkeypatch):
    monkeypatch.setattr("fastkam.beginning.BUDGET", 20_000)
    result = quietly(normal, np.zeros(2), stop=limit)
    assert result.status == "stopped"
    assert result.evaluations > 30_000


def test_a_warning_names_the_rule_that_was_not_met(monkeypatch):
    monkeypatch.setattr("fastkam.beginning.BUDGET", 50_000)
    with pytest.warns(fk.SamplingWarning, match="stop was not met within .* 50000"):
        result = fk.sample(normal, np.zeros(2), stop=fk.stop.ESS(10**6), seed=1, sampler="am",
                           progress=False)
    assert result.evaluations <= 50_000


def test_a_run_on_an_improper_density_is_not_extended():
    result = quietly(lambda x: -0.5 * float(np.log1p(x @ x)), np.zeros(2))
    assert "improper" in [one.kind for one in result.warnings]
    assert result.thin <= drive.MOST_THINNED


def one_or_pair(f, slope, gradient):
    """f, or the pair of it and its gradient."""
    return (lambda x: (f(x), slope(x))) if gradient else f


NO_LOG_DENSITIES = {
    "constant": (lambda x: -3.0, lambda x: 0 * x),
    "not_a_logarithm": (lambda x: float(np.exp(normal(x))), lambda x: -np.exp(normal(x)) * x),
}


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("x0", [np.ones(1), np.zeros(2)], ids=len)
@pytest.mark.parametrize("kind", NO_LOG_DENSITIES)
def test_what_is_no_log_density_costs_little(kind, x0, gradient):
    f = one_or_pair(*NO_LOG_DENSITIES[kind], gradient)
    result = quietly(f, x0)
    assert [one.kind for one in result.warnings] == [kind]
    assert result.evaluations < 50_000
    assert result.draws.shape == (4, 1000, len(x0))


def test_a_constant_likelihood_leaves_the_prior():
    result = quietly(lambda a: 0.0, None, prior={"a": stats.norm(3, 2)})
    assert result.warnings == []
    assert result["a"].std() == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize(("name", "value"), [("draws", 100), ("thin", 2)])
def test_a_budget_does_not_go_with_a_number_of_draws(name, value):
    with pytest.raises(ValueError, match=f"budget must not be given with {name}"):
        fk.sample(normal, np.zeros(2), budget=1000, **{name: value})


def test_a_budget_of_numpy():
    result = quietly(normal, np.zeros(2), budget=np.int64(300))
    assert result.stopped_by == quietly(normal, np.zeros(2), budget=300).stopped_by


@pytest.mark.parametrize("stop", [None, fk.stop.ESS(10**6)], ids=["no rule", "a rule"])
def test_every_call_that_continues_a_run_has_its_budget_once_more(stop, tmp_path):
    """The budgets of all calls before it used to be added to that of a call, or were forgotten."""
    options = {"diagnose": False, "stop": stop}
    result = quietly(normal, np.zeros(2), sampler="ram", budget=1000, **options)
    for _ in range(3):
        before = result.evaluations
        result.save(tmp_path / "run.fk")
        result = result.resume(progress=False, **options)
        assert 900 < result.evaluations - before <= 1000
        assert result.stopped_by == "budget=1000"
        other = fk.resume(tmp_path / "run.fk", target=normal, progress=False, **options)
        assert other.evaluations == result.evaluations


@pytest.mark.parametrize("stop", [None, fk.stop.ESS(10**6)], ids=["no rule", "a rule"])
@pytest.mark.parametrize("at", [500, 700, 950])
def test_an_interrupted_call_continues_with_the_rest_of_its_budget(stop, at):
    options = {"sampler": "ram", "budget": 1000, "stop": stop, "diagnose": False}
    whole = quietly(normal, np.zeros(2), **options)
    part = quietly(interrupted_at(normal, at), np.zeros(2), **options)
    assert part.status == "interrupted"
    again = part.resume(stop=stop, diagnose=False, progress=False)
    assert again.stopped_by == whole.stopped_by == "budget=1000"
    np.testing.assert_array_equal(again.draws, whole.draws)


def test_the_budget_of_a_run_is_not_that_of_its_further_draws(tmp_path):
    result = quietly(normal, np.zeros(2), sampler="ram", budget=300, diagnose=False)
    longer = result.resume(1000, diagnose=False, progress=False)
    assert longer.status == "complete"
    rule = fk.stop.Evaluations(2000)
    last = longer.resume(stop=rule, diagnose=False, progress=False)
    assert last.stopped_by == repr(rule)


def test_the_rule_of_a_budget_names_what_was_given():
    for budget in (5, 300):
        assert quietly(normal, np.zeros(2), budget=budget).stopped_by == f"budget={budget}"


def test_a_bad_budget():
    for bad, problem in ((0, ValueError), (1e5, TypeError)):
        with pytest.raises(problem, match="budget"):
            fk.sample(normal, np.zeros(2), budget=bad)


# ---- gradients of the density ----


def test_own_gradients_show_a_neck_without_draws(monkeypatch):
    """The centered eight schools: chains agree, and have hardly been where tau is small.

    That is where the search does not follow the density into the neck; where it does, they have.
    """
    y = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    errors = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])

    def schools(x):
        mu, log_tau, theta = x[0], x[1], x[2:]
        with np.errstate(all="ignore"):  # of proposals far in the neck
            precision, r, off = np.exp(-2 * log_tau), (y - theta) / errors, theta - mu
            u, squares = log_tau - np.log(5), precision * (off @ off)
            prior = u - np.logaddexp(0, 2 * u) - 0.5 * (mu / 5) ** 2
            value = prior - 0.5 * (r @ r + squares) - 8 * log_tau
            return value, np.concatenate([
                [precision * off.sum() - mu / 25, -np.tanh(u) + squares - 8],
                r / errors - precision * off])

    result = quietly(schools, np.zeros(10), draws=1000, seed=100)
    table = result.summary()
    assert table["r_hat"].max() < 1.01
    assert table["ess_bulk"].min() > 400
    assert abs(table["mean"][1] - 0.80) > 0.2 * 1.17
    assert "moments" in [one.kind for one in result.warnings]
    monkeypatch.setattr(walks, "walks", WALKS)
    table = quietly(schools, np.zeros(10), draws=1000, seed=100).summary()
    assert abs(table["mean"][1] - 0.80) < 0.1 * 1.17


@pytest.mark.parametrize("options", [
    {"budget": 3000}, {"stop": fk.stop.Evaluations(3000)}, {"stop": fk.stop.Evaluations(3000),
                                                            "draws": 500}])
@pytest.mark.parametrize("sampler", ["ram", "am", "auto"])
def test_warm_up_takes_at_most_half_of_a_limit(sampler, options):
    result = quietly(normal, np.zeros(2), sampler=sampler, **options)
    assert 4 * result.tune <= 1500
    assert result.trace.counts.min() > 100


def test_draws_until_a_rule_is_met_do_not_fill_the_memory(monkeypatch, tmp_path):
    """They are doubled in number up to a size, and then every second one is kept."""
    monkeypatch.setattr(drive, "MOST_BYTES", 2_000_000)
    options = {"sampler": "rwm", "search": False, "seed": 1, "progress": False,
               "stop": fk.stop.Evaluations(150_000)}
    def f(x):
        return -0.5 * x @ x, {"curve": np.full(20, x[0])}

    kept = fk.sample(f, np.zeros(2), **options)
    assert kept.thin >= 4
    assert 500_000 < drive.size_of(kept.state.trace) <= 2_000_000
    assert kept.extras["curve"].nbytes <= 2_000_000
    stored = fk.sample(f, np.zeros(2), store=tmp_path / "run", **options)
    kept_at, stored_at = ((one.tune // one.thin + 1 + np.arange(one.draws.shape[1])) * one.thin
                          for one in (kept, stored))
    np.testing.assert_array_equal(kept.draws, stored.draws[:, np.isin(stored_at, kept_at)])
