"""The examples of a rule's page, each a small project."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PAGES = Path(__file__).parents[2] / "docs" / "reference" / "rules"
_FENCE = re.compile(r"^```(\w+)(?: +(\S+))?\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
_NAMES = {
    "python": "tasks.py",
    "yaml": "compose.yaml",
    "sh": "start.sh",
    "ini": "celery.service",
    "procfile": "Procfile",
}


@dataclass(frozen=True)
class Example:
    """Files by name; fences that follow each other without an empty line are one project."""

    files: dict[str, str]

    def write(self, folder: Path) -> None:
        for name, text in self.files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


def pages() -> list[str]:
    return sorted(page.stem for page in PAGES.glob("EO*.md"))


def section(code: str, title: str) -> str:
    text = (PAGES / f"{code}.md").read_text()
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return found[1] if found else ""


def examples(code: str, title: str) -> Iterator[Example]:
    text = section(code, title)
    files: dict[str, str] = {}
    end = 0
    for match in _FENCE.finditer(text):
        name = match[2] or _NAMES[match[1]]
        if files and text[end : match.start()]:
            yield Example(files)
            files = {}
        files[name] = match[3]
        end = match.end()
    if files:
        yield Example(files)
