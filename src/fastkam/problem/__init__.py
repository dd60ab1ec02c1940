"""Problem: a density made of a likelihood, a prior, bounds and transforms."""
