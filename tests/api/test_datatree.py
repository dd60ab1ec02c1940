"""Results for ArviZ: groups, names, shapes, attributes, files, and ArviZ's own numbers of them."""

import errno
import os
import re
import sys
import types

import numpy as np
import pytest
from limits import largest_file
from runs import sample

import fastkam as fk
from fastkam.interop import arviz

xarray = pytest.importorskip("xarray")


@pytest.fixture(scope="module")
def result():
    return sample(lambda x: -0.5 * x @ x, np.zeros(5), draws=200, tune=150, seed=2**100,
                  thin=2, names=["mu", "theta"], shapes={"theta": (2, 2)}, progress=False)


def test_groups_names_and_shapes(result):
    tree = result.to_datatree()
    assert set(tree.children) == {
        "posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats"
    }
    posterior = tree["posterior"]
    assert posterior["mu"].dims == ("chain", "draw")
    assert posterior["theta"].dims == ("chain", "draw", "theta_dim_0", "theta_dim_1")
    assert posterior["theta"].shape == (4, 200, 2, 2)
    np.testing.assert_array_equal(posterior["theta"].values, result["theta"])
    np.testing.assert_array_equal(posterior["draw"], np.arange(200))
    assert {"lp", "acceptance_rate", "accepted"} <= set(tree["sample_stats"].data_vars)
    np.testing.assert_array_equal(tree["sample_stats"]["lp"], result.stats["lp"])
    assert tree["warmup_posterior"]["mu"].shape == (4, 75)


EIGHT = [f"school {i}" for i in range(8)]
WHEN = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]")


def described(d, **options):
    return sample(lambda x: -0.5 * x @ x, np.zeros(d), draws=20, tune=10, chains=2, seed=1,
                  progress=False, **options)


def test_dims_and_coords(tmp_path):
    """The arguments are those of ArviZ: dims are names of dimensions, coords values along them."""
    result = described(20, names=["mu", "theta", "beta", "z"], shapes={"z": 3, "beta": (2, 4)},
                       dims={"theta": ["school"], "beta": ["day", "k"]},
                       coords={"school": EIGHT, "day": WHEN})
    assert result.shapes == {"mu": (), "theta": (8,), "beta": (2, 4), "z": (3,)}
    assert result.dims == {"theta": ["school"], "beta": ["day", "k"]}
    result.save(tmp_path / "run.fk")
    for some in (result, fk.load(tmp_path / "run.fk")):
        posterior = some.to_datatree()["posterior"]
        assert posterior["theta"].dims == ("chain", "draw", "school")
        assert posterior["beta"].dims == ("chain", "draw", "day", "k")
        assert posterior["z"].dims == ("chain", "draw", "z_dim_0")
        assert posterior["school"].values.tolist() == EIGHT
        np.testing.assert_array_equal(posterior["day"].values, WHEN)
        np.testing.assert_array_equal(posterior["k"], np.arange(4))
        np.testing.assert_array_equal(posterior["theta"].sel(school="school 3"),
                                      result["theta"][:, :, 3])
        assert some.to_datatree()["warmup_posterior"]["theta"].dims[2] == "school"


def test_names_follow_from_dims():
    assert described(8, dims={"theta": "school"}, coords={"school": EIGHT}).names == ["theta"]
    assert described(3, dims={"x": ["k"]}, shapes={"x": 3}).shapes == {"x": (3,)}


def test_coordinates_are_called_by_their_values_in_coords():
    """In tables, figures and stop rules; indices are still understood."""
    result = described(
        11, names=["mu", "theta", "beta", "twice"], shapes={"twice": 2, "beta": (2, 2)},
        dims={"theta": ["school"], "beta": ["day", "k"], "twice": ["side"]},
        coords={"school": ["A", "B", "C", "D"], "day": WHEN, "side": ["same", "same"]},
        stop=fk.stop.MCSE({"theta[B]": 1e9, "theta[2]": 1e9}))
    labels = ["mu", "theta[A]", "theta[B]", "theta[C]", "theta[D]", "beta[2024-01-01, 0]",
              "beta[2024-01-01, 1]", "beta[2024-01-02, 0]", "beta[2024-01-02, 1]",
              "twice[0]", "twice[1]"]    # values that are not unique make no names
    assert result.summary().labels == labels
    assert list(result.to_pandas().columns)[:11] == labels
    layout = result.state.layout
    assert layout.places("theta[B]") == layout.places("theta[1]") == [2]
    assert layout.places("beta") == [5, 6, 7, 8]
    assert layout.places("theta[E]") == []
    numbers = described(3, dims={"f": ["t"]}, coords={"t": np.linspace(0, 1, 3) / 3})
    assert numbers.summary().labels == ["f[0]", "f[0.166667]", "f[0.333333]"]


