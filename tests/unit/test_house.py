"""The rules of the house that no other tool checks."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PYTHON = [*SOURCES, *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "bench").rglob("*.py"))]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "changelog.d").glob("*.md")),
]
PROSE = [*PAGES, *SOURCES]

DRAWERS = {"util", "helper", "manager", "handler", "common", "data", "info"}
TOO_MUCH = re.compile("exactly" + r"[\s-]+" + "once", re.IGNORECASE)
CLOCKS = {"now", "utcnow", "today", "uuid1", "uuid4", "uuid7"}
HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("golang", "org"),
        ("crates", "io"),
        ("rubygems", "org"),
        ("maven", "org"),
        ("deb", "debian", "org"),
    )
]


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _fences(text: str) -> list[list[str]]:
    return [block.splitlines()[1:] for block in re.findall(r"^```(.*?)^```", text, re.DOTALL | re.MULTILINE)]


def test_there_is_something_to_look_at() -> None:
    assert SOURCES
    assert len(PROSE) > len(SOURCES)


@pytest.mark.parametrize("path", PYTHON, ids=_name)
def test_a_file_has_at_most_400_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_a_function_has_at_most_50_lines(path: Path) -> None:
    lengths = {
        node.name: node.end_lineno - node.lineno + 1
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno
    }
    assert {name: length for name, length in lengths.items() if length > 50} == {}


@pytest.mark.parametrize("path", PYTHON, ids=_name)
def test_no_file_is_named_after_a_drawer(path: Path) -> None:
    parts = path.relative_to(ROOT).with_suffix("").parts
    words = {word.removesuffix("s") for part in parts for word in part.split("_")}
    assert not words & DRAWERS


@pytest.mark.parametrize("path", PROSE, ids=_name)
def test_no_text_promises_more_than_can_be_kept(path: Path) -> None:
    assert not TOO_MUCH.search(path.read_text())


@pytest.mark.parametrize("path", PAGES, ids=_name)
def test_the_links_between_pages_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("path", sorted((ROOT / "src/effectonce/domain").rglob("*.py")), ids=_name)
def test_the_domain_asks_no_clock_and_no_chance(path: Path) -> None:
    asked = set(_calls(path))
    assert not asked & CLOCKS


def test_imports_go_down_the_layers() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program, "--no-cache"], check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_first_code_block_of_the_readme_has_two_commands() -> None:
    commands = _fences((ROOT / "README.md").read_text())[0]
    assert len(commands) == 2
    assert commands[0].endswith("effectonce demo")
    assert commands[1].endswith("just test")


def test_the_code_of_the_readme_is_python() -> None:
    ast.parse("\n".join(_fences((ROOT / "README.md").read_text())[1]))


@pytest.mark.parametrize(("name", "most"), [("README.md", 119), ("AGENTS.md", 79)])
def test_a_first_page_is_short(name: str, most: int) -> None:
    assert len((ROOT / name).read_text().splitlines()) <= most


def test_no_tracked_file_names_the_host_of_a_registry() -> None:
    found = [
        f"{path}: {host}" for path in _tracked() for host in HOSTS if host in (ROOT / path).read_text(errors="replace")
    ]
    assert found == []


def test_no_tracked_file_is_a_lock_that_records_hosts() -> None:
    names = {Path(path).name for path in _tracked()}
    assert not names & {"uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock"}


def test_the_locks_hold_every_dependency_with_its_digest() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    groups = project["dependency-groups"]
    core = project["project"]["dependencies"]
    wanted = {
        "dev": [*core, *extras["test"], *extras["cli"], *extras["postgresql"], *extras["demo"], *extras["check"]]
        + [one for group in ("test", "lint", "house") for one in groups[group]],
        "demo": [*core, *extras["demo"], *extras["check"], *groups["build"]],
        "services": groups["services"],
    }
    for lock, requirements in wanted.items():
        missing = {_distribution(one) for one in requirements} - set(_locked(lock))
        assert not missing, f"requirements/{lock}.lock: run `just lock`"


@pytest.mark.parametrize("path", [path for path in PYTHON if path.name.startswith("test_")], ids=_name)
def test_no_test_sleeps(path: Path) -> None:
    assert "sleep" not in set(_calls(path))


def _calls(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def _tracked() -> list[str]:
    listing = subprocess.run(["git", "ls-files", "-z"], check=False, capture_output=True, text=True, cwd=ROOT)
    if listing.returncode:
        pytest.skip(f"not a git checkout: {listing.stderr.strip()}")
    return [path for path in listing.stdout.split("\0") if path and (ROOT / path).is_file()]


def _distribution(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None
    return re.sub(r"[._-]+", "-", name.group()).lower()


def _locked(lock: str) -> Iterator[str]:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text().replace("\\\n", " ")
    for line in text.splitlines():
        if line and not line.startswith((" ", "#")):
            assert "--hash=sha256:" in line
            yield line.partition("==")[0].partition("[")[0]
