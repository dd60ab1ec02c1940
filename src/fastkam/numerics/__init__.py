"""Numerical pieces that several parts of the package use."""
