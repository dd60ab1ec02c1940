"""The table of the gallery as cards, each with the first figure of its page.

GitHub shows the table. The figures are made where the pages are run, not with SITE_EXECUTE=off.
"""

from posixpath import normpath

from docutils import nodes

PAGE = "gallery/index"


def first_figure(env, docname):
    """The first figure of a page that the site has, or None."""
    for image in env.get_doctree(docname).findall(nodes.image):
        if image["uri"] in env.images:
            return nodes.image(uri=image["uri"], candidates={"*": image["uri"]}, alt="")
    return None


def add_figures(app, doctree, docname):
    """Put the figures before the links in the first column of the gallery's table."""
    if docname != PAGE:
        return
    for table in doctree.findall(nodes.table):
        table["classes"].append("cards")
        for row in table.findall(nodes.row):
            for link in list(row[0].findall(nodes.reference)):
                page = link["refuri"].removesuffix(".html")
                figure = first_figure(app.env, normpath(f"gallery/{page}"))
                if figure is not None:
                    link.insert(0, figure)


def setup(app):
    """Called by Sphinx."""
    app.connect("doctree-resolved", add_figures)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
