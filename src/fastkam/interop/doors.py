"""Recognize densities of other packages without importing these packages."""

from __future__ import annotations

from typing import Any

OF_SCIPY = {"rv_frozen", "multi_rv_frozen", "matrix_t_frozen", "UnivariateDistribution"}


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
    check_scipy({name for package, name in kinds if package == "scipy"}, target)
    return target


def check_scipy(kinds: set[str], target: Any) -> None:
    """Refuse objects of scipy.stats that can be called, but do not return a log density."""
    if "gaussian_kde" in kinds:
        raise TypeError("target must return the log density, and a gaussian_kde returns the "
                        "density: give its method logpdf")
    if {"rv_continuous", "rv_discrete", "multi_rv_generic"} & kinds:
        name = getattr(target, "name", None) or type(target).__name__.removesuffix("_gen")
        raise TypeError(f"target must be a distribution with its parameters, not stats.{name} "
                        f"itself: write stats.{name}(...)")


def is_distribution(target: Any) -> bool:
    """Whether it is a distribution of scipy with its parameters."""
    return any(cls.__module__.startswith("scipy.stats") and cls.__name__ in OF_SCIPY
               for cls in type(target).__mro__)