def test_columns_of_extras_have_the_values_in_coords():
    pytest.importorskip("pandas")
    result = sample(lambda x: (-x @ x, {"square": x**2, "twice": 2 * x}), np.zeros(2), draws=3,
                    tune=2, names=["theta"], seed=1, progress=False,
                    dims={"theta": ["k"], "square": ["k"]}, coords={"k": ["A", "B"]})
    assert list(result.to_pandas().columns)[:6] == [
        "theta[A]", "theta[B]", "square[A]", "square[B]", "twice[0]", "twice[1]"]
    np.testing.assert_array_equal(result.to_pandas()["square[B]"],
                                  result.extras["square"][..., 1].ravel())


def test_coords_of_pandas():
    pandas = pytest.importorskip("pandas")
    for values in (pandas.Index(["A", "B"]), pandas.Index(["A", "B"], dtype=object),
                   pandas.Categorical(["A", "B"]), pandas.Series(["A", "B"])):
        result = described(2, dims={"theta": ["k"]}, coords={"k": values})
        assert result.coords["k"].tolist() == ["A", "B"]
        assert result.coords["k"].dtype.kind == "U"
    with pytest.raises(TypeError, match="must be a list of numbers, strings or dates"):
        described(2, dims={"theta": ["k"]}, coords={"k": pandas.Series(["A", None])})


@pytest.mark.parametrize(("d", "options", "says"), [
    (8, {"dims": {"a": ["k"]}, "shapes": {"a": 8}, "coords": {"k": [1, 2]}},
     "'a', of shape (8,), has length 8 along 'k', but coords has 2 values"),
    (5, {"dims": {"a": ["k"], "b": ["k"]}, "shapes": {"a": 2, "b": 3}},
     "'b', of shape (3,), has length 3 along 'k', but 'a' has length 2 there"),
    (4, {"dims": {"a": ["k"]}, "shapes": {"a": (2, 2)}},
     "dims['a'] must have a name for each dimension of the shape (2, 2), not ['k']"),
    (2, {"dims": {"a": ["k"]}}, "dims['a'] has ['k']: give their values in coords, or the shape of "
     "'a' in shapes"),
    (3, {"dims": {"a": ["k"]}, "shapes": {"b": 1}, "coords": {"k": [1, 2]}},
     "names must be given, in the order of the parameters in x: dims has ['a']"),
    (1, {"names": ["b"], "dims": {"a": ["k"]}}, "dims names ['a'], and there are the parameters "
     "['b'] and the extras []"),
    (2, {"coords": {"k": [1, 2]}}, "coords names ['k'], which are no dimensions in dims"),
    (8, {"dims": {"theta": 8}}, "dims['theta'] must be a list of names of dimensions, not 8: the "
     "shape of a parameter is given as shapes={'theta': 8}"),
])
def test_arguments_that_do_not_fit_are_refused(d, options, says):
    with pytest.raises((TypeError, ValueError), match=re.escape(says)):
        described(d, **options)


def test_warmup_is_absent_where_it_was_not_kept():
    result = sample(lambda x: -0.5 * x @ x, [0.0], draws=20, tune=20, seed=1,
                    keep_warmup=False, progress=False)
    assert set(result.to_datatree().children) == {"posterior", "sample_stats"}
    assert result.to_datatree()["posterior"]["x"].shape == (4, 20, 1)


def test_attributes_say_how_the_draws_were_made(result):
    attrs = result.to_datatree().attrs
    assert attrs["inference_library"] == "fastkam"
    assert attrs["inference_library_version"] == fk.__version__
    assert attrs["sampler"] == repr(result.sampler)
    assert attrs["schedule"].startswith("Finite(")
    assert attrs["guarantee"].startswith("exact")
    assert attrs["seed"] == str(2**100)
    assert (attrs["thin"], attrs["tuning_steps"]) == (2, 150)
    assert attrs["sampling_time"] == result.seconds
    assert result.to_datatree()["posterior"].attrs == attrs


