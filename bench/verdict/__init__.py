"""Rates of the verdict "wrong", on runs whose truth is known."""
