"""Configuration of the site: MyST pages, reference from docstrings, gallery."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

# One thread of BLAS per worker of a parallel build.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Pages must not depend on downloaded data.
os.environ.pop("IKPCA_DATA", None)
os.environ["IKPCA_OFFLINE"] = "1"

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

import ikpca

project = "ikpca"
author = "The ikpca developers"
copyright = "the ikpca developers"
version = release = ikpca.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
    "mathml",
    "public_names",
    "measured_tables",
    "verdicts",
]

exclude_patterns = [
    "examples",
    "gallery/**/*.ipynb",
    "gallery/**/*.py",
    "benchmarks/records",
]
templates_path = ["_templates"]
root_doc = "index"
default_role = "any"
nitpicky = True
# Only references to names of this repository must resolve.
nitpick_ignore_regex = [(r"py:.*", r"(?!ikpca(?:_papers)?\.).*")]

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist", "substitution"]
myst_heading_anchors = 3
_contracts = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))["tool"][
    "importlinter"
]
_layers = " > ".join(_contracts["contracts"][0]["layers"])
myst_substitutions = {"layers": f"`{_layers}`"}

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
# Straight quotes, so that values such as "auto" can be copied.
smartquotes_action = "De"
# Longer signatures have one parameter per line.
python_maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"

plot_include_source = False
plot_html_show_formats = False
plot_html_show_source_link = True
plot_formats = [("svg", 100)]
# Matplotlib's template with the link to the source in the caption.
plot_template = """
{{ source_code }}

{% for img in images %}
.. figure:: {{ build_dir }}/{{ img.basename }}.{{ default_fmt }}
   {% for option in options -%}
   {{ option }}
   {% endfor %}

   {{ caption.split() | join(" ") }}
   {% if src_name -%}
   :download:`how this was drawn <{{ build_dir }}/{{ src_name }}>`
   {% endif %}

{% endfor %}
"""
plot_rcparams = {"svg.fonttype": "path"}

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "subsection_order": ["examples/tasks", "examples/papers"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "plot_gallery": "True",
    "matplotlib_animations": False,
    "image_scrapers": ("matplotlib", "loose_figures.loose_figures"),
    "abort_on_example_error": True,
    "doc_module": ("ikpca", "ikpca_papers"),
    "reference_url": {"ikpca": None, "ikpca_papers": None},
    "write_computation_times": False,
    "capture_repr": (),
    # For screens of high resolution.
    "image_srcset": ["2x"],
    "parallel": int(os.environ.get("IKPCA_DOCS_JOBS", "0")) or False,
}

html_theme = "pydata_sphinx_theme"
html_title = "ikpca"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "start": [], "benchmarks/index": [], "reproduction": []}
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "header_links_before_dropdown": 8,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "navigation_with_keys": False,
    "search_bar_text": "Search",
    "logo": {"text": "ikpca"},
}
html_math_renderer = "mathml"
