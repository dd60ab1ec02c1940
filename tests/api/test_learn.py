"""surrogate="learn": calls, budgets, weights and what becomes of them, supports, fallbacks."""

import numpy as np
import pytest
from learning import QUIET, Bent
from scipy.stats import chi2, halfcauchy, norm

import fastkam as fk
from fastkam import beginning
from fastkam.errors import SamplingWarning
from fastkam.samplers.importance import ImportanceWeighted


@pytest.fixture(scope="module")
def run():
    f = Bent()
    result = fk.sample(f, np.ones(3), surrogate="learn", budget=700, seed=1, **QUIET)
    return f, result


def test_every_call_is_counted_and_kept(run):
    f, result = run
    assert f.n == result.evaluations == len(result.state.calls) <= 700
    again = Bent()
    for row in result.state.calls:
        assert row[-1] == again(row[:-1])


def test_same_seed_gives_the_same_draws(run):
    again = fk.sample(Bent(), np.ones(3), surrogate="learn", budget=700, seed=1, **QUIET)
    np.testing.assert_array_equal(again.draws, run[1].draws)
    np.testing.assert_array_equal(again.weights, run[1].weights)


def test_weights_are_those_of_the_density_over_the_surrogate(run):
    f, result = run
    assert isinstance(result.sampler, ImportanceWeighted)
    assert result.weights.shape == result.draws.shape[:2]
    assert result.weights.mean() == pytest.approx(1)
    lp = [[f(x) for x in chain] for chain in result.draws]
    np.testing.assert_array_equal(result.stats["lp"], lp)


def test_moments_are_within_their_errors(run):
    table = run[1].summary()
    truth = np.array([0, 0.5, 0.5])
    assert (np.abs(table["mean"] - truth) < 4 * table["mcse_mean"]).all()
    sd = np.sqrt([1, 1.5, 2.5])
    assert (np.abs(table["sd"] - sd) < 4 * table["mcse_sd"]).all()
    assert (table["ess_bulk"] > 100).all()


def test_a_summary_has_the_verdict(run):
    """Below the table, as that of draws without weights has; and a note on the weights."""
    result = run[1]
    assert result.summary().verdict == result.verdict().heading
    for names in (None, "x[1]"):
        *reasons, last = result.summary(names).notes
        assert reasons == [one.text for one in result.verdict().reasons]
        assert last.startswith("The draws have weights, which this table takes into account")
    assert repr(result).startswith("<Result of ImportanceWeighted: 4 chains, ")
    assert " weighted draws, 3 dimensions" in repr(result)
    even = result.resample()
    assert "weight" not in repr(even).partition(":")[2]
    assert not any("have weights" in note for note in even.summary().notes)


def test_a_file_has_the_weights_and_the_calls(run, tmp_path):
    run[1].save(tmp_path / "run.fk")
    read = fk.load(tmp_path / "run.fk")
    np.testing.assert_array_equal(read.weights, run[1].weights)
    np.testing.assert_array_equal(read.state.calls, run[1].state.calls)
    assert str(read.summary()) == str(run[1].summary())
    assert read.evaluations == run[1].evaluations


def test_resampled_draws_have_equal_weights(run):
    result = run[1]
    even = result.resample()
    assert (even.weights == 1).all()
    assert even.weights.shape == even.draws.shape[:2]
    assert even.draws.shape == result.draws.shape
    table, weighted = even.summary(), result.summary()
    error = weighted["sd"] / np.sqrt(even.draws[..., 0].size)  # of resampling
    assert (np.abs(table["mean"] - weighted["mean"]) < 3 * error).all()
    assert result.resample(7, seed=3).draws.shape == (4, 7, 3)
    np.testing.assert_array_equal(result.resample().draws, even.draws)
    with pytest.raises(ValueError, match="draws must be at most"):
        result.resample(10_000)
    assert even.resample() is even
    np.testing.assert_array_equal(even.resample(7).draws[:, -1], even.draws[:, -1])
    assert even.resample(7).summary()["mean"].shape == (3,)


def test_other_forms_are_resampled(run):
    result = run[1]
    even = result.resample()
    np.testing.assert_array_equal(result.to_numpy(), even.draws)
    pytest.importorskip("xarray")
    tree = result.to_datatree()
    np.testing.assert_array_equal(tree["posterior"]["x"].values, even.draws)
    pytest.importorskip("pandas")
    assert len(result.to_pandas()) == even.draws.shape[0] * even.draws.shape[1]


