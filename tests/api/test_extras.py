"""Extras are those of the draws with which they are recorded, for every sampler and form of run."""

from collections import OrderedDict, defaultdict
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import problems
import pytest
from problems import check_extras, problem
from runs import sample
from scipy import stats

import fastkam as fk
from fastkam.run.drive import thinned
from fastkam.run.records import noted
from fastkam.samplers import SAMPLERS

SMALL = {"kam": {"subsample": 10}, "kpca": {"subsample": 10}, "dm": {"bank_size": 20},
         "ckam": {"cycle": 20, "subsample": 8}}


def run(what, **options):
    return sample(what, **{"draws": 60, "tune": 40, "chains": 2, "seed": 5,
                           "progress": False, "check_gradient": False} | options)


@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")
@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler(name):
    sampler = SAMPLERS[name](**SMALL.get(name, {}))
    result = run(problem(problems.with_gradient), sampler=sampler, draws=150)
    check_extras(result)
    assert len(np.unique(result["mu"])) > 5


@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")
@pytest.mark.parametrize("name", ["ram", "pt", "scout", "jumps", "kam", "rwm"])
@pytest.mark.parametrize("n_aux", [3, None])
def test_estimates(name, n_aux):
    """The extra "noise" is that of the estimate which the chain has kept, as logp shows."""
    def f(x, u):
        return problems.estimate(x, u if n_aux else u.standard_normal(3))

    target = fk.Target.from_estimator(f, 5, n_aux)
    result = run(problem(target), sampler=SAMPLERS[name](**SMALL.get(name, {})), draws=100)
    check_extras(result, ("sum", "reversed", "big", "n", "noise"))
    exact = problem(lambda x: problems.with_gradient(x)[0])
    logp = exact.logp(result.trace.draws.reshape(-1, 4)).reshape(2, -1)
    np.testing.assert_allclose(logp + result.extras["noise"] - 0.015, result.stats["lp"],
                               atol=1e-10)


def test_estimates_at_one_point():
    """The noise of the chain changes although its proposals are the same numbers as its state."""
    target = fk.Target.from_estimator(lambda x, u: (0.1 * u[0], {"noise": u[0]}), 1, 1)
    with pytest.warns(fk.SamplingWarning, match="No chain ever moved"):
        result = run(target, x0=np.ones(1), sampler=fk.RandomWalk(proposal_cov=1e-300),
                     search=False)
    np.testing.assert_array_equal(result.draws, 1)
    np.testing.assert_array_equal(0.1 * result.extras["noise"], result.stats["lp"])
    assert len(np.unique(result.extras["noise"])) > 50


@pytest.mark.parametrize("name", ["ram", "pt", "jumps", "hmc"])
def test_vectorized(name):
    if name == "hmc":
        def f(X):
            values, gradients, extras = zip(*map(problems.with_gradient, X), strict=True)
            return np.array(values), np.array(gradients), {
                key: np.array([some[key] for some in extras]) for key in extras[0]}
        result = run(fk.Problem(f, problems.PRIOR, vectorized=True, derived=problems.cv), chains=3,
                     sampler=name)
    else:
        result = run(problem(problems.rows, vectorized=True), chains=3, sampler=name)
    check_extras(result)


def test_vectorized_estimates():
    def f(X, U):
        values, extras = zip(*map(problems.estimate, X, U), strict=True)
        return np.array(values), {key: np.array([some[key] for some in extras])
                                  for key in extras[0]}

    target = fk.Target.from_estimator(f, 5, 3, vectorized=True)
    result = run(fk.Problem(target, problems.PRIOR, derived=lambda mu, sigma, w: {
        "cv": sigma / mu, "pair": np.array([mu, sigma])}))
    check_extras(result, ("sum", "reversed", "big", "n", "noise"))


def test_thinned_shared_and_in_threads():
    check_extras(run(problem(), thin=7))
    check_extras(run(problem(), share=True))
    check_extras(run(problem(), threads=2))


def test_without_statistics_and_with_a_surrogate():
    check_extras(run(problem(), keep_stats=False))
    check_extras(run(problem(), surrogate=lambda x: -0.5 * (x[0] - 4.4) ** 2))


def test_a_bare_density():
    result = run(lambda x: (-0.5 * x @ x, {"twice": 2 * x}), x0=np.zeros(2))
    np.testing.assert_array_equal(result.extras["twice"], 2 * result.draws)
    assert run(lambda x: -0.5 * x @ x, x0=np.zeros(2)).extras == {}


