"""Mistakes in registered samplers: a file for each family, with its list `TWINS`."""