def test_operations_that_weighted_draws_refuse(run):
    result = run[1]
    with pytest.raises(ValueError, match=r'^method must be "weights" for weighted draws'):
        result.log_evidence(method="bridge")
    with pytest.raises(ValueError, match=r"^evaluations must be 0 or None for weighted draws"):
        result.log_evidence(evaluations=100)
    with pytest.raises(ValueError, match=r"^result must be the one with weights"):
        result.resample().log_evidence()
    with pytest.raises(ValueError, match=r"^result must be the one with weights"):
        result.resample().log_evidence(evaluations=0, target=Bent())
    with pytest.raises(ValueError, match='surrogate="learn", which cannot be resumed'):
        result.resume(10)
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match=r"plot result\.resample\(\)"):
        fk.plots.plot_trace(result)


def test_evidence_of_weighted_draws(run, tmp_path):
    """The integral of the density, without further calls; the same from a file."""
    f, result = run
    before = f.n
    found = result.log_evidence()
    assert f.n == before
    assert abs(found.value - 1.5 * np.log(2 * np.pi)) < 4 * found.error < 0.2
    assert found.method == "importance weights of the surrogate"
    assert result.log_evidence(method="weights", evaluations=0) == found
    result.save(tmp_path / "run.fk")
    assert fk.load(tmp_path / "run.fk").log_evidence() == found


def test_a_surrogate_whose_integral_is_not_found_has_no_evidence(monkeypatch):
    """The message says what is the matter and what to do."""
    monkeypatch.setattr("fastkam.surrogate.drawing.log_integral", lambda *_: (0.0, np.inf))
    result = fk.sample(lambda x: -0.5 * float(x @ x), np.ones(2), surrogate="learn", budget=300,
                       seed=1, **QUIET)
    with pytest.raises(ValueError, match=r"^result must have .* could not be found: .* larger "
                                         r'budget=, or without surrogate=, .* "jumps" or "pt"$'):
        result.log_evidence()


def test_the_integral_of_a_surrogate_is_not_that_of_the_one_before(monkeypatch):
    """The first one is normalized and then refitted, and the integral of the second is not found.
    """
    integrals, tried = [(0.0, 0.01), (0.0, np.inf)], [False, True]
    monkeypatch.setattr("fastkam.surrogate.drawing.log_integral", lambda *_: integrals.pop(0))
    monkeypatch.setattr("fastkam.surrogate.drawing.Drawing.tried", lambda _: tried.pop(0))
    result = fk.sample(lambda x: -0.5 * float(x @ x), np.ones(2), surrogate="learn", budget=1500,
                       seed=1, draws=100, **QUIET)
    assert not integrals
    with pytest.raises(ValueError, match="could not be found"):
        result.log_evidence()


def test_errors_of_the_evidence_of_weighted_draws():
    """20 runs of a normal density, whose mean square of z is below 2.9 but for 1e-4, with a slack
    of 1.2 for what the estimated errors vary.
    """
    z = []
    for seed in range(20):
        found = fk.sample(lambda x: -0.5 * float(x @ x), np.ones(2), surrogate="learn", budget=300,
                          seed=seed, **QUIET).log_evidence()
        z.append((found.value - np.log(2 * np.pi)) / found.error)
    assert np.mean(np.square(z)) < 1.2 * chi2.isf(1e-4, 20) / 20, z


def test_several_steps_give_draws_without_weights():
    f = Bent()
    result = fk.sample(f, np.ones(3), surrogate="learn", surrogate_steps=30, budget=800, seed=2,
                       **QUIET)
    assert result.log_weights is None
    assert f.n <= 800
    assert result.sampler.steps == 30
    assert (result.acceptance > 0.5).all()
    table = result.summary()
    assert (np.abs(table["mean"] - [0, 0.5, 0.5]) < 5 * table["mcse_mean"]).all()


