"""The table of contents, from the tables and lists of links on index.md and replication.md.

GitHub shows these pages as they are. On the site the pages listed under a heading are also a part
of the sidebar, with that heading as its caption. A page that none of them lists is in no table of
contents, of which Sphinx warns.
"""

import re

LISTING = ("index", "replication")      # pages that list others
SECTION = re.compile(r"^## (.+)$", re.M)
LINK = re.compile(r"\]\(([^):#]+\.(?:md|rst))\)")


def contents(text):
    """[(caption, pages)] of a page; the pages are those linked from rows of its tables."""
    parts = SECTION.split(text)
    captions = [None, *parts[1::2]]
    return [(caption, pages) for caption, part in zip(captions, parts[::2], strict=True)
            if (pages := linked(part))]


def linked(part):
    """The pages linked from rows of tables and items of lists, in order and each once."""
    rows = [line for line in part.splitlines() if line.startswith(("|", "- ["))]
    return list(dict.fromkeys(page for row in rows for page in LINK.findall(row)))


def directive(caption, pages):
    """The hidden table of contents of some pages."""
    options = [":hidden:"] + ([f":caption: {caption}"] if caption else [])
    names = [page.rpartition(".")[0] for page in pages]
    return "\n".join(["", "```{toctree}", *options, "", *names, "```", ""])


def add_contents(app, docname, source):
    """Add the tables of contents to the text of a page that lists others."""
    if docname.rpartition("/")[2] in LISTING:
        source[0] += "".join(directive(*each) for each in contents(source[0]))


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", add_contents)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
