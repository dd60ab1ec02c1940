"""Results for ArviZ: an xarray DataTree with its groups, names and attributes."""

from __future__ import annotations

import numpy as np

from fastkam._version import __version__
from fastkam.errors import import_extra
from fastkam.result import split

ADVICE = "pip install fastkam[arviz]"


def to_datatree(result):
    """A DataTree with the groups posterior, sample_stats and, where kept, those of warm-up.

    Parameters
    ----------
    result : Result

    Returns
    -------
    xarray.DataTree
        Variables have the dimensions chain, draw and, for a parameter "theta" with a shape,
        theta_dim_0, theta_dim_1, ...

    Raises
    ------
    ImportError
        Without xarray.
    ValueError
        If a parameter's name is that of a dimension.
    """
    xarray = import_extra("xarray", ADVICE)
    taken = {"chain", "draw"} & set(result.dims)
    if taken:
        raise ValueError(f"names must not be those of ArviZ's dimensions, as {sorted(taken)} are")
    groups = {
        "posterior": parameters(xarray, result.draws, result.dims),
        "sample_stats": dataset(xarray, result.stats),
    }
    if result.warmup.rows:
        groups["warmup_posterior"] = parameters(xarray, result.warmup.draws, result.dims)
        groups["warmup_sample_stats"] = dataset(xarray, result.warmup.stats)
    about = attributes(result)
    tree = xarray.DataTree.from_dict({f"/{name}": group for name, group in groups.items()})
    tree.attrs.update(about)
    tree["posterior"].attrs.update(about)
    return tree


def to_arviz(result):
    """What the installed ArviZ takes: a DataTree from 1.0 on, an InferenceData before.

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


def parameters(xarray, draws, dims):
    """A Dataset of the named parameters of draws (chains, draws, d)."""
    return dataset(xarray, split(draws, dims))


def dataset(xarray, arrays):
    """A Dataset of {name: (chains, draws, *shape)}."""
    variables, coords = {}, {}
    for name, array in arrays.items():
        own = [f"{name}_dim_{i}" for i in range(array.ndim - 2)]
        variables[name] = (("chain", "draw", *own), array)
        for dim, size in zip(("chain", "draw", *own), array.shape, strict=True):
            coords[dim] = np.arange(size)
    return xarray.Dataset(variables, coords=coords)


def attributes(result):
    """What a reader of the file should know of the run, in types that netCDF can hold."""
    return {
        "inference_library": "fastkam",
        "inference_library_version": __version__,
        "sampler": repr(result.sampler),
        "schedule": repr(result.schedule),
        "guarantee": result.schedule.guarantee,
        "seed": str(result.seed.entropy),  # 128 bits do not fit an integer attribute
        "bit_generator": result.bit_generator,
        "status": result.status,
        "tuning_steps": result.tune,
        "thin": result.thin,
        "sampling_time": result.seconds,
    }
