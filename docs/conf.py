"""Sphinx configuration.

Build with ``sphinx-build -W -n -b html docs docs/_build/html``. Nothing is fetched from
the network, neither at build time nor by the finished pages.
"""

import re
import sys
from pathlib import Path

from docutils.utils.math.latex2mathml import tex2mathml

import maxent

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "maxent"
author = "The maxent developers"
project_copyright = "The maxent developers"
version = release = maxent.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "matplotlib.sphinxext.plot_directive",
    "reference_pages",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_extensions", "performance_tables.rst"]
default_role = "literal"
smartquotes = False

# -- API reference ---------------------------------------------------------------------
autosummary_generate = True
autodoc_typehints = "none"  # types are in the docstrings
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the pages show them in full
numpydoc_class_members_toctree = False

# -- references that must resolve ------------------------------------------------------
nitpicky = True
# Other projects' objects: their inventories would have to be fetched from the network.
nitpick_ignore_regex = [
    ("py:.*", r"(numpy|scipy|sklearn|matplotlib|pandas)\..*"),
]

# -- pictures, drawn while building ----------------------------------------------------
plot_formats = [("svg", 96)]
plot_include_source = False
plot_html_show_source_link = False
plot_html_show_formats = False
plot_apply_rcparams = True
plot_rcparams = {
    "figure.figsize": (7.2, 3.2),
    "figure.constrained_layout.use": True,
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "maxent",  # the same picture gives the same bytes
}

# -- pages -----------------------------------------------------------------------------
html_theme = "furo"
html_title = f"maxent {version}"
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
html_math_renderer = "mathml"


def _mathml(node, block):
    """The formula as MathML, which browsers show without any script."""
    # `display` is set here because docutils changed how its converter takes it
    markup = re.sub(r'\sdisplay="\w+"', "", tex2mathml(node.astext()), count=1)
    display = "block" if block else "inline"
    return markup.replace("<math ", f'<math display="{display}" ', 1)


def _inline_formula(translator, node):
    from docutils.nodes import SkipNode

    translator.body.append(_mathml(node, block=False))
    raise SkipNode


def _displayed_formula(translator, node):
    from docutils.nodes import SkipNode

    translator.body.append(f'<div class="math">{_mathml(node, block=True)}</div>\n')
    raise SkipNode


def setup(app):
    """Register the MathML renderer."""
    app.add_html_math_renderer(
        "mathml", (_inline_formula, None), (_displayed_formula, None)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
