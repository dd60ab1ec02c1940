"""log evidence on targets whose truth is known: coverage of the intervals, and nested samplers."""
