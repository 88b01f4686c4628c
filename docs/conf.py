"""Configuration of the site; `make docs` builds it without the network."""

import os
import re
import sys
from pathlib import Path

from docutils import nodes

import manifoldry

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import api_pages  # noqa: E402  (found through the line above)
import gallery_runs  # noqa: E402  (found through the line above)

project = "manifoldry"
author = "The manifoldry developers"
copyright = author
version = release = manifoldry.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "api_links",
    "gallery_runs",
    "mathml",
]
exclude_patterns = ["_build", "_templates", "pictures", "studies", "**/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
needs_sphinx = "8.1"

# Inventories of other packages are on the network: links to them are asked for by INTERSPHINX=1.
if os.environ.get("INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
intersphinx_mapping = {
    "python": ("https://docs.python.org/3", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "scipy": ("https://docs.scipy.org/doc/scipy", None),
    "sklearn": ("https://scikit-learn.org/stable", None),
}

nitpicky = True
nitpick_ignore_regex = [("py:.*", r"sklearn\..*")]  # known only with the inventories

# -- Markdown and mathematics ----------------------------------------------------------------------

myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_update_mathjax = False
html_math_renderer = "mathml"
default_role = "code"
smartquotes = False  # types in docstrings have straight ones

# -- The API reference -----------------------------------------------------------------------------

api_pages.write(HERE / "api")
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc sections have the types
autodoc_member_order = "groupwise"
toc_object_entries_show_parents = "hide"
maximum_signature_line_length = 88
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_validation_checks = {
    "PR01",  # every parameter is documented
    "PR02",  # and exists
    "PR03",  # in the order of the signature
    "PR04",  # with its type
    "PR07",  # and a description
    "RT03",  # what is returned
    "SS02",  # a summary that begins with a capital letter
}

# -- The gallery -----------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "subsection_order": [f"../examples/{folder}" for folder in gallery_runs.EXAMPLES],
    "within_subsection_order": "gallery_runs.ReadingOrder",
    "filename_pattern": gallery_runs.executed(HERE.parent / "examples"),
    "ignore_pattern": r"demo\.py",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("manifoldry",),
    "reference_url": {"manifoldry": None},
    "image_srcset": ["2x"],
    "matplotlib_animations": (True, "jshtml"),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "capture_repr": (),
    "thumbnail_size": (640, 448),
    "reset_modules": ("matplotlib", "gallery_runs.forget_warning_filters"),
    "min_reported_time": 1e9,  # times depend on the machine
    "write_computation_times": False,
    "parallel": int(os.environ.get("JOBS", "1")),
}

# -- The theme -------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = f"manifoldry {version}"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "_static" / "scorer.js")
html_show_sourcelink = False
# Pages of the top level that have no pages below them.
html_sidebars = {page: [] for page in ("index", "glossary", "mathematics", "benchmarks")}
html_theme_options = {
    "logo": {"text": "manifoldry"},
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "collapse_navigation": True,  # else every page lists the whole API reference
    "navigation_with_keys": False,
    "show_prev_next": True,
    "show_toc_level": 2,
}
# Set by docs/versions.py, which builds one folder per version beside this file of all versions.
if switcher := os.environ.get("VERSIONS_JSON"):
    html_theme_options |= {
        "switcher": {"json_url": switcher, "version_match": os.environ["DOCS_VERSION"]},
        "check_switcher": False,  # the file is written after the pages
        "navbar_end": ["version-switcher", "theme-switcher"],
        "show_version_warning_banner": True,
    }
linkcheck_anchors = False
linkcheck_timeout = 20


def strip_code(app, doctree):
    """Remove the empty line that ends the expected output of a doctest in Markdown."""
    plain = (b for b in doctree.findall(nodes.literal_block) if isinstance(b[0], nodes.Text))
    for block in plain:
        block.rawsource = block.astext().rstrip("\n")
        block[:] = [nodes.Text(block.rawsource)]


def link_pages(app, what, name, obj, options, lines):
    """Turn the names of pages in docstrings, such as docs/choosing.md, into links."""
    lines[:] = [re.sub(r"`{0,2}docs/([\w/-]+)\.md`{0,2}", r":doc:`/\1`", line) for line in lines]


def setup(app):
    """Connect what is above."""
    app.connect("doctree-read", strip_code)
    app.connect("autodoc-process-docstring", link_pages)
