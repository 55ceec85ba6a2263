"""Throw-away environments: which Python, which versions, and the wheel in them."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
EXTRAS: Final = "django,web,metrics,otel,cli,test,postgresql,check,mysql,schema"
SHOWN: Final = ("celery", "kombu", "SQLAlchemy", "redis", "Django")
# Tools of the tests have no lower bound that we promise; a kombu newer than its Celery is nobody's lock file.
TOOLS: Final = (
    *("pytest-timeout", "pytest-xdist", "hypothesis", "requests", "httpx", "boto3", "gevent", "django-celery-beat"),
    "celery-redbeat",
)
WITH_OLD_CELERY: Final = ("kombu==5.4.*",)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: *python* (``"3.12"``), and whether the *lowest* versions are wanted."""

    python: str
    lowest: bool

    @property
    def name(self) -> str:
        """As it is chosen: ``lowest-3.11``."""
        return f"{'lowest' if self.lowest else 'newest'}-{self.python}"


ROWS: Final = (Row(PYTHONS[0], lowest=True), *(Row(python, lowest=False) for python in PYTHONS))


def declared() -> Mapping[str, str]:
    """The lowest version of each package that the project and its extras name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(one for name in EXTRAS.split(",") for one in extras[name])]
    found = [re.match(r"([\w.-]+?)(?:\[\w+\])?>=([\d.]+)", one) for one in wanted]
    return {match[1]: match[2] for match in found if match}


def interpreter(python: str) -> str | None:
    """The path of this Python, if the machine has it; `uv` knows where to look, and pyenv's folders are shown to it."""
    done = _uv("python", "find", "--no-python-downloads", "--no-project", python, check=False)
    return done.stdout.strip() or None if done.returncode == 0 else None


def build(folder: Path) -> tuple[Path, Path]:
    """Wheel and sdist, the wheel made from what the sdist holds."""
    _uv("build", "--no-build-isolation", "--python", sys.executable, "--out-dir", str(folder), str(ROOT))
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def environment(row: Row, wheel: str, folder: Path, *, tools: Sequence[str] = TOOLS) -> Path:
    """Its Python, with *wheel* (a path, with extras if any) and the *tools* installed."""
    found = interpreter(row.python)
    assert found is not None, f"this machine has no Python {row.python}"
    _uv("venv", "--python", found, str(folder))
    limits = folder / "limits.txt"
    lowest = [*(f"{name}=={version}" for name, version in declared().items()), *WITH_OLD_CELERY]
    limits.write_text("\n".join(lowest if row.lowest else ()))
    python = folder / "bin" / "python"
    _uv("pip", "install", "--python", str(python), "--constraints", str(limits), wheel, *tools)
    return python


def installed(python: Path) -> Mapping[str, str]:
    """The versions of what matters most."""
    code = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    done = subprocess.run([python, "-c", code, *SHOWN], capture_output=True, text=True, check=True)
    return dict(zip(SHOWN, done.stdout.split(), strict=True))


def _uv(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([*_folders_of_pyenv(), os.environ["PATH"]])
    program = Path(sys.executable).with_name("uv")
    done = subprocess.run(
        [program, *words], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def _folders_of_pyenv() -> Iterator[str]:
    home = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from (str(folder) for folder in sorted(home.glob("versions/*/bin")))
