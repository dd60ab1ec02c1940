"""Docstrings as they are written in the sources, numpydoc, as reStructuredText.

In the text before the first section an indented paragraph is a formula or code, shown as it is. A
bar is that of an absolute value or a condition, and a star before a name unpacks it.
"""

import re

from sphinx.ext.napoleon import Config, NumpyDocstring

# of a class, attributes are a list like its parameters, and methods are documented by themselves
OPTIONS = Config(
    napoleon_use_param=False, napoleon_use_rtype=False,
    napoleon_custom_sections=[("Attributes", "params_style"), ("Methods", "params_style")])
MARK = re.compile(r"\||(?<=[(, ])\*(?=[a-z])")
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
    """The line with a backslash before each bar and star that are not within backticks."""
    parts = re.split(r"(``.+?``|`[^`]*`)", line)
    return "".join(part if part.startswith("`") else MARK.sub(r"\\\g<0>", part) for part in parts)


def translate(app, what, name, obj, options, lines):
    """Translate a docstring in place."""
    # of a property, the words before a colon would be taken for its type
    kind = "method" if what in ("attribute", "data", "property") else what
    lines[:] = NumpyDocstring(translated(lines), OPTIONS, app, kind, name, obj, options).lines()


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", translate)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
