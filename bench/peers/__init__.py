"""Comparison of fastkam with other samplers, on the same density in the same run."""
