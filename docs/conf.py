"""How Sphinx makes pages of this folder: `just docs`.

The files are read on their own too, where their code lies. So what only Sphinx needs is added here: the tree of pages
at the end of each page of contents.
"""

from importlib.metadata import version as installed
from typing import Any

project = "effectonce"
author = "the authors of effectonce"
version = release = installed("effectonce")
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["images/*"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
html_theme = "furo"
html_title = "effectonce"
# README, CONTRIBUTING and the source lie above this folder and are read there. Procfiles have no lexer that knows them.
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure"]

CONTENTS = {
    "index": {
        "Tutorial": "tutorial/*",
        "How to": "how-to/*",
        "Reference": ["reference/*", "reference/*/index"],
        "Explanation": "explanation/*",
        "По-русски": "ru/index",
        "For whoever changes it": "decisions/README",
    },
    "ru/index": {"По-русски": ["[1-9]*", "interview"]},
    "reference/rules/index": {"Rules": "EO*"},
    "reference/errors/index": {"Errors": "*"},
    "reference/doctor/index": {"Checks": "*"},
    "decisions/README": {"Decisions": "0*"},
}
"""For each page of contents its trees: caption and patterns of pages."""


def _add_contents(_app: Any, page: str, source: list[str]) -> None:
    for caption, patterns in CONTENTS.get(page, {}).items():
        lines = "\n".join([patterns] if isinstance(patterns, str) else patterns)
        source[0] += f"\n\n:::{{toctree}}\n:hidden:\n:glob:\n:caption: {caption}\n\n{lines}\n:::\n"


def setup(app: Any) -> None:
    """Listen for the pages that are read."""
    app.connect("source-read", _add_contents)
