"""Sphinx configuration: `make docs` builds the site into build/docs."""

project = "Chainrule"
author = "The Chainrule authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_dmath_double_inline = True
myst_heading_anchors = 3
html_theme = "furo"
html_title = "Chainrule"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
exclude_patterns = ["build"]