def test_a_reused_buffer():
    buffer = np.zeros(2)

    def f(x):
        buffer[:] = x
        return -0.5 * x @ x, {"y": buffer}

    result = run(f, x0=np.zeros(2), sampler="rwm")
    np.testing.assert_array_equal(result.extras["y"], result.draws)


def test_other_kinds_of_dict():
    """The first evaluation finds the names; later ones have a shorter way."""
    def f(x):
        extras = OrderedDict(y=x, low=bool(x[0] < 0))
        return -0.5 * x @ x, extras if x[1] > 0 else defaultdict(int, extras)

    result = run(f, x0=np.zeros(2), sampler="rwm", derived=lambda x: OrderedDict(z=2 * x))
    np.testing.assert_array_equal(result.extras["y"], result.draws)
    np.testing.assert_array_equal(result.extras["low"], result.draws[..., 0] < 0)
    np.testing.assert_array_equal(result.extras["z"], 2 * result.draws)


def test_more_points_than_the_extras_keep(monkeypatch):
    """Extras that are no longer stored are evaluated again."""
    from fastkam._core.density import kept

    monkeypatch.setattr(kept, "KEPT_BYTES", 0)
    check_extras(run(problem(problems.with_gradient), sampler="nuts"))
    check_extras(run(problem(), sampler="pt"))


@pytest.mark.parametrize("vectorized", [False, True])
def test_resumed_bit_for_bit(vectorized, tmp_path):
    what = problem(problems.rows if vectorized else problems.loglike, vectorized=vectorized)
    whole = run(what, draws=80)
    first = run(what, draws=30)
    first.save(tmp_path / "run.fk")
    for again in (first.resume(50), fk.resume(tmp_path / "run.fk", 50, target=what)):
        np.testing.assert_array_equal(again.draws, whole.draws)
        check_extras(again)
    loaded = fk.load(tmp_path / "run.fk")
    check_extras(loaded)
    np.testing.assert_array_equal(loaded.draws, first.draws)
    assert loaded.names == ["mu", "sigma", "w"]


def test_in_checkpoints(tmp_path):
    path = tmp_path / "run.fk"
    check_extras(run(problem(), checkpoint=path, checkpoint_interval=0.0))
    check_extras(fk.load(path))


@pytest.mark.parametrize("stop", [None, fk.stop.ESS(1e9)])
def test_executors(stop):
    whole = run(problem(), draws=120)
    with ThreadPoolExecutor(2) as pool:
        check_extras(run(problem(), executor=pool, draws=120, stop=stop))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        result = run(problem(), executor=pool, draws=120, stop=stop)
    check_extras(result)
    np.testing.assert_array_equal(result.draws, whole.draws)


def test_after_a_fault():
    """The draws made until then have their extras; those of the rest come with the resumed run."""
    calls = []

    def f(mu, sigma, w):
        calls.append(1)
        if len(calls) == 80:
            raise ArithmeticError("no")
        return problems.loglike(mu, sigma, w)

    with pytest.raises(fk.SamplingError, match="no") as caught:
        run(problem(f), chains=1)
    check_extras(caught.value.result)
    check_extras(caught.value.result.resume(target=problem()))


def test_a_derived_quantity_that_fails():
    def fragile(mu, sigma, w):
        raise ArithmeticError("not that")

    with pytest.raises(fk.SamplingError, match="ArithmeticError: not that") as caught:
        run(fk.Problem(problems.loglike, problems.PRIOR, derived=fragile))
    check_extras(caught.value.result.resume(target=problem()))
    with ThreadPoolExecutor(2) as pool:
        check_extras(caught.value.result.resume(target=problem(), executor=pool))


@pytest.mark.parametrize(("answer", "says"), [
    (lambda x: (0.0, "text"), "of 2 numbers, or extras in a dict, not 'text'"),
    (lambda x: (0.0, 3.0), "of 2 numbers, or extras in a dict, not 3.0"),
    (lambda x: (0.0, x, x), "must be one real number.*tuple"),
    (lambda x: (0.0, x, {}, {}), "must be one real number.*tuple"),
    (lambda x: (0.0, {"a": "text"}), "extras must be numbers or arrays.*'a'"),
    (lambda x: (0.0, {"a": [1, [2]]}), r"extras must be numbers or arrays.*'a': \[1, \[2\]\]"),
    (lambda x: (0.0, {"a": 1j}), "extras must be numbers or arrays.*'a'"),
    (lambda x: (0.0, {1: 1.0}), "extras must be numbers or arrays.*1"),
    (lambda x: (0.0, {"a": x[: 1 + (x[0] > 0)]}), "extras must be alike at every point: 'a'"),
    (lambda x: (0.0, {"a": 1.0} if x[0] > 0 else {"b": 1.0}), "extras must have the same names")])
