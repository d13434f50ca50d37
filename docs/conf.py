"""Settings of the documentation: `make docs` builds it in build/docs, runs every example and treats warnings as errors."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ.setdefault("OMP_NUM_THREADS", "1")  # examples run side by side

project = "slimsvm"
author = copyright = "The slimsvm developers"  # noqa: A001

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "plain_docstrings",
    "mathml",
]
# Links into other packages' pages need these packages' lists of names, so only a build that may go online makes them.
if os.environ.get("SLIMSVM_DOCS_ONLINE"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }
exclude_patterns = ["_templates"]
templates_path = ["_templates"]
suppress_warnings = ["myst.header"]  # notes on reliability may begin at any level

# Docstrings.
default_role = "literal"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Markdown.
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

# Examples: every script is run, and an error in one of them ends the build.
sphinx_gallery_conf = {
    "examples_dirs": ["../examples/start", "../examples/recipes"],
    "gallery_dirs": ["start", "recipes"],
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "within_subsection_order": "FileNameSortKey",
    "parallel": os.cpu_count() or 1,
    "backreferences_dir": "api/examples",
    "doc_module": ("slimsvm",),
    "capture_repr": (),  # only what is printed
    "show_memory": False,
    "min_reported_time": 1e9,  # times of a busy machine say nothing
    "show_signature": False,
    "remove_config_comments": True,
    "write_computation_times": False,
}

# The pages.
html_theme = "pydata_sphinx_theme"
html_title = "slimsvm"
html_static_path = ["_static"]
html_css_files = ["page.css"]
html_extra_path = ["llms.txt"]
html_show_sourcelink = False
html_math_renderer = "mathml"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_depth": 2,
    "show_prev_next": True,
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "install": [], "ideas": []}
