"""The site: each page is in its table of contents, each public name in the reference."""

import importlib.util
import inspect
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import fastkam as fk
from fastkam.samplers import SAMPLERS

DOCS = Path(__file__).parents[2] / "docs"
MODULES = {name for name in fk.__all__ if inspect.ismodule(getattr(fk, name))}
ENTRY = re.compile(r"^   ([A-Za-z_][\w.]*)$", re.M)


def extension(name):
    """An extension of the site, as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "extensions" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def listed():
    """The pages in tables of contents, found from the first page on."""
    contents = extension("contents_of_tables")
    found, to_read = set(), [DOCS / "index.md"]
    while to_read:
        page = to_read.pop()
        if page in found:
            continue
        found.add(page)
        if page.stem in contents.LISTING:
            to_read += [(page.parent / name).resolve()
                        for _, names in contents.contents(page.read_text()) for name in names]
    return found


def test_each_page_is_listed():
    pages = {path for end in ("md", "rst") for path in DOCS.rglob(f"*.{end}")
             if not {"generated", "templates"} & set(path.relative_to(DOCS).parts)}
    assert {str(page.relative_to(DOCS)) for page in pages ^ listed()} == set()


def test_contents_are_those_of_the_tables():
    text = ("# A\n\n| a | [b](b.md) |\n\nSee [c](c.md).\n\n## D\n\n- [e](e/f.rst): e\n"
            "| [b](b.md) | [x](https://x.md) |\n")
    assert extension("contents_of_tables").contents(text) == [
        (None, ["b.md"]), ("D", ["e/f.rst", "b.md"])]


def public():
    """The functions and classes of fastkam, and of those of its modules that list their names."""
    names = {name for name in fk.__all__ if name not in MODULES and name != "__version__"}
    for module in MODULES:
        of = getattr(fk, module)
        values = {name: getattr(of, name) for name in getattr(of, "__all__", ())}
        names |= {name if getattr(fk, name, None) is value else f"{module}.{name}"
                  for name, value in values.items() if callable(value)}
    return names


def in_the_reference():
    pages = sorted((DOCS / "api").glob("*.rst"))
    return [name for page in pages for name in ENTRY.findall(page.read_text())]


def test_each_public_name_is_in_the_reference_once():
    names = in_the_reference()
    assert len(names) == len(set(names))
    assert sorted(public() - set(names)) == []


@pytest.mark.parametrize("name", in_the_reference())
def test_the_reference_lists_existing_documented_names(name):
    value = fk
    for part in name.split("."):
        value = getattr(value, part)
    assert inspect.getdoc(value)


def test_docstrings_are_translated():
    pytest.importorskip("sphinx")
    translated = extension("docstrings").translated
    lines = ["P(|x| > 1), `a|b`, ``|`` and ``a|b``, (k, *shape).", "", "    y = |x|", "    z", "",
             "Parameters", "----------", "x : int", "    The |x|.", ""]
    assert translated(lines) == [
        r"P(\|x\| > 1), `a|b`, ``|`` and ``a|b``, (k, \*shape).", "", "::", "",
        "    y = |x|", "    z", "",
        "Parameters", "----------", "x : int", r"    The \|x\|.", ""]


def test_links_to_other_files_of_the_repository(monkeypatch):
    outside = extension("links_outside")
    page = DOCS / "install.md"

    def shown(text, address):
        return outside.LINK.sub(lambda link: outside.leading(link, page, DOCS, address), text)

    assert shown("[a](../LICENSE)", "https://x/y") == "[a](https://x/y/blob/main/LICENSE)"
    assert shown("[a](../bench)", "https://x/y") == "[a](https://x/y/tree/main/bench)"
    assert shown("[`a`](../LICENSE)", None) == "{download}`a <../LICENSE>`"
    assert shown("[`a`](../bench)", None) == "`a`"
    for text in ("[a](plots.md)", "[a](../docs/plots.md)", "[a](../no_such_file)",
                 "![a](../LICENSE)"):
        assert shown(text, "https://x/y") == text
    monkeypatch.setenv("SITE_REPOSITORY", "https://x/y")
    assert outside.repository() == "https://x/y"


def test_links_by_the_name_of_a_file_have_titles():
    text = "[plots.md](plots.md), [a.md](../b/a.md#c), [the page](plots.md), [a.md](b.md)"
    assert extension("titles_of_links").with_titles(text) == (
        "[](plots.md), [](../b/a.md#c), [the page](plots.md), [a.md](b.md)")


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_reference_implementation_is_shown_below_the_formula(name):
    text = extension("shown_references").with_references((DOCS / "samplers.md").read_text(), DOCS)
    section = re.search(rf"^## {name}: .*?(?=^## |\Z)", text, re.M | re.S)[0]
    path, code = re.search(r"{literalinclude} (\S+)\n:pyobject: (\w+)\n", section).groups()
    assert f'class {code}(' in (DOCS / path).read_text()
    assert f'of="{name}"):' in (DOCS / path).read_text()


def test_the_gallery_shows_the_first_figure_of_each_page():
    nodes = pytest.importorskip("docutils.nodes")
    pages = {"gallery/a": nodes.container("", nodes.image(uri="lost.png"),
                                          nodes.image(uri="a.png"), nodes.image(uri="b.png")),
             "c": nodes.container()}
    env = SimpleNamespace(images={"a.png": None, "b.png": None}, get_doctree=pages.get)
    links = [nodes.reference(refuri=page) for page in ("a.html", "../c.html", "a.html")]
    cells = [nodes.entry("", nodes.paragraph("", "", link)) for link in links]
    table = nodes.table("", nodes.tgroup("", nodes.tbody(
        "", nodes.row("", cells[0], cells[2]), nodes.row("", cells[1]))))
    add = extension("cards_of_gallery").add_figures
    add(SimpleNamespace(env=env), nodes.container("", table), "index")
    assert not table["classes"]
    add(SimpleNamespace(env=env), nodes.container("", table), "gallery/index")
    assert [[image["uri"] for image in link] for link in links] == [["a.png"], [], []]
    assert table["classes"] == ["cards"]


def rows(text):
    """The cells of each row of a text's tables."""
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]


