"""Where programs of servers are on this machine."""

import importlib.util
import os
import re
import shutil
from pathlib import Path

BEFORE_PATH = (
    "/usr/lib/rabbitmq/bin",  # Debian's programs of the same name on the PATH insist on a standard folder
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
)
BEHIND_PATH = ("/opt/homebrew/bin", "/opt/homebrew/sbin", "/usr/local/sbin", "/usr/sbin")


def find(name: str) -> Path | None:
    """Return the program *name* of its newest version, or None."""
    found = _in_folders(name, BEFORE_PATH)
    if found:
        return found
    on_path = shutil.which(name)
    return Path(on_path) if on_path else _in_folders(name, BEHIND_PATH)


def package_folder(module: str) -> Path | None:
    """Return where the package *module* is installed, without importing it."""
    spec = importlib.util.find_spec(module)
    return Path(spec.origin).parent if spec and spec.origin else None


def _in_folders(name: str, patterns: tuple[str, ...]) -> Path | None:
    for pattern in patterns:
        for folder in sorted(Path("/").glob(pattern.lstrip("/")), key=_version, reverse=True):
            if os.access(folder / name, os.X_OK):
                return folder / name
    return None


def _version(folder: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(folder))]
