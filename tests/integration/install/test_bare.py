"""An install without any extra."""

import subprocess
import sys


def test_tasks_and_commands_need_no_extra(sqlite_url: str) -> None:
    """A module that loads an optional package at its top breaks everybody who has not installed it."""
    command = [sys.executable, "-m", "tests.integration.install.bare", sqlite_url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("ran ran [1, 1, 1, 1]\n")
    assert "completed" in done.stdout
