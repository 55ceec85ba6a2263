"""The public API as mypy, pyright and ty see it: a right program passes, and each wrong line is found."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

PROGRAM: Final = Path(__file__).parent / "program.py"
HERE: Final = Path(sys.executable).parent
CHECKERS: Final = {
    # What Celery leaves untyped is Celery's, and a user's own configuration says so.
    "mypy": ["--strict", "--config-file=", "--allow-untyped-decorators", "--disable-error-code=import-untyped"],
    "pyright": ["--pythonpath", sys.executable],
    "ty": ["check", "--python", sys.executable, "--output-format", "concise", "--color", "never"],
}
WRONG: Final = (
    'Leased("receipt:{x}", lease="thirty")',
    'Transactional("charge:{x}", on_duplicate="ignore")',
    'Leased("receipt:{x}", on_unknown="maybe")',
    'Unique("report:{day}", until="tomorrow")',
    "EffectOnce().entries.settle(7, Done(None))",
)
EACH: Final = pytest.mark.parametrize("checker", [pytest.param("mypy", marks=pytest.mark.soak), "pyright", "ty"])


def _checked(checker: str, file: Path, folder: Path) -> tuple[int, str]:
    """Run where no configuration of ours is found."""
    cache = [f"--cache-dir={folder / 'cache'}"] if checker == "mypy" else []
    command = [str(HERE / checker), *CHECKERS[checker], *cache, str(file)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@EACH
def test_a_program_that_uses_the_public_api_is_accepted(checker: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.read_text())
    code, said = _checked(checker, tmp_path / "program.py", tmp_path)
    assert code == 0, said


@EACH
def test_each_wrong_line_is_found(checker: str, tmp_path: Path) -> None:
    """So what is accepted above is accepted because it is right, and not because it is Any."""
    names = "from effectonce import Done, EffectOnce, Leased, Transactional, Unique\n"
    (tmp_path / "wrong.py").write_text(names + "\n".join(WRONG) + "\n")
    code, said = _checked(checker, tmp_path / "wrong.py", tmp_path)
    assert code == 1
    found = {int(line) for line in re.findall(r"wrong\.py:(\d+):.*error", said)}
    assert found == set(range(2, 2 + len(WRONG))), said
