"""Mutants of the C code written by hand: an expression of one line becomes a conditional one.

There is no parser of C here. What is looked at is the value in a line's assignments, returns, and
conditions of if and for, as far as its brackets close on that line.
"""

import re
from typing import NamedTuple

from mutation.operators import ARITHMETIC, COMPARISONS, Mutant, other_number

TOKEN = re.compile(r"""
    (?P<number>(?<![\w.])(?:\d+\.\d*(?:e[+-]?\d+)?|\d+)(?![\w.(]))
    | (?P<name>[A-Za-z_]\w*) | (?P<string>"(?:\\.|[^"])*"|'(?:\\.|[^'])*')
    | (?P<operator>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=
                   |[-+*/%<>=!~&|^?:,;(){}\[\].])
    | (?P<other>\S)""", re.VERBOSE)
LOGICAL = {"&&": "||", "||": "&&"}
BEGIN = re.compile(r"(?<![=!<>+\-*/%&|^])([-+*/]?=)(?!=)|\breturn\b|\b(?:if|while|for)\s*\(")


class Expression(NamedTuple):
    """The text of an expression in a line, and where it begins and ends."""

    first: int
    end: int
    text: str


def mutants_of(file, text):
    """Return the mutants of a C file."""
    return [Mutant(file, number, column, change)
            for number, line in code_lines(text)
            for expression in expressions(line)
            for column, change, _ in alternatives(expression)]


def with_mutants(file, text, numbers):
    """Return the text with those mutants in it that `numbers` (mutant -> number) has."""
    lines = text.split("\n")
    for number, line in code_lines(text):
        for expression in reversed(expressions(line)):
            new = expression.text
            for column, change, mutated in alternatives(expression):
                k = numbers.get(Mutant(file, number, column, change))
                if k is not None:
                    new = f"(fk_mutated({k}) ? ({mutated}) : ({new}))"
            line = line[:expression.first] + new + line[expression.end:]
        lines[number - 1] = line
    return "\n".join(lines)


def code_lines(text):
    """Yield the lines within functions, without comments: (number, line)."""
    depth, blank = 0, re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)
    continued = False
    for number, (line, original) in enumerate(zip(blank.split("\n"), text.split("\n"),
                                                  strict=True), 1):
        directive = line.lstrip().startswith("#") or continued
        continued = directive and line.endswith("\\")
        if directive:
            continue
        opened = line.count("{") - line.count("}")
        inside = depth > 0 or ("{" in line and ")" in line.split("{")[0])
        depth += opened
        # a comment in front of code would shift nothing, but must stay: such lines are left out
        if inside and "typedef" not in line and "static const" not in line and (
                len(line) == len(original)) and not re.search(r"\*/\s*\S", original):
            yield number, line.rstrip()


def expressions(line):
    """Return the expressions of a line that a conditional one can take the place of."""
    found, after = [], 0
    for begin in BEGIN.finditer(line):
        if begin.start() < after:
            continue
        first = begin.end()
        if begin[0].startswith("for"):
            parts = clauses(line, first)
            if len(parts) == 3 and parts[1].text:
                found.append(parts[1])
                after = parts[1].end
            continue
        stop = ")" if begin[0].endswith("(") else ",;"
        end = end_of(line, first, stop)
        text = line[first:end] if end else ""
        stripped = text.strip()
        if stripped and not stripped.startswith("{") and '"' not in stripped:
            first += len(text) - len(text.lstrip())
            found.append(Expression(first, first + len(stripped), stripped))
            after = end
    return found


def clauses(line, first):
    """Return the three parts of a for loop's head, if it closes on its line."""
    parts = []
    for stop in (";", ";", ")"):
        end = end_of(line, first, stop)
        if end is None:
            return []
        text = line[first:end]
        start = first + len(text) - len(text.lstrip())
        parts.append(Expression(start, start + len(text.strip()), text.strip()))
        first = end + 1
    return parts


def end_of(line, first, stops):
    """Return where the first of `stops` outside of brackets is; None if it is on another line."""
    depth = 0
    for place in range(first, len(line)):
        letter = line[place]
        if depth == 0 and letter in stops:
            return place
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            return None
    return None


def alternatives(expression):
    """Yield what an expression may be changed to: (column, the change as text, the new text)."""
    text, before, bracket = expression.text, None, []
    for token in TOKEN.finditer(text):
        old, new = token[0], None
        if old in "([":
            bracket.append(old)
        elif old in ")]" and bracket:
            bracket.pop()
        binary = before is not None and (
            before.lastgroup in ("number", "name") or before[0] in (")", "]"))
        # (type)*pointer, or (type *)
        cast = old == "*" and (text[token.end():].lstrip().startswith(")")
                               or (before is not None and before[0] == ")"))
        if token.lastgroup == "number":
            new = None if before is not None and before[0] == "[" else other_number(old)
        elif token.lastgroup == "operator" and binary and not cast:
            new = COMPARISONS.get(old) or ARITHMETIC.get(old) or LOGICAL.get(old)
        if new is not None:
            change = f"{old} -> {new}"
            yield expression.first + token.start(), change, (
                text[:token.start()] + new + text[token.end():])
        before = token
