"""What a learned surrogate saves in calls of the density: `python -m bench.costly`."""
