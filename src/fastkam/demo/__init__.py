"""The demonstrations of ``fastkam demo``, each a short complete analysis."""
