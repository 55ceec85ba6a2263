"""A process that is killed while it serves a request leaves all of it or none, and the next one goes on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def serve(database: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """Serve the request in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tests.integration.django.serving"],
        env={**os.environ, "PROJECT_DATABASE": database, **env},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


@pytest.mark.parametrize(
    ("point", "is_replay"),
    [
        ("commit.before", False),
        pytest.param("settle.after", False, marks=pytest.mark.soak),
        pytest.param("commit.after", True, marks=pytest.mark.soak),
    ],
)
def test_a_request_whose_process_dies_takes_effect_once(sqlite_url: str, point: str, is_replay: bool) -> None:
    killed = serve(sqlite_url, EFFECTONCE_CRASH=point)
    assert killed.returncode == -9, killed.stdout + killed.stderr
    lived = serve(sqlite_url)
    assert lived.stdout == f"(201, {is_replay}, 1, {int(is_replay)})\n", lived.stderr
