"""Links to files of the repository that are no pages of the site, such as results of benchmarks.

With the address of the repository (`SITE_REPOSITORY`, or what GitHub's runners know) they lead
there; without one a file is offered for download, and a folder is only named. Figures are shown.
"""

import os
import re
from pathlib import Path

LINK = re.compile(r"(?<!!)\[([^]]+)\]\(((?:\.\./)+[^)#]+)\)")


def repository():
    """The address of the repository, or None."""
    known = os.environ.get("SITE_REPOSITORY")
    if known is None and "GITHUB_REPOSITORY" in os.environ:
        known = f"{os.environ['GITHUB_SERVER_URL']}/{os.environ['GITHUB_REPOSITORY']}"
    return known


def leading(link, page, docs, address):
    """The text of a link on a page, as it is to stand on the site."""
    words, path = link[1], (page.parent / link[2]).resolve()
    if docs in path.parents or not path.exists():     # a page; or Sphinx warns that it is missing
        return link[0]
    if address:
        kind = "tree" if path.is_dir() else "blob"
        return f"[{words}]({address}/{kind}/main/{path.relative_to(docs.parent).as_posix()})"
    plain = words.replace("`", "")
    return f"`{plain}`" if path.is_dir() else f"{{download}}`{plain} <{link[2]}>`"


def lead_outside(app, docname, source):
    """Change the links of a page."""
    docs = Path(app.srcdir).resolve()
    page = docs / f"{docname}.md"
    if page.exists():
        source[0] = LINK.sub(lambda link: leading(link, page, docs, repository()), source[0])


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", lead_outside)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
