"""The search before a run: scales, location and shape of the mass, and the choice of a sampler."""
