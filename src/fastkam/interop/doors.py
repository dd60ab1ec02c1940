"""Recognize densities of other packages without importing these packages."""

from __future__ import annotations

from typing import Any

OF_SCIPY = {"rv_frozen", "multi_rv_frozen", "UnivariateDistribution"}


def opened(target: Any) -> Any:
    """An object of another package in the form that fastkam samples; anything else as it is."""
    kinds = {(cls.__module__.partition(".")[0], cls.__name__) for cls in type(target).__mro__}
    if ("pymc", "Model") in kinds:
        from fastkam.interop.pymc import from_pymc

        return from_pymc(target)
    if ("pints", "LogPDF") in kinds:
        from fastkam.interop.pints import from_pints

        return from_pints(target)
    if {("umbridge", "HTTPModel"), ("umbridge", "Model")} & kinds:
        from fastkam.interop.umbridge import from_umbridge

        return from_umbridge(target)
    return target


def is_distribution(target: Any) -> bool:
    """Whether it is a distribution of scipy with its parameters."""
    return any(cls.__module__.startswith("scipy.stats") and cls.__name__ in OF_SCIPY
               for cls in type(target).__mro__)
