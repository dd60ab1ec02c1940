"""Surrogates of costly densities: learnt from calls, sampled in their place, corrected for."""
