"""All posteriors, by their names; only NumPy is used, so that other packages can evaluate them.

Data are drawn from fixed seeds. Where a parameter is positive it is sampled as its logarithm, with
the derivative of the transform in the density; each function says so.
"""

from bench.posteriors import dynamics, hierarchies, regressions, series, shapes
from bench.posteriors.posterior import POSTERIORS

__all__ = ["POSTERIORS", "dynamics", "hierarchies", "regressions", "series", "shapes"]
