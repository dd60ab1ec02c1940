"""Common posteriors: how many evaluations each sampler needs, and whether it is right."""
