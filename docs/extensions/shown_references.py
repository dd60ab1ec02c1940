"""Reference implementations of samplers, shown on the site below the formulas.

GitHub shows a link to the file, with the implementations of related samplers.
"""

import re
from pathlib import Path

SECTION = re.compile(r"^## (\w+): .*?(?=^## |\Z)", re.M | re.S)
LINK = re.compile(r"^Reference implementation in Python: (\[[^]]+\]\(([^)]+)\))\.$", re.M)
BLOCK = """<details>
<summary>Reference implementation in Python</summary>

```{{literalinclude}} {path}
:pyobject: {name}
```

Its base classes are in {file}.

</details>"""


def with_references(text, folder):
    """The text of a page, with the class of each section's sampler in place of a link."""
    def in_section(section):
        def block(link):
            code = (folder / link[2]).read_text()
            found = re.search(rf'^class (\w+)\(.*\bof="{section[1]}"', code, re.M)
            return BLOCK.format(path=link[2], name=found[1], file=link[1]) if found else link[0]
        return LINK.sub(block, section[0])
    return SECTION.sub(in_section, text)


def show_references(app, docname, source):
    """Change the links of a page."""
    source[0] = with_references(source[0], (Path(app.srcdir) / docname).parent)


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", show_references)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
