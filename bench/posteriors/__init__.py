"""Posteriors that people meet: which sampler needs how many evaluations, and is it right?"""