def in_one_row(dataset):
    """The statistics of "mu" and "theta" as they stand in the summary, (5,)."""
    return np.concatenate([np.ravel(dataset["mu"]), np.ravel(dataset["theta"])])


def test_the_tree_gives_the_numbers_of_the_summary(result):
    from arviz_stats.base import array_stats

    posterior, table = result.to_datatree()["posterior"].dataset, result.summary()
    for function, name in ((array_stats.rhat, "r_hat"), (array_stats.ess, "ess_bulk")):
        found = posterior.map(lambda v, f=function: xarray.apply_ufunc(
            lambda x: f(x), v, input_core_dims=[["chain", "draw"]]))
        np.testing.assert_allclose(in_one_row(found), table[name], rtol=1e-10)


def test_arviz_gives_the_same_numbers(result):
    arviz_stats = pytest.importorskip("arviz_stats")
    if not hasattr(arviz_stats, "rhat"):
        pytest.skip("arviz-stats lacks what its xarray functions need")
    tree, table = result.to_datatree(), result.summary()
    np.testing.assert_allclose(in_one_row(arviz_stats.rhat(tree)), table["r_hat"], rtol=1e-10)
    np.testing.assert_allclose(in_one_row(arviz_stats.ess(tree)), table["ess_bulk"], rtol=1e-10)


def test_netcdf_round_trip(result, tmp_path):
    pytest.importorskip("h5netcdf")
    tree = result.to_datatree()
    tree.to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
    with xarray.open_datatree(tmp_path / "run.nc", engine="h5netcdf") as back:
        np.testing.assert_array_equal(back["posterior"]["theta"], tree["posterior"]["theta"])
        accepted = back["sample_stats"]["accepted"]
        np.testing.assert_array_equal(accepted, result.stats["accepted"])
        assert accepted.dtype == bool
        assert back.attrs["seed"] == str(2**100)


@pytest.mark.parametrize("engine", ["h5netcdf", "netCDF4"])
@pytest.mark.parametrize("old", [b"old", None])
def test_netcdf_on_a_full_disk(result, tmp_path, monkeypatch, engine, old):
    """An error with the path, in place of a segmentation fault of HDF5; nothing is left."""
    pytest.importorskip(engine)
    if engine == "netCDF4":
        monkeypatch.setattr(arviz, "find_spec", lambda name: name == "netCDF4" or None)
    path = tmp_path / "run.nc"
    if old is not None:
        path.write_bytes(old)
    failure = pytest.raises(OSError, match=r"path='.*run.nc' cannot be written: File too large")
    with largest_file(10_000), failure:
        result.to_netcdf(path)
    assert [one.read_bytes() for one in tmp_path.iterdir()] == [old] * (old is not None)
    result.to_netcdf(path)
    with xarray.open_datatree(path) as back:
        assert back["posterior"].sizes["draw"] == result.draws.shape[1]


@pytest.mark.parametrize("code", [None, errno.EOPNOTSUPP, errno.EINVAL])
def test_netcdf_where_no_room_can_be_reserved(result, tmp_path, monkeypatch, code):
    def refused(*arguments):
        raise OSError(code, os.strerror(code))

    if code is None:
        monkeypatch.delattr(os, "posix_fallocate")
    else:
        monkeypatch.setattr(os, "posix_fallocate", refused)
    result.to_netcdf(tmp_path / "run.nc")
    with xarray.open_datatree(tmp_path / "run.nc") as back:
        assert back["posterior"].sizes["draw"] == result.draws.shape[1]


def test_netcdf_by_netcdf4(result, tmp_path, monkeypatch):
    pytest.importorskip("netCDF4")
    monkeypatch.setattr(arviz, "find_spec", lambda name: name == "netCDF4" or None)
    result.to_netcdf(tmp_path / "run.nc")
    with xarray.open_datatree(tmp_path / "run.nc", engine="netcdf4") as back:
        np.testing.assert_array_equal(back["posterior"]["theta"], result["theta"])


def test_a_parameter_may_have_the_name_of_a_dimension_that_has_none(tmp_path):
    result = described(4, shapes={"b": 3, "b_dim_0": ()})
    tree = result.to_datatree()
    assert tree["posterior"]["b"].dims == ("chain", "draw", "b_dim_0_")
    np.testing.assert_array_equal(tree["posterior"]["b_dim_0"], result["b_dim_0"])
    assert tree["warmup_posterior"]["b"].dims == ("chain", "draw", "b_dim_0_")
    result.to_netcdf(tmp_path / "run.nc")


