"""Surrogates of costly densities: learnt from their calls, sampled in their place, corrected for."""
