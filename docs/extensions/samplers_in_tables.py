"""Tables of the samplers, made from their sections and from their classes.

samplers.md gets a table of the sentences with which its sections begin, and names.md the samplers
of each name and a table of what they learn. A new sampler changes neither page's tables.
"""

import dataclasses
import re

SECTION = re.compile(r"^## (\w+): .*\n\n((?:.+\n)+)", re.M)    # its first paragraph
BEGINNING = re.compile(r"(.+?)\. It learns (.+?)\. A step costs (.+)\.")
NAME = re.compile(r"^\| `(\w+)` \| (parameter|statistic) \| .* \|$", re.M)
OVERVIEW, LEARNED = "<!-- table of the samplers -->", "<!-- table of learned fields -->"


def table(heads, rows):
    """A table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def with_overview(text):
    """The text of samplers.md with a table of the samplers."""
    heads = ["name", "idea", "learns", "cost of a step"]
    return text.replace(OVERVIEW, table(heads, overview(text)))


def overview(text):
    """[(name, idea, what is learned, cost of a step)] of the sections of samplers.md."""
    found = [(name, BEGINNING.fullmatch(" ".join(first.split())))
             for name, first in SECTION.findall(text)]
    return [(f"`{name}`", *sentences.groups()) for name, sentences in found if sentences]


def with_samplers(text):
    """The text of names.md with the samplers of each name, and the table of what they learn."""
    names, learned = names_of_samplers(), learned_by_samplers()
    text = text.replace("| name | kind | meaning |\n|---|---|---|",
                        "| name | kind | meaning | samplers |\n|---|---|---|---|")
    text = NAME.sub(lambda row: f"{row[0]} {listed(names.get(row.groups(), ()))} |", text)
    rows = [(f"`{name}`", meaning, listed(samplers)) for (name, meaning), samplers
            in sorted(learned.items(), key=lambda one: (one[0][0].lower(), one[0]))]
    return text.replace(LEARNED, table(["symbol", "meaning", "samplers"], rows))


def listed(samplers):
    """Names in a cell of a table; no names stand for all samplers."""
    return ", ".join(f"`{name}`" for name in samplers) or "all"


def names_of_samplers():
    """{(name, kind): names of samplers}, of the parameters and of the statistics of their own."""
    from fastkam.samplers import SAMPLERS

    found = {}
    for sampler, cls in SAMPLERS.items():
        kinds = {"parameter": [field.name for field in dataclasses.fields(cls)],
                 "statistic": cls().stat_names}
        for kind, names in kinds.items():
            for name in names:
                found.setdefault((name, kind), []).append(sampler)
    return found


def learned_by_samplers():
    """{(symbol, meaning): names of samplers} of the learned fields."""
    from fastkam.samplers import SAMPLERS

    found = {}
    for sampler, cls in SAMPLERS.items():
        for name, field in cls().kernel_class().FIELDS.items():
            if field.learned:
                found.setdefault((name, field.meaning), []).append(sampler)
    return found


PAGES = {"samplers": with_overview, "names": with_samplers}


def fill_tables(app, docname, source):
    """Change the text of a page with tables."""
    if docname in PAGES:
        source[0] = PAGES[docname](source[0])


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", fill_tables)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
