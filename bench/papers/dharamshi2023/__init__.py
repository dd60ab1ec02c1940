"""Sampling by divergence minimization: the tables of Dharamshi, Ngo and Rosenthal (2023)."""
