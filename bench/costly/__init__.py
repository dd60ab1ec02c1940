"""Calls of the density that a learned surrogate saves: `python -m bench.costly`."""
