"""Every sampler once more, in NumPy and from its formulas: slow, short, and independent.

Nothing is updated here that can be computed each time: covariances are matrices, their factors come
from `numpy.linalg.cholesky`, densities from determinants and solves. A reference shares with the
compiled sampler only the order in which random numbers are drawn. It is a `fastkam.PythonSampler`:
the same engine runs both.
"""

from importlib import import_module
from pkgutil import iter_modules

from reference.base import REFERENCES

for module in iter_modules(__path__):
    import_module(f"reference.{module.name}")

__all__ = ["REFERENCES"]
