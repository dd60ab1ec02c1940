"""The documentation site: `sphinx-build -W -b html docs build/site` (see docs/contributing.md)."""

import importlib.metadata
import os
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "extensions"))

project = "fastkam"
author = "the fastkam developers"
copyright = "the fastkam developers"
version = release = importlib.metadata.version("fastkam")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "cards_of_gallery",
    "contents_of_tables",
    "docstrings",
    "shown_references",             # before links_outside, which changes their links
    "links_outside",
    "missing_packages",
    "samplers_in_tables",           # before titles_of_links, which adds titles to their links
    "titles_of_links",
]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}     # autosummary takes the first
templates_path = ["templates"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

# SITE_EXECUTE=off builds the pages without running the gallery: for a quick look, and for CI
nb_execution_mode = os.environ.get("SITE_EXECUTE", "cache")
suppress_warnings = ["myst-nb.lexer"] if nb_execution_mode == "off" else []
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_output_stderr = "remove"         # progress bars; that runs warn of nothing is tested

autosummary_generate = True
default_role = "py:obj"             # `x` in a docstring: a link, if there is a page of x
autodoc_typehints = "none"          # the docstrings say what each argument is
autodoc_member_order = "bysource"

html_theme = "furo"
html_title = "fastkam"
html_theme_options = {"light_css_variables": {"code-font-size": "0.76rem"}}     # 95 columns
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
copybutton_exclude = ".linenos, .gp, .go"
