"""How often a verdict says that a run is wrong: runs of which the truth is known."""
