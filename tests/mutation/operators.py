"""Changes made by mutants: the operators of expressions in Python, Cython and C."""

from typing import NamedTuple

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "*": "+", "/": "*"}
FACTOR = 1.1    # of the constants with a decimal point


class Mutant(NamedTuple):
    """A place in a file, and what is changed there."""

    file: str
    line: int
    column: int
    change: str


def other_number(text):
    """Return another number than the one written as `text`, as text; None if it has none."""
    try:
        number = int(text)
    except ValueError:
        try:
            number = float(text)
        except ValueError:
            return None
        return repr(number * FACTOR if number else 1.0)
    return str(number + 1)
