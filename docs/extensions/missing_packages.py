"""Pages of the gallery whose packages are not installed are shown without having been run.

A page says in its front matter what it needs besides the extra `docs`: ``needs: pymc``.
"""

import importlib.util
import re

FRONT = re.compile(r"\A---\n(.*?)^---\n", re.M | re.S)
NEEDS = re.compile(r"^needs: ([\w, ]+)$", re.M)
OFF = """\
language_info:
  name: python
  pygments_lexer: ipython3
mystnb:
  execution_mode: 'off'
"""


def needed(text):
    """The packages that a page names."""
    front = FRONT.match(text)
    named = NEEDS.search(front[1]) if front else None
    return named[1].split(", ") if named else []


def missing(packages):
    """Those that cannot be imported here."""
    return [package for package in packages if importlib.util.find_spec(package) is None]


def not_run(text, packages):
    """The page with a note in front, and without execution."""
    names = " and ".join(packages)
    note = f":::{{note}}\nThese cells have not been run: {names} was not installed.\n:::\n\n"
    head, rest = FRONT.match(text).end(), FRONT.sub("", text)
    title, _, body = rest.partition("\n\n**")
    return text[: head - len("---\n")] + OFF + "---\n" + title + "\n\n" + note + "**" + body


def leave_out(app, docname, source):
    """Switch execution off where something is missing."""
    if absent := missing(needed(source[0])):
        source[0] = not_run(source[0], absent)


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", leave_out)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
