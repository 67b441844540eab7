"""Sphinx's configuration for the pages that build.py puts together."""

import re

project = 'Penstock'
author = 'The Penstock developers'
copyright = author
extensions = ['sphinx.ext.autodoc', 'sphinx.ext.napoleon', 'myst_parser']
exclude_patterns = ['README.md']
default_role = 'code'
html_theme = 'alabaster'
html_show_sourcelink = False
html_theme_options = {'description': 'Program transpiler and graph executor for distributed training',
                      'page_width': '1100px', 'sidebar_width': '240px'}
myst_heading_anchors = 3
napoleon_custom_sections = ['Reference']
napoleon_use_ivar = True    # attributes that are properties too have one entry
autodoc_typehints = 'none'
autodoc_member_order = 'bysource'
suppress_warnings = ['myst.header', 'ref.python']    # types of arguments are words, not links


def _indent_of(line):
    return len(line) - len(line.lstrip())


def _prepare(app, what, name, obj, options, lines):
    """Makes the code below `Example:` a code block, and text that is no markup of reStructuredText plain text."""
    made, at = [], 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.strip() != 'Example:':
            made.append(re.sub(r'(?<!`)([|*])(?=\w)|(?<=\w)_(?=[\s,.;:)]|$)', lambda found: '\\' + found[0], line))
            continue
        depth = _indent_of(line)
        made += [' ' * depth + '.. rubric:: Example', '', ' ' * depth + '.. code-block:: python', '']
        while at < len(lines) and (not lines[at].strip() or _indent_of(lines[at]) > depth):
            made.append(lines[at])
            at += 1
        made.append('')
    lines[:] = made


def setup(app):
    # Before napoleon's, which has priority 500.
    app.connect('autodoc-process-docstring', _prepare, priority=400)