def test_a_surrogate_of_the_user_with_several_steps():
    def rough(x):
        return -0.4 * float((x - 0.2) @ (x - 0.2))

    calls = [0]

    def costly(x):
        calls[0] += 1
        return -0.5 * float(x @ x)

    result = fk.sample(costly, np.zeros(2), sampler="rwm", surrogate=rough, surrogate_steps=20,
                       draws=400, tune=100, seed=1, **QUIET)
    table = result.summary()
    assert (table["ess_bulk"] > 700).all()  # of 1600 draws; one step gives fewer than 250
    assert (np.abs(table["mean"]) < 4 * table["mcse_mean"]).all()
    whole = fk.sample(costly, np.zeros(2), sampler="rwm", surrogate=rough, surrogate_steps=3,
                      draws=60, tune=30, seed=2, **QUIET)
    part = fk.sample(costly, np.zeros(2), sampler="rwm", surrogate=rough, surrogate_steps=3,
                     draws=23, tune=30, seed=2, **QUIET).resume(37)
    np.testing.assert_array_equal(part.draws, whole.draws)


def test_walls_and_failing_points():
    def half(x):
        if x[0] + x[1] > 4:
            return np.nan
        return -float(x.sum()) if (x > 0).all() else -np.inf

    result = fk.sample(half, [0.5, 1.0, 1.0], surrogate="learn", budget=900, seed=1, **QUIET)
    assert result.log_weights is not None
    table = result.summary()
    assert abs(table["mean"][2] - 1) < 4 * table["mcse_mean"][2]
    assert (result.weights > 0).mean() > 0.6


@pytest.mark.parametrize(("f", "d", "heavy"), [
    (lambda x: -2 * float(np.log1p(x * x / 3).sum()), 3, True),  # Student, 3 degrees of freedom
    (lambda x: -1.75 * float(np.log1p(x[0] * x[0] / 2.5)), 1, True),
    (lambda x: -0.5 * float(x @ x), 3, False), (lambda x: -float(np.abs(x).sum()), 2, False)])
def test_tails_without_a_standard_error_are_found(f, d, heavy):
    """The largest of the draws have much of the standard deviation, and its error is too small."""
    calls = []

    def counted(x):
        calls.append(1)
        return f(x)

    result = fk.sample(counted, np.full(d, 0.3), surrogate="learn", seed=1, **QUIET)
    assert ("tails" in [one.kind for one in result.warnings]) == heavy
    assert len(calls) == result.evaluations <= 2000
    assert result.verdict().status == ("doubtful" if heavy else "ok")


@pytest.mark.parametrize("seed", range(5))
def test_a_standard_deviation_that_few_draws_determine_is_reported(seed):
    """P(tau > t) falls off as t^-2 here, in a coordinate that is sampled by its logarithm.

    The standard deviation of mu, most often known to 3 %, is reported after it where it is not
    known to 10 %.
    """
    result = fk.sample(lambda mu, tau: norm.logpdf(5.0, mu, np.hypot(1, tau)),
                       prior={"mu": norm(0, 20), "tau": halfcauchy(scale=2)},
                       surrogate="learn", budget=1500, seed=seed, **QUIET)
    table = result.summary()
    mu, tau = table["mcse_sd"] / table["sd"]
    assert tau > mu
    said = {one.kind: one for one in result.warnings}
    assert said["tails"].coordinates == ("tau",)
    assert "R^-2." in said["tails"].text
    assert ("mcse_sd" in said) == (mu > 0.1)
    assert mu < 0.1 or said["mcse_sd"].coordinates == ("mu",)


def test_priors_and_bounds():
    from scipy import stats

    result = fk.sample(lambda a, b: -0.5 * (a - 1) ** 2 / 0.25,
                       prior={"a": stats.norm(0, 2), "b": stats.uniform(0, 1)},
                       surrogate="learn", budget=500, seed=1, **QUIET)
    assert result["a"].shape == result.weights.shape
    assert ((result["b"] > 0) & (result["b"] < 1)).all()
    table = result.summary()
    truth = np.array([1 / 0.25 / (1 / 0.25 + 1 / 4), 0.5])
    assert (np.abs(table["mean"] - truth) < 4 * table["mcse_mean"]).all()


