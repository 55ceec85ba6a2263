"""The table of cases names tests that exist, and every test that names a case stands in the table."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "how-we-test.md"
CITED = re.compile(r"`([\w/.]+\.py)::(test_\w+)`")
CASE = re.compile(r"\bA\d\d\b")
LATER = (
    "the outbox|the doctor|the checker|the keeper of visibility|the history|the lab|the pinned costs|beat|Django|steps"
    "|gevent|`at_send=|`on_busy=|no test of its own"
)


def _file(cited: str) -> Path:
    return ROOT / cited if cited.startswith("src/") else ROOT / "tests" / cited


def _tests(file: Path) -> Mapping[str, str]:
    """The tests of a file with their docstrings."""
    return {
        node.name: ast.get_docstring(node) or ""
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def _rows() -> Iterator[tuple[str, str]]:
    """What went wrong (or the number of its case), and what covers it."""
    for line in PAGE.read_text().partition("## Cases from")[2].splitlines():
        cells = line.strip("|").split(" | ")
        if line.startswith("| ") and not line.startswith(("| case", "| what |")):
            yield cells[0].strip(), cells[-1]


def test_every_test_that_the_page_names_exists() -> None:
    cited = sorted(set(CITED.findall(PAGE.read_text())))
    assert cited
    assert [f"{file}::{name}" for file, name in cited if name not in _tests(_file(file))] == []


def test_every_row_names_a_test_or_what_it_waits_for() -> None:
    assert [what for what, by in _rows() if not CITED.search(by) and not re.search(LATER, by)] == []


def test_every_case_stands_in_the_table_once_and_in_order() -> None:
    numbers = [what for what, _ in _rows() if CASE.fullmatch(what)]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 70


def test_every_test_that_names_a_case_stands_in_its_row() -> None:
    rows = {what: by for what, by in _rows() if CASE.fullmatch(what)}
    files = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "src/effectonce/testing").rglob("*.py")]
    named = {(case, name) for file in files for name, says in _tests(file).items() for case in CASE.findall(says)}
    assert {(case, name) for case, name in named if f"::{name}`" not in rows.get(case, "")} == set()


def test_every_test_in_a_row_names_the_case() -> None:
    says = {(file, name): _tests(_file(file)).get(name, "") for _, by in _rows() for file, name in CITED.findall(by)}
    missing = {
        f"{what}: {file}::{name}"
        for what, by in _rows()
        if CASE.fullmatch(what)
        for file, name in CITED.findall(by)
        if what not in says[file, name]
    }
    assert missing == set()