def test_a_table_of_the_samplers_is_made_of_the_first_sentences_of_their_sections():
    tables = extension("samplers_in_tables")
    text = (DOCS / "samplers.md").read_text()
    made = tables.overview(text)
    assert sorted(name for name, *_ in made) == sorted(f"`{name}`" for name in SAMPLERS)
    idea = "A random walk with the covariance of the chain so far"
    assert ["`am`", idea, "the covariance", "O(d²)"] in rows(tables.with_overview(text))


def test_the_names_of_parameters_get_their_samplers():
    made = rows(extension("samplers_in_tables").with_samplers((DOCS / "names.md").read_text()))
    samplers = {tuple(row[:2]): row[-1] for row in made}
    assert samplers["`betas`", "parameter"] == "`pt`"
    assert samplers["`max_energy_error`", "statistic"] == "`nuts`, `hmc`"
    assert samplers["`lp`", "statistic"] == "all"
    assert samplers["`mu`", "learned mean"].startswith("`am`, `rbam`, `gam`, `dram`, `arwm`, ")


def test_the_first_page_has_the_example_of_the_readme():
    block = re.compile(r"^```(?:python|text)\n.*?^```$", re.M | re.S)
    first, readme = (block.findall(page.read_text())[:2]
                     for page in (DOCS / "index.md", DOCS.parent / "README.md"))
    assert first == readme


def test_figures_are_inverted_on_dark_pages_only():
    """In CSS `not print and (...)` is the negation of all of it: true on light pages, too."""
    text = (DOCS / "static" / "site.css").read_text()
    assert re.findall(r"@media (.*) \{\n +body(.*) article img \{ filter: invert", text) == [
        ("screen", '[data-theme="dark"]'),
        ("screen and (prefers-color-scheme: dark)", ':not([data-theme="light"])')]
    assert text.count("invert(") == 2