def test_a_surrogate_that_does_not_pay_is_given_up(monkeypatch):
    monkeypatch.setattr(beginning, "BUDGET_OF_LEARNING", 600)

    def rugged(x):
        return -0.5 * float(x @ x) + 4 * float(np.sin(40 * x).sum())

    with pytest.warns(SamplingWarning, match="the run continues without one"):
        result = fk.sample(rugged, np.zeros(3), surrogate="learn", draws=50, seed=1, **QUIET)
    assert result.log_weights is None
    assert any("does not pay" in line or "no surrogate" in line for line in result.search)
    assert 0 < len(result.state.calls) <= 600
    assert result.evaluations > len(result.state.calls)


def test_a_surrogate_that_leaves_out_a_part_is_given_up(monkeypatch):
    """The run goes on without it where there is no budget; otherwise the result says so."""
    from fastkam.surrogate import drawing

    def normal(x):
        return -0.5 * float(x @ x)

    monkeypatch.setattr(drawing, "outside", lambda *args: 3)
    options = {"surrogate": "learn", "seed": 1, "draws": 50} | QUIET
    with pytest.warns(SamplingWarning, match="it leaves out a part of the distribution"):
        result = fk.sample(normal, np.zeros(2), **options)
    assert result.log_weights is None
    result = fk.sample(normal, np.zeros(2), budget=400, **options)
    assert result.log_weights is not None
    assert "far too low at 3 points with a high density" in str(result.warnings[0])


@pytest.mark.filterwarnings("ignore:surrogate does not pay")
def test_draws_far_from_the_best_call_are_wrong():
    """The surrogate of a thin bend is high where no call has been made."""
    def bent(x):
        a, b, c = x
        squares = a**2 / 4, ((b - 0.8 * a**2) / 0.25) ** 2, ((c - 0.5 * b - 0.3 * a) / 0.4) ** 2
        return -0.5 * sum(squares)

    far = heavy = 0
    for seed in range(6):
        result = fk.sample(bent, np.ones(3), surrogate="learn", budget=800, seed=seed,
                           diagnose=False, progress=False)
        if result.log_weights is None:
            continue
        text, best = " ".join(str(result.verdict()).split()), result.state.calls[:, -1].max()
        if max(bent(x) for x in result.draws.reshape(-1, 3)) < best - 50:
            assert "Verdict: wrong" in text
            assert "the draws are far from the mass" in text
            far += 1
        if result.weights.max() > 0.5 * result.weights.sum():
            assert "Verdict: wrong" in text
            assert "of the sum of the weights" in text
            heavy += 1
    assert min(far, heavy) > 0


def test_many_points_in_a_call_give_the_same_draws():
    options = {"surrogate": "learn", "budget": 250, "seed": 1} | QUIET

    def logp(x, y):     # products: a square of an array may differ from that of a number
        return -0.5 * (x * x + y * y)

    alone = fk.sample(lambda x: logp(x[0], x[1]), np.ones(2), **options)
    many = fk.sample(lambda X: logp(X[:, 0], X[:, 1]), np.ones(2), vectorized=True, **options)
    np.testing.assert_array_equal(many.draws, alone.draws)
    np.testing.assert_array_equal(many.weights, alone.weights)


@pytest.mark.parametrize("budget", [300, 600])
def test_failing_points_count_as_often_as_they_are_called(tmp_path, budget):
    """And those of a file as often as they were, so that the run is the same."""
    f, path = Bent(), tmp_path / "calls.fk"
    failed = []

    def fails(x):
        value = f(x)
        if x[2] > 1.5:
            failed.append(tuple(x))
            raise RuntimeError("no convergence")
        return value

    options = {"surrogate": "learn", "budget": budget, "seed": 1, "on_error": "reject",
               "evaluations": path} | QUIET
    result = fk.sample(fails, np.ones(3), **options)
    assert f.n <= result.evaluations <= budget  # some points are asked for twice
    assert len(failed) == 2 * len(set(failed)) == result.workers.n_failures > 0
    assert len(result.state.calls) == result.evaluations - len(set(failed))
    again = fk.sample(fails, np.ones(3), **options)
    assert again.evaluations == result.evaluations
    np.testing.assert_array_equal(again.draws, result.draws)
    np.testing.assert_array_equal(again.weights, result.weights)