def test_extras_that_are_refused(answer, says):
    with pytest.raises(fk.SamplingError, match=says):
        run(answer, x0=np.zeros(2), sampler="rwm")


def test_bad_values_returned_by_derived():
    for derived, error, says in (
            (lambda x: 3.0, TypeError, "derived must return a dict.*3.0"),
            (lambda x: {"sum": x[0]}, fk.SamplingError, "both have.*sum")):
        with pytest.raises(error, match=says):
            run(fk.Problem(problems.loglike, problems.PRIOR, derived=derived))


def test_impossible_points_need_no_extras():
    def f(x):
        return -np.inf if x[0] < 0 else (-x[0], {"a": x[0]})

    result = run(f, x0=[1.0])
    np.testing.assert_array_equal(result.extras["a"], result.draws[..., 0])


def test_a_run_can_be_resumed_only_with_the_same_extras():
    first = run(problem())
    for other in (fk.Problem(problems.loglike, problems.PRIOR),
                  problem(lambda mu, sigma, w: problems.loglike(mu, sigma, w)[0])):
        with pytest.raises(fk.SamplingError, match="extras"):
            first.resume(5, target=other)
    bare = run(lambda x: -0.5 * x @ x, x0=np.zeros(2))
    more = bare.resume(5, target=lambda x: (-0.5 * x @ x, {"a": x[0]}))  # made for all draws
    np.testing.assert_array_equal(more.extras["a"], more.draws[..., 0])


@pytest.mark.parametrize("share", [False, True])
def test_extras_that_come_with_resume_through_an_executor(share):
    """They are made for all draws, as in this process."""
    bare = run(lambda x: -0.5 * x @ x, x0=np.zeros(2), share=share)
    with ThreadPoolExecutor(2) as pool:
        more = bare.resume(5, target=lambda x: (-0.5 * x @ x, {"n": int(100 * x[0])}),
                           executor=pool)
    np.testing.assert_array_equal(more.extras["n"], (100 * more.draws[..., 0]).astype(int))


def test_extras_cannot_be_added_to_draws_in_a_store(tmp_path):
    bare = run(lambda x: -0.5 * x @ x, x0=np.zeros(2))
    for executor in (None, 1):
        with pytest.raises(fk.SamplingError, match="which are in a store, have none"):
            bare.resume(5, target=lambda x: (-0.5 * x @ x, {"a": x[0]}), executor=executor,
                        store=tmp_path / f"more{executor}")


def test_chains_with_and_without_extras():
    """Whichever comes first: one chain stays where the function returns none."""
    for sign in (-1, 1):
        def f(x, sign=sign):
            return (0.0, {"a": 1.0}) if sign * x[0] > 0 else 0.0

        with pytest.raises(fk.SamplingError, match="extras at every point"):
            run(f, x0=[[1e6], [-1e6]], sampler="rwm")
        with ThreadPoolExecutor(2) as pool, pytest.raises(fk.SamplingError, match="extras"):
            run(f, x0=[[1e6], [-1e6]], sampler="rwm", executor=pool)


def test_arviz():
    pytest.importorskip("xarray")
    result = run(problem())
    posterior = result.to_datatree()["posterior"]
    assert posterior["w"].shape == (2, 60, 3)
    np.testing.assert_array_equal(posterior["pair"].values, result.extras["pair"])
    result = run(lambda x: (-0.5 * x @ x, {"log_likelihood": -0.5 * x**2}), x0=np.zeros(2))
    tree = result.to_datatree()
    assert "log_likelihood" not in tree["posterior"]
    np.testing.assert_array_equal(tree["log_likelihood"]["log_likelihood"].values,
                                  result.extras["log_likelihood"])


