"""Sphinx configuration.

Build with ``sphinx-build -W -n -b html docs docs/_build/html``. The finished pages
fetch nothing from the network (those of asv below ``speed`` do). The build needs none:
where there is one, names of NumPy, SciPy and scikit-learn become links to their pages.
While writing, ``-D plot_gallery=0`` leaves the scripts of the gallery out.
"""

import re
import sys
from pathlib import Path

from docutils.utils.math.latex2mathml import tex2mathml

import maxent

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

import inventories  # noqa: E402
import pictures  # noqa: E402
import project_files  # noqa: E402
import speed_history  # noqa: E402

project = "maxent"
author = "The maxent developers"
project_copyright = "The maxent developers"
version = release = maxent.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "matplotlib.sphinxext.plot_directive",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "page_heads",
    "project_files",
    "public_declarations",
    "reference_pages",
    "reference_sidebar",
]
templates_path = ["_templates"]
exclude_patterns = [
    "_build",
    "_extensions",
    "performance_tables.rst",
    "gallery/**/*.ipynb",
    "gallery/**/*.py",
]
default_role = "literal"
smartquotes = False
html_extra_path = speed_history.publish(HERE / "_build" / "extra")
rst_epilog = project_files.substitutions() + speed_history.substitution(html_extra_path)

# -- API reference ---------------------------------------------------------------------
autosummary_generate = True
autodoc_typehints = "none"  # types are in the docstrings
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the pages show them in full
numpydoc_class_members_toctree = False
toc_object_entries_show_parents = "hide"

# -- references that must resolve ------------------------------------------------------
nitpicky = True
# Other projects' objects: without a network their inventories are missing
nitpick_ignore_regex = [
    ("py:.*", r"(numpy|scipy|sklearn|matplotlib|pandas)\..*"),
]
intersphinx_mapping = inventories.fetch(HERE / "_build" / "inventories")
intersphinx_disabled_reftypes = ["*"]  # `doc` and `ref` are pages of ours

# -- pictures, drawn while building ----------------------------------------------------
plot_formats = [("svg", 96)]
plot_include_source = False
plot_html_show_source_link = False
plot_html_show_formats = False
plot_apply_rcparams = True
plot_rcparams = pictures.SETTINGS

# -- gallery: every script of examples/ is run -----------------------------------------
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"setup\.py",
    "within_subsection_order": "FileNameSortKey",
    "subsection_order": [
        f"../examples/{name}"
        for name in (
            *("discrimination", "generative", "detectors", "models"),
            *("kernels", "latent", "minentropy", "dask", "shell"),
        )
    ],
    "nested_sections": False,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("maxent",),
    "reference_url": {"maxent": None},
    "reset_modules": ("matplotlib", "pictures.apply_settings"),
    "image_srcset": ["2x"],
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "capture_repr": (),
    "download_all_examples": False,
    "copyfile_regex": "",
    "min_reported_time": 1e9,
}

# -- pages -----------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = f"maxent {version}"
html_favicon = "_static/favicon.svg"
html_last_updated_fmt = "%d %B %Y"
# Canonical links and addresses in heads of pages follow from this alone; it is empty
# until pyproject.toml has an address. `-D html_baseurl=https://...` is for a trial.
html_baseurl = project_files.published_urls().get("Documentation", "")
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_sidebars = {
    page: []
    for page in ("index", "performance", "errata", "reproductions/*", "symbols")
} | {"api/**": ["reference-nav"]}
html_theme_options = {
    "logo": {"text": "maxent"},
    "header_links_before_dropdown": 5,
    "navbar_align": "left",
    "navigation_with_keys": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["version-and-date"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "icon_links": [
        {"name": name, "url": url, "icon": "fa-solid fa-code-branch"}
        for name, url in project_files.published_urls().items()
        if name == "Source"
    ],
}
# prompts are not copied; output is not either
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"
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
