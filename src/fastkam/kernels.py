"""Kernels of kernel adaptive Metropolis."""
