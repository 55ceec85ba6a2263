"""The project's own tests, run as its people run them: a test database is made, used and dropped."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CASES = "tests.integration.django.books.testcases"


ORDINARY = [("sqlite_url", False), ("postgresql_url", True)]
ALL = [
    (database, migrations)
    for database in ("sqlite_url", "postgresql_url", "mariadb_url")
    for migrations in (True, False)
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("database", "migrations"),
    [pytest.param(*case, marks=() if case in ORDINARY else pytest.mark.soak) for case in ALL],
)
def test_tasks_run_inside_test_cases(request: pytest.FixtureRequest, database: str, migrations: bool) -> None:
    settings = "settings" if migrations else "unmigrated"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "django", "test", CASES, "-p", "testcases.py", "--noinput"],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": f"tests.integration.django.{settings}",
            "PROJECT_DATABASE": request.getfixturevalue(database),
        },
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    assert "Ran 15 tests" in done.stderr
