"""Stan models through BridgeStan's C interface: a library by hand that has it."""

import gc
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from by_hand import S, eight_schools

import fastkam as fk

SOURCE = Path(__file__).with_name("stan_model.c")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The path of the compiled library."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    path = tmp_path_factory.mktemp("stan") / "schools_model.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", path, SOURCE, "-lm"], check=True)
    return path


@pytest.fixture(scope="module")
def model(library):
    return fk.from_bridgestan(library, {"y": S})


@pytest.fixture(scope="module")
def result(model):
    return fk.sample(model, draws=1000, seed=1, diagnose=False)  # the centered form diverges


def test_density_is_that_by_hand(model):
    rng = np.random.default_rng(1)
    for z in rng.normal(size=(20, 16)):
        value, slope = eight_schools(z[:10])
        logp, gradient = model.logp_grad(z)
        value += fk.targets.Gaussian(np.zeros(6)).logp(z[10:])
        assert abs(logp - value) < 1e-10 * abs(value)
        np.testing.assert_allclose(gradient[:10], slope, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(gradient[10:], -z[10:], rtol=1e-12)
        assert model.logp(z) == logp


def test_names_shapes_and_order(model):
    assert model.shapes == {"mu": (), "tau": (), "theta": (8,), "B": (2, 3)}
    z = np.arange(16.0)
    x = model.constrain(z)
    assert x[1] == np.exp(1.0)
    np.testing.assert_array_equal(x[10:].reshape(2, 3), [[10, 12, 14], [11, 13, 15]])
    np.testing.assert_allclose(model.unconstrain(x), z, rtol=1e-15)


def test_draws_are_of_the_parameters(model, result):
    assert result.names == ["mu", "tau", "theta", "B"]
    assert (result["tau"] > 0).all()
    np.testing.assert_allclose(np.log(result["tau"]), result.trace.draws[..., 1], rtol=1e-12,
                               atol=1e-14)
    np.testing.assert_array_equal(result.extras["half"], result["tau"] / 2)
    np.testing.assert_array_equal(result.extras["twice"], 2 * result["B"])
    assert result.extras["twice"].shape == (4, 1000, 2, 3)
    assert "tau" in str(result.summary())


def test_posterior_agrees(result):
    """A run of the density by hand agrees within 5 standard errors."""
    hand = fk.sample(fk.Target.from_python(eight_schools, 10, gradient=True), np.zeros(10),
                     draws=1000, sampler="nuts", seed=2, diagnose=False)
    ours, theirs = result.draws[..., 0], hand.draws[..., 0]
    error = np.hypot(result.summary()["mcse_mean"][0], hand.summary()["mcse_mean"][0])
    assert abs(ours.mean() - theirs.mean()) < 5 * error


def test_generated_quantities_are_the_same_at_the_same_point(model, result):
    noise = result.extras["noise"]
    again = model.quantities(result.trace.draws[0])["noise"]
    np.testing.assert_array_equal(noise[0], again)
    assert len(np.unique(noise)) > 100
    other = fk.from_bridgestan(model.given[0], {"y": S}, seed=7)
    assert (other.quantities(result.trace.draws[0])["noise"] != again).all()


def test_text_of_a_failing_evaluation(model):
    z = np.zeros(16)
    z[0] = 60
    with pytest.raises(ArithmeticError, match="Location parameter is too large"):
        model.logp(z)
    assert model.error is None  # has been read
    result = fk.sample(model, np.array([49.9, 1.0, *np.full(8, 49.0), *np.zeros(6)]),
                       sampler="rwm", search=False, tune=0, draws=50, seed=1, diagnose=False)
    assert result.rejected["failed"].sum() > 0
    assert "Location parameter" in model.error


def test_quantities_can_be_left_out(library):
    model = fk.from_bridgestan(library, {"y": S}, quantities=False)
    result = fk.sample(model, draws=5, tune=5, sampler="nuts", search=False, seed=1, diagnose=False)
    assert not result.extras


def test_a_file_goes_with_the_model(model, result, tmp_path):
    result.save(tmp_path / "run.fk")
    loaded = fk.load(tmp_path / "run.fk")
    np.testing.assert_array_equal(loaded["tau"], result["tau"])
    more = fk.resume(tmp_path / "run.fk", 5, target=model, diagnose=False)
    assert more.draws.shape == (4, 1005, 16)
    assert more.extras["half"].shape == (4, 1005)


def test_a_file_without_the_model_says_so(library, tmp_path):
    model = fk.from_bridgestan(library, {"y": [1.5]})
    result = fk.sample(model, draws=5, tune=5, sampler="ram", search=False, seed=1, diagnose=False)
    result.save(tmp_path / "run.fk")
    del model, result
    gc.collect()
    with pytest.raises(ValueError, match="Stan model schools_model, which this process has not"):
        fk.load(tmp_path / "run.fk").draws  # noqa: B018


def test_another_process_says_that_the_model_is_missing(model, result, tmp_path):
    result.save(tmp_path / "run.fk")
    program = ("import sys, fastkam as fk; result = fk.load(sys.argv[1]); "
               "print(result.extras['half'].shape); result.draws")
    run = subprocess.run([sys.executable, "-c", program, tmp_path / "run.fk"], text=True,
                         capture_output=True)
    assert run.stdout == "(4, 1000)\n"
    assert "Stan model schools_model, which this process has not made" in run.stderr


def test_a_library_without_threads_is_for_one(library, tmp_path):
    text = SOURCE.read_text().replace("STAN_THREADS=true", "STAN_THREADS=false")
    (tmp_path / "serial.c").write_text(text)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", tmp_path / "serial.so",
                    tmp_path / "serial.c", "-lm"], check=True)
    serial = fk.from_bridgestan(tmp_path / "serial.so")
    assert serial.target().serial
    assert not fk.from_bridgestan(library).target().serial


