"""Results for ArviZ: an xarray DataTree with its groups, names and attributes."""

from __future__ import annotations

import errno
import os
from importlib.util import find_spec
from tempfile import TemporaryDirectory

import numpy as np

from fastkam._version import __version__
from fastkam.arguments import import_extra
from fastkam.run.files import place_of

OF_ITS_OWN = "log_likelihood"  # extras of that name, or "log_likelihood.y", make a group
BYTES, BYTES_OF_ARRAY = 2**16, 2**12  # of a file, and of an array in it, besides its values
ADVICE = "pip install fastkam[arviz]"


def to_datatree(result):
    """A DataTree with the groups posterior, sample_stats and, where kept, those of warm-up.

    Extras are in the posterior; one called "log_likelihood" is in a group of that name, and one
    called "log_likelihood.y" is in that group as y, unless that is the name of a dimension.

    Parameters
    ----------
    result : Result

    Returns
    -------
    xarray.DataTree
        Variables have the dimensions chain, draw and, for a parameter "theta" with a shape, those
        that `sample` was given in ``dims``, or theta_dim_0, theta_dim_1, ... (theta_dim_0_ if there
        is a variable theta_dim_0); coordinates are those of ``coords``, or 0, 1, ...

    Raises
    ------
    ImportError
        Without xarray.
    ValueError
        If an extra has the name of a parameter or of a dimension.
    """
    xarray = import_extra("xarray", ADVICE)
    layout = result.state.layout
    groups = {
        "posterior": dataset(xarray, layout.split(result.draws) | extras_of(result), layout),
        "sample_stats": dataset(xarray, result.stats, layout),
    }
    if own := {name: values for name, values in result.extras.items() if is_likelihood(name)}:
        groups[OF_ITS_OWN] = dataset(xarray, own, layout, OF_ITS_OWN + ".")
    if result.warmup.rows:
        groups["warmup_posterior"] = dataset(xarray, layout.split(result.warmup_draws), layout)
        groups["warmup_sample_stats"] = dataset(xarray, result.warmup.stats, layout)
    about = attributes(result)
    tree = xarray.DataTree.from_dict({f"/{name}": group for name, group in groups.items()})
    tree.attrs.update(about)
    tree["posterior"].attrs.update(about)
    return tree


def to_netcdf(result, path):
    """Write `to_datatree` to a file, as netCDF 4; an old file stays until the new is complete."""
    engine = "netcdf4" if find_spec("h5netcdf") is None and find_spec("netCDF4") else "h5netcdf"
    if engine == "h5netcdf":
        import_extra(engine, ADVICE)
    tree = to_datatree(result)
    with TemporaryDirectory(dir=place_of(path).parent, prefix=".netcdf.") as folder:
        temporary = os.path.join(folder, "run.nc")
        try:
            make_room(temporary, tree)
            tree.to_netcdf(temporary, engine=engine)
            os.replace(temporary, place_of(path))
        except OSError as error:
            raise OSError(error.errno or errno.EIO, f"path={os.fspath(path)!r} cannot be written: "
                          f"{error.strerror or error}") from error


def make_room(path, tree):
    """Fill a file with as many bytes as a tree takes; OSError if there is no room for them.

    HDF5 may end the process with a segmentation fault if it meets a full disk. Some systems and
    file systems reserve nothing.
    """
    if not hasattr(os, "posix_fallocate"):
        return
    size = BYTES + sum(
        BYTES_OF_ARRAY + array.nbytes
        for node in tree.subtree for array in node.to_dataset().variables.values())
    with open(path, "wb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise


def extras_of(result):
    """Extras by name, without those of the likelihood."""
    return {name: values for name, values in result.extras.items() if not is_likelihood(name)}


def is_likelihood(name):
    """Whether an extra is the log likelihood of each observation, as ArviZ wants it for loo."""
    return name == OF_ITS_OWN or name.startswith(OF_ITS_OWN + ".")


def to_arviz(result):
    """The type that the installed ArviZ uses: DataTree from 1.0 on, InferenceData before.

    Without ArviZ, a DataTree, which arviz-stats and arviz-plots take.
    """
    tree = to_datatree(result)
    try:
        import arviz
    except ModuleNotFoundError as error:
        if error.name != "arviz":
            raise
        return tree
    if int(arviz.__version__.partition(".")[0]) >= 1:
        return tree
    if not hasattr(arviz.InferenceData, "from_datatree"):
        raise ImportError(
            f"arviz {arviz.__version__} cannot take a DataTree: pip install 'arviz>=0.22'"
        )
    return arviz.InferenceData.from_datatree(tree)


def dataset(xarray, arrays, layout, prefix=""):
    """A Dataset of {name: (chains, draws, *shape)}, the dimensions named as in the Layout.

    Names lose `prefix`, except where nothing is left of them, or what is left is a name of another
    array or of a dimension. A dimension without a name gets one that no variable has.
    """
    variables, coords = {}, {}
    taken = {"", "chain", "draw", *arrays, *(dim for dims in layout.dims.values() for dim in dims)}
    shorts = {name: name if (short := name.removeprefix(prefix)) in taken else short
              for name in arrays}
    for name, array in arrays.items():
        short = shorts[name]
        own = layout.dims.get(name) or [free(f"{short}_dim_{i}", shorts.values())
                                        for i in range(array.ndim - 2)]
        variables[short] = (("chain", "draw", *own), array)
        for dim, size in zip(("chain", "draw", *own), array.shape, strict=True):
            coords[dim] = layout.coords.get(dim, np.arange(size))
    return xarray.Dataset(variables, coords=coords)


def free(name, taken):
    """`name`, with as many underscores at its end as it takes to be none of `taken`."""
    while name in taken:
        name += "_"
    return name


def attributes(result):
    """Facts of the run for readers of the file, in types that netCDF can hold."""
    return {
        "inference_library": "fastkam",
        "inference_library_version": __version__,
        "sampler": repr(result.sampler),
        "schedule": repr(result.schedule),
        "guarantee": result.schedule.guarantee,
        "seed": str(result.state.seed.entropy),  # 128 bits do not fit an integer attribute
        "bit_generator": result.state.bit_generator,
        "status": result.status,
        "tuning_steps": result.tune,
        "thin": result.thin,
        "sampling_time": result.seconds,
    }
