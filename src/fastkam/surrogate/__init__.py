"""Learned surrogates of costly densities, which are sampled instead; weights correct the draws."""