def test_masked_extras_are_missing():
    """No element behind a mask is recorded as if it had been there."""
    def f(x):
        return -0.5 * float(x @ x), {
            "one": np.ma.masked, "some": np.ma.array([1.0, 2.0], mask=[True, False])}

    options = {"sampler": "rwm", "search": False, "draws": 5, "tune": 0, "diagnose": False}
    extras = fk.sample(f, [0.0, 0.0], **options).extras
    assert np.isnan(extras["one"]).all()
    assert np.isnan(extras["some"][:, :, 0]).all()
    assert (extras["some"][:, :, 1] == 2.0).all()
    derived = fk.sample(lambda x: -0.5 * float(x @ x), [0.0, 0.0],
                        derived=lambda x: {"q": np.ma.masked}, **options).extras
    assert np.isnan(derived["q"]).all()
    with pytest.raises(fk.SamplingError, match="extras of integers must have no masked elements"):
        fk.sample(lambda x: (0.0, {"n": np.ma.array([1, 2], mask=[1, 0])}), [0.0], **options)


def test_lost_extras_of_an_estimate_are_missing():
    """They were made with noise that no file keeps: NaN, and a warning, not another estimate."""
    def f(x, u):
        return -0.5 * float(x @ x) + 0.1 * float(u[0]), {"a": 1.0, "b": x}

    target = fk.Target.from_estimator(f, 2, 1)
    result = run(target, x0=np.zeros(2), sampler="rwm")
    target.extras_at(np.zeros(2), np.zeros(1))
    with pytest.warns(fk.SamplingWarning, match="the extras of draw 4 of chain 1 are lost"):
        rows = noted(result.trace, 1, {3: np.ones(3)}, target, 3, 5, [])
    np.testing.assert_array_equal(rows, [[1.0] * 3, [np.nan] * 3])


def test_extras_are_thinned_with_the_draws():
    """The thinning may be chosen after the first draws."""
    run = fk.sample(lambda x: (-0.5 * x @ x, {"first": x[0]}), np.zeros(3), sampler="rwm",
                    draws=100, tune=50, search=False, seed=1, diagnose=False)
    fewer = fk.Result(thinned(run.state, 7))
    assert fewer.draws.shape == (4, 14, 3)
    np.testing.assert_array_equal(fewer.extras["first"], fewer.draws[..., 0])


@pytest.mark.filterwarnings("error")
def test_a_run_that_goes_on_outside_the_support_keeps_extras():
    """Most first points of a part are outside, where an estimator returns no extras."""
    def box(x, u):
        return (0.1 * u[0], {"first": x[0]}) if abs(x[0]) < 1 else -np.inf

    options = {"sampler": fk.RandomWalk(proposal_cov=25.0), "search": False, "tune": 0, "chains": 1,
               "seed": 1, "progress": False, "diagnose": False}
    result = fk.sample(fk.Target.from_estimator(box, 1, 1), [0.0], draws=1, **options)
    for _ in range(9):
        result = result.resume(1, diagnose=False)
    np.testing.assert_array_equal(result.extras["first"], result.draws[..., 0])
    assert len(np.unique(result.draws)) < 8


@pytest.mark.parametrize(("f", "options", "says"), [
    (lambda a: (-0.5 * a * a, {"chain": a}), {"prior": {"a": stats.norm()}}, "extras .*'chain'"),
    (lambda a, b: (-0.5 * a * a, {"a": b}), {"prior": {"a": stats.norm(), "b": stats.norm()}},
     r"a gradient by name .* \['b'\] are missing; or, if these are extras"),
    (lambda lp: -0.5 * lp * lp, {"prior": {"lp": stats.norm()}}, "names .*'lp'"),
    (lambda x: -0.5 * x @ x, {"x0": np.zeros(2), "names": ["", "b"]}, "names .*''"),
])
def test_names_that_tables_have_for_others_are_refused(f, options, says):
    with pytest.raises((ValueError, fk.SamplingError), match=f"{says}.*rename them"):
        fk.sample(f, **options, seed=1, progress=False)


TIMES = {"time": [0.0, 10.0, 20.0]}


@pytest.mark.parametrize("how", [
    {"prior": problems.PRIOR}, {"x0": [4.0, 1.0, 0.3, 0.3, 0.4], "names": ["mu", "sigma", "w"],
                                "shapes": {"w": 3}},
    {"x0": {"mu": 4.0, "sigma": 1.0, "w": [0.3, 0.3, 0.4]}},
    {"x0": [4.0, 1.0, 0.3, 0.3, 0.4],
     "bounds": {"mu": (0, 9), "sigma": (0, 9), "w": ([0, 0, 0], [1, 1, 1])}}])
