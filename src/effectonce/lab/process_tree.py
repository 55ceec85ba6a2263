"""A process and its descendants, asked from the system."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path


def children(pid: int) -> list[int]:
    """Return the processes whose parent is *pid*, dead ones that nobody waited for left out."""
    return [child for child, parent in _parents() if parent == pid and is_alive(child)]


def descendants(pid: int) -> list[int]:
    """Return the processes below *pid*, parents before children."""
    families: dict[int, list[int]] = {}
    for child, parent in _parents():
        families.setdefault(parent, []).append(child)
    found: list[int] = []
    parents = [pid]
    while parents:
        below = families.get(parents.pop(), [])
        found += below
        parents += below
    return found


def is_alive(pid: int) -> bool:
    """Tell whether *pid* runs; one that has ended and was not waited for does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    stat = _stat(pid)
    return stat is None or stat[0] != "Z"


def wait_until(condition: Callable[[], bool], *, seconds: float = 20.0, every: float = 0.01) -> bool:
    """Ask again and again until *condition* holds; tell whether it did in time.

    For what no event announces, such as the end of a process that is not our child.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True


def _parents() -> list[tuple[int, int]]:
    if Path("/proc/self/stat").exists():
        numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
        return [(pid, int(stat[1])) for pid in numbers if (stat := _stat(pid))]
    ps = shutil.which("ps") or "/bin/ps"
    listing = subprocess.run(  # noqa: S603 - the system's own ps
        [ps, "-axo", "pid=,ppid="], check=True, capture_output=True, text=True
    ).stdout
    return [(int(pid), int(parent)) for pid, parent in (line.split() for line in listing.splitlines())]


def _stat(pid: int) -> list[str] | None:
    """Return state, parent, ... of *pid* on Linux; the name before them may hold spaces and parentheses."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return None
