"""Sampling by divergence minimization: the tables of Dharamshi, Ngo and Rosenthal (2023)."""

PARTS = ("double_banana", "basis_vectors", "banana_bunch", "horseshoe")
MODULES = ("banana", "figures")
