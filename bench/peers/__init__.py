"""fastkam beside other samplers, on the same density in the same run."""