def test_workers_make_the_model_themselves(model):
    options = {"draws": 20, "tune": 20, "sampler": "nuts", "search": False, "seed": 1, "chains": 2,
               "diagnose": False}
    here = fk.sample(model, **options)
    with ProcessPoolExecutor(1) as pool:
        there = fk.sample(model, executor=pool, **options)
    np.testing.assert_array_equal(here.draws, there.draws)
    np.testing.assert_array_equal(here.extras["noise"], there.extras["noise"])
    assert pickle.loads(pickle.dumps(model)).logp(np.zeros(16)) == model.logp(np.zeros(16))


def test_starts_by_name(model):
    x0 = {"mu": 1, "tau": 2, "theta": np.zeros(8), "B": np.zeros((2, 3))}
    result = fk.sample(model, x0, draws=2, tune=0, sampler="rwm", search=False, seed=1,
                       diagnose=False)
    np.testing.assert_allclose(result.state.constrain(result.state.x0)[:, 1], 2.0)
    with pytest.raises(ValueError, match=r"Positive variable is 0"):
        fk.sample(model, x0 | {"tau": 0})
    with pytest.raises(ValueError, match=r"\['B'\] are missing"):
        fk.sample(model, {"mu": 1, "tau": 2, "theta": np.zeros(8)})
    with pytest.raises(ValueError, match=r"x0 must have shape \(16,\)"):
        fk.sample(model, np.zeros(3))


@pytest.mark.parametrize(("arguments", "error", "text"), [
    ((3,), TypeError, "lib must be the path of a shared library, not 3"),
    (("model.stan",), ValueError, "lib must be a compiled model"),
    (("missing.so",), FileNotFoundError, r"lib: there is no file 'missing\.so'"),
    ((__file__,), ValueError, "cannot be loaded"),
    (("LIBRARY", "bad}"), ValueError, "data must be JSON"),
    (("LIBRARY", "data.json"), FileNotFoundError, "data: there is no file"),
    (("LIBRARY", {"y": "text"}), TypeError, r"data\['y'\] must be a number"),
    (("LIBRARY", {"bad": 1}), ValueError, "variable y does not exist"),
    (("LIBRARY", 7), TypeError, "data must be a dict"),
])
def test_bad_arguments(library, arguments, error, text):
    given = [library if one == "LIBRARY" else one for one in arguments]
    with pytest.raises(error, match=text):
        fk.from_bridgestan(*given)


def test_another_library_is_refused(tmp_path):
    (tmp_path / "other.c").write_text("int other(void) { return 0; }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "other.so", tmp_path / "other.c"],
                   check=True)
    with pytest.raises(ValueError, match="must have BridgeStan's C interface"):
        fk.from_bridgestan(tmp_path / "other.so")


def test_a_wrong_gradient_is_detected(library, tmp_path):
    """The comparison with the density by hand has the power to tell."""
    text = SOURCE.read_text().replace("e * e - 1;", "e * e;")
    (tmp_path / "wrong.c").write_text(text)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", tmp_path / "wrong.so",
                    tmp_path / "wrong.c", "-lm"], check=True)
    wrong = fk.from_bridgestan(tmp_path / "wrong.so", {"y": S})
    assert not fk.check_gradient(wrong.target(), np.zeros(16)).ok
    assert fk.check_gradient(fk.from_bridgestan(library, {"y": S}).target(), np.zeros(16)).ok
