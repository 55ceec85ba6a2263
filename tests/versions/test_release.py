"""What a user gets: wheel and sdist, installed where nothing of this checkout is."""

import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.versions.environments import PYTHONS, ROOT, Row, build, declared, environment, interpreter

FIRST_USE = """
from celery import Celery
from effectonce import EffectOnce, Leased, Transactional

app = Celery("first", broker="memory://")
once = EffectOnce(app, ledger="sqlite:///first.sqlite")


@app.task(once=Transactional("charge:{order_id}"))
def charge(order_id):
    print("ran")
    return order_id
"""
PAGE = ROOT / "docs" / "reference" / "versions.md"


@pytest.mark.soak
@pytest.mark.parametrize("python", PYTHONS)
def test_the_wheel_works_in_a_clean_environment(python: str, tmp_path: Path) -> None:
    if interpreter(python) is None:
        pytest.skip(f"this machine has no Python {python}")
    wheel, _ = build(tmp_path / "dist")
    program = environment(Row(python, lowest=False), str(wheel), tmp_path / "venv", tools=())
    (tmp_path / "first.py").write_text(FIRST_USE)

    def says(*words: str) -> str:
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    twice = "from first import charge; print(charge(7), charge(7))"
    assert says(str(program), "-c", twice) == "ran\n7 7\n"
    assert "charge:7" in says(str(program.with_name("celery")), "-A", "first", "once", "show", "charge:7")
    assert "charge:7" in says(str(program.with_name("effectonce")), "-A", "first", "show", "charge:7")
    assert "EO101" in says(str(program.with_name("effectonce")), "check", "--rules")


@pytest.mark.soak
def test_wheel_and_sdist_hold_what_they_should(tmp_path: Path) -> None:
    wheel, sdist = build(tmp_path)
    names = set(zipfile.ZipFile(wheel).namelist())
    inside = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*") if _is_shipped(path)}
    assert inside - names == set()
    assert {name for name in names if not name.startswith(("effectonce/", "effectonce-"))} == set()
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    with tarfile.open(sdist) as archive:
        held = {Path(*Path(name).parts[1:]) for name in archive.getnames()}
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    tracked = listing.stdout.splitlines()
    assert [name for name in tracked if not name.startswith(".") and Path(name) not in held] == []


def test_the_page_says_which_versions_are_the_lowest() -> None:
    text = PAGE.read_text()
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `")]
    shown = {cells[0].strip(" `"): cells[1].strip() for cells in rows}
    assert shown == dict(declared())


def _is_shipped(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts
