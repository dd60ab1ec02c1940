"""A run: its state, the loop that advances it, and the files that hold it."""
