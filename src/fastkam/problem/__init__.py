"""A likelihood with a prior, bounds and transforms: what a user has, as a density to sample."""
