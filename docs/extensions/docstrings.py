"""Docstrings as they are written in the sources, for reStructuredText.

In the text before the first section an indented paragraph is a formula or code, shown as it is, and
a bar is that of an absolute value or a condition.
"""

import re

UNDERLINE = re.compile(r"-{3,}$")


def translated(lines):
    """The lines, with a literal block for each indented paragraph, and bars escaped."""
    end = next((i for i, line in enumerate(lines) if UNDERLINE.match(line)), len(lines) + 1) - 1
    out, blank = [], True
    for i, line in enumerate(lines):
        indented = line.startswith("    ") and i < end
        if indented and blank and not (out and out[-2:] and out[-2].endswith("::")):
            out += ["::", ""]
        literal = indented or line.lstrip().startswith(">>>")
        out.append(line if literal else escaped(line))
        blank = not line.strip() if not indented else False
    return out


def escaped(line):
    """The line with a backslash before each bar that is not within backticks."""
    parts = re.split(r"(`[^`]*`+)", line)
    return "".join(part if part.startswith("`") else part.replace("|", r"\|") for part in parts)


def translate(app, what, name, obj, options, lines):
    """Translate a docstring in place."""
    lines[:] = translated(lines)


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", translate, priority=100)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
