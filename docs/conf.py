"""Sphinx configuration: pip install -r docs/requirements.txt && sphinx-build -W docs build/site"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

project = "Glassbox GPT"
copyright = "the Glassbox GPT authors, MIT licence"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["requirements.txt"]
html_theme = "furo"
html_title = project
html_show_sphinx = False
myst_heading_anchors = 3
default_role = "code"
add_module_names = False
python_maximum_signature_line_length = 88
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_use_ivar = True
suppress_warnings = ["myst.header"]


def adapt(app: Sphinx, name: str, source: list[str]) -> None:
    """Use README.md without the Space's header as the first page, and turn links to files outside docs/ into text."""
    if name == "index":
        readme = (ROOT / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2]
        readme = re.sub(r"\]\((?!https?:|docs/|#)", "](../", readme).replace("](docs/", "](")
        source[0] = f"{readme}\n{source[0]}"
    source[0] = source[0].replace("](../README.md)", "](index.md)")
    source[0] = re.sub(r"(?<!!)\[([^\]]+)\]\(\.\./[^)]+\)", r"\1", source[0])


def list_names(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Format docstring lines such as "layer: Index of the layer." as a list. Napoleon handles indented sections."""
    shown: list[str] = []
    is_item = False
    for line in lines:
        named = re.match(r"((?:\w+, )*\w+)(?: \([^)]*\))?: (?=\S)", line)
        if named:
            shown += ([] if is_item else [""]) + [f"* **{named[1]}**{line[len(named[1]) :]}"]
            is_item = True
        elif is_item and line.strip() and (line.startswith(" ") or not line[0].isupper()):
            shown.append(f"  {line.strip()}")
        else:
            shown += [""] * is_item + [line]
            is_item = False
    lines[:] = shown


def setup(app: Sphinx) -> None:
    app.connect("source-read", adapt)
    app.connect("autodoc-process-docstring", list_names, priority=400)  # before napoleon