def test_starts_from_a_prior_count_towards_the_budget():
    calls = [0]

    def loglike(a):
        calls[0] += 1
        return -0.5 * ((a - 1) / 0.2) ** 2

    result = fk.sample(loglike, prior={"a": norm(0, 3)}, surrogate="learn", budget=400, seed=4,
                       draws=10_000, **QUIET)
    assert result.log_weights is not None
    assert result.evaluations <= calls[0] <= 400


def test_extras_are_recorded_without_further_calls():
    calls = [0]

    def with_extras(x):
        calls[0] += 1
        return -0.5 * float(x @ x), {"square": x[0] * x[0], "all": x.copy()}

    result = fk.sample(with_extras, np.ones(2), surrogate="learn", budget=250, seed=1, **QUIET)
    first = result.draws[..., 0]
    np.testing.assert_array_equal(result.extras["square"], first * first)
    np.testing.assert_array_equal(result.extras["all"], result.draws)
    assert calls[0] == result.evaluations <= 250
    even = result.resample()
    np.testing.assert_array_equal(even.extras["all"], even.draws)


def test_derived_quantities_are_recorded():
    from scipy import stats

    result = fk.sample(lambda a, b: (-0.5 * (a - 1) ** 2, {"twice": 2 * a}),
                       prior={"a": stats.norm(0, 2), "b": stats.uniform(0, 1)},
                       derived=lambda a, b: {"sum": a + b},
                       surrogate="learn", budget=500, seed=1, **QUIET)
    np.testing.assert_allclose(result.extras["sum"], result["a"] + result["b"], rtol=1e-12)
    np.testing.assert_allclose(result.extras["twice"], 2 * result["a"], rtol=1e-12)


def test_rules_of_weighted_draws(run):
    from fastkam.surrogate.stopping import WeightedRun, reason

    result = run[1]
    seen = WeightedRun(result.state, result.log_weights, 700, 3.0)
    table = result.summary()
    error = float(table["mcse_mean"][1])
    ess = float(np.minimum(table["ess_bulk"], table["ess_tail"]).min())
    stop = fk.stop
    for rule, met in [
            (stop.MCSE({"x[1]": 1.01 * error}), True), (stop.MCSE({"x[1]": 0.99 * error}), False),
            (stop.MCSE({"x": 2.0}), True), (stop.ESS(0.99 * ess, of="both"), True),
            (stop.ESS(1.01 * ess, of="both"), False), (stop.Rhat(10.0), True),
            (stop.Rhat(1.0 + 1e-12), False), (stop.Evaluations(700), True),
            (stop.Evaluations(701), False), (stop.Time(3), True), (stop.Time(4), False),
            (stop.Time(4) | stop.ESS(1), True), (stop.Time(4) & stop.ESS(1), False)]:
        assert (reason(rule, seen) is not None) is met, rule
    assert repr(reason(stop.Time(4) | stop.ESS(1), seen)) == repr(stop.ESS(1))
    assert reason(None, seen) is None


@pytest.mark.parametrize(("options", "says"), [
    ({"surrogate": "learned"}, "did you mean 'learn'"),
    ({"thin": 3}, 'thin must be None with surrogate="learn", not 3'),
    ({"sampler": "ram"}, "sampler must be 'auto'"),
    ({"share": True}, "share must be False"),
    ({"keep_stats": False}, "keep_stats must be True"),
    ({"checkpoint": "x.fk"}, 'checkpoint must be None.*evaluations="calls.fk" keeps every call'),
    ({"store": "x"}, "store must be None"),
    ({"budget": 3}, "budget must be at least 50, not 3"),
    ({"surrogate": None, "draws": 9, "budget": 300}, "budget must not be given with draws"),
    ({"surrogate": None, "surrogate_steps": 3}, "surrogate_steps must not be given without"),
    ({"surrogate_steps": 0}, "surrogate_steps must be at least 1, not 0"),
])
def test_bad_arguments(options, says):
    with pytest.raises(ValueError, match=says):
        fk.sample(lambda x: -x @ x, [0.0, 0.0], **{"surrogate": "learn"} | options)


def test_estimates_are_refused():
    noisy = fk.Target.from_estimator(lambda x, rng: -x @ x + rng.standard_normal(), 2)
    with pytest.raises(ValueError, match="takes a known density, and target is an estimate"):
        fk.sample(noisy, [0.0, 0.0], surrogate="learn")
