"""Evaluations of the density one by one: on workers, by a loop of the user's, kept in a file."""