@pytest.mark.parametrize("search", [False, True])
def test_dims_of_extras(how, search, tmp_path):
    def by_name(mu, sigma, w):
        return problems.loglike(mu, abs(sigma), w)

    f = (lambda x: by_name(x[0], x[1], x[2:])) if "names" in how else by_name
    result = sample(f, **how, search=search, dims={"reversed": "time"}, coords=TIMES, draws=20,
                    tune=5, seed=1, sampler="am")
    result.save(tmp_path / "run.fk")
    for one in (result, fk.load(tmp_path / "run.fk")):
        assert list(one.summary("reversed").labels) == [
            "reversed[0]", "reversed[10]", "reversed[20]"]


def test_dims_of_derived_quantities():
    options = {"draws": 20, "tune": 5, "seed": 1, "sampler": "am"}
    result = sample(problem(dims={"pair": "who"}, coords={"who": ["A", "B"]}), **options)
    assert list(result.summary("pair").labels) == ["pair[A]", "pair[B]"]
    with pytest.raises(ValueError, match=r"'pair', of shape .* but coords has 3 values"):
        sample(problem(dims={"pair": "who"}, coords={"who": ["A", "B", "C"]}), **options)


@pytest.mark.parametrize(("options", "says"), [
    ({"dims": {"rversed": "time"}}, r"dims names \['rversed'\], and .* the extras \['sum'"),
    ({"dims": {"reversed": ["time", "who"]}}, "must have a name for each dimension of the shape"),
    ({"dims": {"reversed": "time"}, "coords": {"time": [1, 2]}}, "but coords has 2 values"),
    ({"dims": {"reversed": "sum"}}, r"dims must not have the names of extras, as \['sum'\] do"),
])
def test_dims_that_do_not_fit_the_extras_are_refused_at_the_first_point(options, says):
    calls = []

    def counted(mu, sigma, w):
        calls.append(mu)
        return problems.loglike(mu, sigma, w)

    with pytest.raises(ValueError, match=says):
        sample(counted, prior=problems.PRIOR, seed=1, **options)
    assert len(calls) == 5  # where the chains start, drawn from the prior, and the first of these


def test_dims_of_extras_where_the_first_point_has_no_density():
    def f(x):
        return (-np.inf if x[0] < 1 else -0.5 * x @ x), {"pair": x}

    options = {"names": ["a", "b"], "draws": 20, "tune": 5, "seed": 1}
    result = sample(f, [0.5, 1.0], dims={"pair": "who"}, coords={"who": ["A", "B"]}, **options)
    assert list(result.summary("pair").labels) == ["pair[A]", "pair[B]"]
    with pytest.raises(fk.SamplingError, match=r"dims names \['pai'\]"):
        sample(f, [0.5, 1.0], dims={"pai": "who"}, **options)


@pytest.mark.parametrize("late", [1 + 2j, "7", None, np.datetime64("2020"), [1.0, 2.0]])
@pytest.mark.parametrize("early", [0.5, 3])
def test_extras_that_change_their_type_are_refused(early, late):
    calls = 0

    def f(x):
        nonlocal calls
        calls += 1
        return -0.5 * x @ x, {"e": early if calls < 60 else late}

    with pytest.raises(fk.SamplingError, match="extras must be alike at every point: 'e' was"):
        sample(f, [0.5], sampler="am", draws=200, tune=5, search=False, seed=1)


@pytest.mark.parametrize("stored", [True, False])
def test_extras_before_the_first_draw_are_not_known(stored, tmp_path):
    def f(x):
        return -0.5 * x @ x, {"size": x @ x}

    options = {"x0": np.zeros(2), "sampler": "am", "search": False, "tune": 400, "draws": 50}
    early = run(f, stop=fk.stop.Evaluations(40), **options,
                **({"store": tmp_path / "run"} if stored else {}))
    if stored:
        early = fk.load(tmp_path / "run")
    assert early.trace.rows == 0
    assert dict(early.extras) == {}
    with pytest.raises(KeyError, match=r"no extra 'size'; .* before the first draw none are known"):
        early.extras["size"]
    whole = run(f, **options)
    with pytest.raises(KeyError, match=r"no extra 'sizes'; there are \['size'\]: did you mean 's"):
        whole.extras["sizes"]


def test_large_integers_do_not_wrap():
    options = {"draws": 20, "tune": 5, "seed": 1}
    with pytest.raises((TypeError, fk.SamplingError), match="'e' is 18446744073709551615"):
        sample(lambda x: (-0.5 * x @ x, {"e": np.uint64(2**64 - 1)}), [0.5], **options)
    result = sample(lambda x: (-0.5 * x @ x, {"e": np.uint64(2**63 - 1)}), [0.5], **options)
    assert (result.extras["e"] == 2**63 - 1).all()
