"""One file a package: how its samplers are called. Each runs in its own environment.

A file has NAMES, the distributions whose versions the tables show, and SAMPLERS, {name:
Contestant}: see `bench.peers.job`. `xla` is common to those of JAX.
"""
