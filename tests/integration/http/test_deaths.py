"""A process that is killed in the middle of a request leaves all of its work or none, and the key goes on."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from effectonce.lab.process_tree import wait_until

ROOT = Path(__file__).parents[3]


def die(ledger: str, kind: str, form: str, point: str) -> None:
    """Serve one request in a process that does not survive it."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.integration.http.dying", ledger, kind, form],
        env={**os.environ, "EFFECTONCE_CRASH": point},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -9, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("kind", "point"),
    [
        ("wsgi", "claim.after"),
        ("asgi", "settle.after"),
        ("wsgi", "commit.before"),
        ("asgi", "commit.after"),
        pytest.param("wsgi", "body.after", marks=pytest.mark.soak),
        pytest.param("asgi", "dispatch.before", marks=pytest.mark.soak),
        pytest.param("wsgi", "dispatch.after", marks=pytest.mark.soak),
    ],
)
def test_a_request_whose_process_dies_takes_effect_once(
    sites: Callable[..., Any], postgresql_url: str, kind: str, point: str
) -> None:
    site = sites(kind, postgresql_url)
    die(postgresql_url, kind, "ours", point)
    committed = point in {"commit.after", "dispatch.before", "dispatch.after"}
    assert site.numbers == ([1] if committed else [])
    assert len(site.once.outbox_store().waiting(stage=None, limit=9)) == int(committed)
    answers: list[Any] = []

    def asks() -> bool:
        answers.append(site.post())
        return bool(answers[-1].status == 201)

    assert wait_until(asks, seconds=30)
    assert {answer.status for answer in answers[:-1]} <= {409}
    assert answers[-1].is_replay is committed
    assert site.numbers == [1]


def test_the_weaker_form_may_repeat_what_a_dying_process_committed_by_itself(
    sites: Callable[..., Any], sqlite_url: str
) -> None:
    """It is stated so: what the endpoint commits by itself is not undone, and its answer was not recorded."""
    site = sites("wsgi", sqlite_url)
    die(sqlite_url, "wsgi", "own", "body.after")
    assert site.numbers == [1]
    assert wait_until(lambda: site.post().status == 201, seconds=30)
    assert site.numbers == [1, 1]
