"""Figures that arviz-plots draws."""

from __future__ import annotations

import numpy as np

from fastkam.arguments import check_choice, import_extra
from fastkam.interop.arviz import to_datatree
from fastkam.plots.style import check_figsize

ADVICE = "pip install 'fastkam[arviz-plots]'"


def check_backend(backend, ax, truths=()):
    """The name of the backend: "matplotlib" by default, which is the same on every machine."""
    backend = check_choice("backend", backend or "matplotlib", ("matplotlib", "arviz"))
    if backend == "arviz" and ax is not None:
        raise ValueError('ax must be absent with backend="arviz", which makes a figure of its own')
    if backend == "arviz" and not np.isnan(truths).all():
        raise ValueError('truths must be absent with backend="arviz", which draws no lines at them')
    return backend


def drawn_by_arviz(name, result, what, figsize):
    """The figure of the function of arviz-plots of that name, of the draws `what` (`Shown`).

    Raises
    ------
    ImportError
        Without arviz-plots, or with a version of it that is not compatible with matplotlib.
    """
    figsize = check_figsize(figsize)
    try:
        arviz_plots = import_extra("arviz_plots", ADVICE)
    except AttributeError as error:  # what arviz-plots 0.8 uses is gone in matplotlib 3.11
        raise ImportError(f"arviz-plots cannot be imported ({error}): {ADVICE} installs versions "
                          "of it and of matplotlib that go together") from error
    tree = only(to_datatree(result), what)
    options = {"figure_kwargs": {"figsize": figsize}} if figsize else {}
    collection = getattr(arviz_plots, name)(tree, backend="matplotlib", **options)
    found = collection.viz["figure"].item()
    figure = getattr(found, "figure", found)
    close(figure)
    return figure


def only(tree, what):
    """The DataTree with some draws (`Shown`) as its posterior, each column under its label."""
    import xarray

    dims = ("chain", "draw")
    some = {label: (dims, what.draws[:, :, i]) for i, label in enumerate(what.labels)}
    return xarray.DataTree.from_dict({
        "/posterior": xarray.Dataset(some, coords={
            dim: tree["posterior"].coords[dim] for dim in dims}),
        "/sample_stats": tree["sample_stats"].to_dataset(),
    })


def close(figure):
    """Remove the figure from pyplot's list, since fastkam returns figures and never shows them."""
    import matplotlib.pyplot as plt

    plt.close(figure)
