"""Tables of the reference, as a test reads them."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

PAGES: Final = Path(__file__).parents[2] / "docs" / "reference"


def rows(page: str, *, after: str = "# ") -> Iterator[list[str]]:
    """The cells of each row of the tables that stand under the heading *after*; heads are left out."""
    text = (PAGES / page).read_text()
    part = text[text.index(after) :]
    rest = re.split(r"^#+ ", part[len(after) :], maxsplit=1, flags=re.MULTILINE) if after != "# " else [part]
    for line in rest[0].splitlines():
        if re.match(r"\| (\[|`|\d)", line):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def named(page: str, *, after: str = "# ") -> Mapping[str, list[str]]:
    """The rows by their first cell."""
    return {row[0].strip("` "): row for row in rows(page, after=after)}
