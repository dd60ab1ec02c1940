"""Links whose text is the name of a page's file have the title of the page on the site.

GitHub shows `plots.md`, which says where the page is; a site has no files for its readers.
"""

import re

LINK = re.compile(r"\[`?([\w.-]+\.md)`?\]\(((?:[\w./-]*/)?\1(?:#[\w-]+)?)\)")


def with_titles(text):
    """The text of a page with links that MyST fills with titles."""
    return LINK.sub(r"[](\2)", text)


def give_titles(app, docname, source):
    """Change the links of a page."""
    source[0] = with_titles(source[0])


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", give_titles)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