def test_no_name_with_the_prefix_of_the_likelihood_replaces_another():
    extras = ["log_likelihood", "log_likelihood.log_likelihood", "log_likelihood.chain",
              "log_likelihood.k", "log_likelihood.", "log_likelihood.y"]
    result = sample(lambda x: -0.5 * x @ x, [0.0] * 4, draws=20, tune=20, seed=1, progress=False,
                    shapes={"mu": (), "log_likelihood.mu": (), "theta": 2}, dims={"theta": ["k"]},
                    derived=lambda **x: {name: i + x["mu"] for i, name in enumerate(extras)})
    tree = result.to_datatree()
    posterior, group = tree["posterior"], tree["log_likelihood"]
    for name in ("mu", "log_likelihood.mu", "theta"):
        np.testing.assert_array_equal(posterior[name], result[name])
    assert set(group.data_vars) == {*extras[:-1], "y"}
    for name in extras:
        np.testing.assert_array_equal(group["y" if name.endswith("y") else name], result[name])


@pytest.mark.parametrize("kind", ["V8", [("a", "f8")]])
def test_coords_that_no_file_can_hold_are_refused(kind):
    with pytest.raises(TypeError, match=r"coords\['k'\] must be a list of numbers, "):
        described(2, dims={"theta": ["k"]}, coords={"k": np.zeros(2, kind)})


def test_coords_of_strings_of_any_length(tmp_path):
    kind = np.dtypes.StringDType(na_object=None)
    with pytest.raises(TypeError, match=r"coords\['k'\] must be a list of numbers, "):
        described(2, dims={"theta": ["k"]}, coords={"k": np.array(["A", None], kind)})
    result = described(2, dims={"theta": ["k"]}, coords={"k": np.array(["A", "BC"], kind)})
    result.save(tmp_path / "run.fk")
    assert fk.load(tmp_path / "run.fk").coords["k"].tolist() == ["A", "BC"]


def test_a_name_that_arviz_needs_is_refused():
    with pytest.raises(ValueError, match=r"names must not have \['draw'\]"):
        sample(lambda x: -0.5 * x @ x, [0.0], draws=5, tune=5, seed=1, names=["draw"],
               progress=False)


def test_names_that_no_datatree_can_have_are_refused():
    def f(x):
        return -0.5 * x @ x

    options = {"draws": 5, "tune": 5, "seed": 1, "progress": False}
    with pytest.raises(ValueError, match=r"names must not have a slash, .*, as \['a/b'\] do"):
        sample(f, [0.0], names=["a/b"], **options)
    with pytest.raises(ValueError, match=r"dims must not have a slash, .*, as \['k/t'\] do"):
        sample(f, [0.0, 0.0], names=["a"], shapes={"a": 2}, dims={"a": ["k/t"]}, **options)
    with pytest.raises((ValueError, fk.SamplingError), match="extras must not have a slash"):
        sample(lambda x: (f(x), {"a/b": 1.0}), [0.0], **options)


def test_advice_without_xarray(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ImportError, match=r"needs xarray: pip install fastkam\[arviz\]"):
        result.to_datatree()


def fake_arviz(monkeypatch, version, **attributes):
    module = types.ModuleType("arviz")
    module.__version__ = version
    module.InferenceData = types.SimpleNamespace(**attributes)
    monkeypatch.setitem(sys.modules, "arviz", module)


def test_each_version_of_arviz_gets_its_own_type(result, monkeypatch):
    fake_arviz(monkeypatch, "1.3.0")
    assert isinstance(result.to_arviz(), xarray.DataTree)
    fake_arviz(monkeypatch, "0.23.4", from_datatree=lambda tree: ("idata", tree))
    kind, tree = result.to_arviz()
    assert kind == "idata"
    assert isinstance(tree, xarray.DataTree)
    fake_arviz(monkeypatch, "0.18.0")
    with pytest.raises(ImportError, match=r"arviz 0\.18\.0 cannot take a DataTree"):
        result.to_arviz()


def test_without_arviz_it_is_a_tree(result, monkeypatch):
    class Nowhere:
        def find_spec(self, name, *_):
            if name == "arviz":
                raise ModuleNotFoundError("No module named 'arviz'", name="arviz")

    monkeypatch.delitem(sys.modules, "arviz", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Nowhere(), *sys.meta_path])
    assert isinstance(result.to_arviz(), xarray.DataTree)
