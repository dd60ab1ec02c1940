"""The evidence of a run: the log of the integral of its density, and the comparison of models."""
