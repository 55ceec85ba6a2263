"""An old project with three unsafe tasks: the checker finds them, they are mended, and prove and doctor agree."""

import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

BEFORE = """
import uuid

from celery import Celery
from sqlalchemy import create_engine, text

app = Celery("shop", broker="memory://", backend="cache+memory://")
engine = create_engine("sqlite:///shop.sqlite")


@app.task
def charge(order_id, amount):
    key = str(uuid.uuid4())
    with engine.begin() as connection:
        if not connection.execute(text("select 1 from payments where key = :key"), {"key": key}).first():
            row = {"key": key, "amount": amount}
            connection.execute(text("insert into payments (key, amount) values (:key, :amount)"), row)


@app.task(acks_late=True)
def add_points(order_id, points):
    with engine.begin() as connection:
        connection.execute(text("update users set points = points + :points"), {"points": points})


@app.task
def report(order_id):
    with open("report.txt", "a") as file:
        print(order_id, file=file)
"""
AFTER = """
from celery import Celery
from effectonce import EffectOnce, Natural, Transactional
from sqlalchemy import create_engine, text

app = Celery("shop", broker="memory://", backend="cache+memory://")
engine = create_engine("sqlite:///shop.sqlite")
once = EffectOnce(app, ledger=engine, create_schema=True)


@app.task(once=Transactional("charge:{order_id}"))
def charge(order_id, amount):
    row = {"key": str(order_id), "amount": amount}
    once.connection.execute(text("insert into payments (key, amount) values (:key, :amount)"), row)


@app.task(once=Transactional("points:{order_id}"))
def add_points(order_id, points):
    once.connection.execute(text("update users set points = points + :points"), {"points": points})


@app.task(once=Natural())
def report(order_id):
    with open(f"report-{order_id}.txt", "w") as file:
        print(order_id, file=file)
"""
CALLS = {"charge": "[7, 100]", "add_points": "[7, 10]", "report": "[7]"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(BEFORE)
    with sqlite3.connect(tmp_path / "shop.sqlite") as connection:
        connection.executescript("create table payments (key text, amount int); create table users (points int);")
        connection.execute("insert into users values (0)")
    connection.close()
    return tmp_path


def _types(project: Path, *words: str) -> tuple[int, str]:
    command = [str(Path(sys.executable).with_name("effectonce")), *words]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def _proves(project: Path, task: str) -> tuple[int, str]:
    database = "sqlite:///shop.sqlite"
    return _types(
        project, "prove", "-A", "shop", f"shop.{task}", "--args", CALLS[task], "--database", database, "--yes"
    )


def test_what_is_unsafe_is_found_before_anything_runs(project: Path) -> None:
    code, said = _types(project, "check", ".")
    assert code == 1
    assert {"EO102", "EO201", "EO408"} <= set(re.findall(r"EO\d{3}", said))
    (project / "shop.py").write_text(AFTER)
    assert _types(project, "check", ".") == (0, "All checks passed.\n")


@pytest.mark.parametrize("task", CALLS)
def test_what_is_unsafe_is_shown_by_a_proof_and_what_is_mended_is_proven(project: Path, task: str) -> None:
    """On a database that has no tables of a ledger yet; the ledger makes them by itself."""
    code, said = _proves(project, task)
    assert (code, "does not take effect once" in said) == (1, True), said
    (project / "shop.py").write_text(AFTER)
    code, said = _proves(project, task)
    assert (code, "takes effect once" in said) == (0, True), said


def test_a_mended_project_has_nothing_that_the_doctor_warns_of(project: Path) -> None:
    (project / "shop.py").write_text(AFTER)
    code, said = _types(project, "-A", "shop", "doctor", "--wait", "0.5")
    assert code == 0, said
    assert set(re.findall(r"^(\w+) ([a-z-]+):", said, flags=re.MULTILINE)) == {("info", "no-worker-answers")}
