"""The page of each rule: what it finds, why it hurts, how to mend it, when it is wrong, examples.

The pages are part of the documentation. An installed package carries a copy beside this file; a checkout has them in
`docs/`.
"""

from pathlib import Path
from typing import Final

_PLACES: Final = (
    Path(__file__).with_name("pages"),
    Path(__file__).parents[3] / "docs" / "reference" / "rules",
)


def page(code: str) -> str | None:
    """The text of the page of *code*, or None where there is none."""
    for place in _PLACES:
        file = place / f"{code}.md"
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return None
