"""The search before a run: scales, the way to where the mass is, its shape, and the choice."""
