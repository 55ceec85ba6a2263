"""The documentation can be made into pages: every page is found from the first one, and no link of it is dead."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_pages_are_built_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "dummy", str(DOCS), str(tmp_path)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")


@pytest.mark.parametrize("page", sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")))
def test_every_link_to_a_file_finds_it(page: str) -> None:
    text = re.sub(r"```.*?```", "", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link]
    assert [link for link in links if not ((DOCS / page).parent / link).exists()] == []
