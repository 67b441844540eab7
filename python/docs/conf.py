"""Sphinx's configuration for the pages that build.py puts together."""

import re

from docutils import nodes

project = "Penstock"
author = "The Penstock developers"
copyright = author
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_parser", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["README.md"]
default_role = "code"
smartquotes = False  # `--flag` in a sentence keeps its dashes
html_theme = "furo"
html_title = "Penstock"
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["penstock.css"]
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
copybutton_exclude = ".linenos, .gp"
copybutton_selector = "div.highlight-python pre, div.highlight-sh pre, div.highlight-json pre"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
napoleon_custom_sections = ["Reference"]
napoleon_use_ivar = True  # attributes that are properties too have one entry
autodoc_typehints = "none"
autodoc_member_order = "bysource"
suppress_warnings = ["myst.header", "ref.python"]  # types of arguments are words, not links


def _indent_of(line):
    return len(line) - len(line.lstrip())


def _prepare(app, what, name, obj, options, lines):
    """Makes the code below `Example:` a code block, and text that is no markup of reStructuredText plain text."""
    made, at = [], 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.strip() != "Example:":
            made.append(re.sub(r"(?<!`)([|*])(?=\w)|(?<=\w)_(?=[\s,.;:)]|$)", lambda found: "\\" + found[0], line))
            continue
        depth = _indent_of(line)
        made += [" " * depth + ".. rubric:: Example", "", " " * depth + ".. code-block:: python", ""]
        while at < len(lines) and (not lines[at].strip() or _indent_of(lines[at]) > depth):
            made.append(lines[at])
            at += 1
        made.append("")
    lines[:] = made


def _navigation(app, page, template, context, doctree):
    """Makes the sidebar's tree small: the sections on the front page, the open branch on all others. Furo's own has
    every page of the documentation on every page, which takes half of the time of a build."""
    whole = context.get("toctree")
    if whole:
        ours = {"collapse": True, "maxdepth": 1} if page == "index" else {"collapse": True}
        context["toctree"] = lambda **options: whole(**{**options, **ours})


def _dashes(app, doctree):
    """Sets a dash between an argument and its text, which Sphinx leaves to the smart quotes that are off."""
    for text in list(doctree.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" \N{EN DASH} "))


def setup(app):
    app.connect("doctree-read", _dashes)
    # Before napoleon's, which has priority 500.
    app.connect("autodoc-process-docstring", _prepare, priority=400)
    # Before Furo's, which computes the tree.
    app.connect("html-page-context", _navigation, priority=400)
