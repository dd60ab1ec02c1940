"""The first answer of a call: whether it is right, or comes with a warning."""
