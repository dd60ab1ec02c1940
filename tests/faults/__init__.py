"""Runs that are killed, interrupted and out of disk space at random moments."""
