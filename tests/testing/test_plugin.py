"""The plugin itself: what it imports, what it takes, and what it says."""

import subprocess
import sys

import pytest
import sqlalchemy as sa
from celery import Celery
from sqlalchemy.orm import sessionmaker

from effectonce.app.guard import Guard
from effectonce.app.kombu_broker import KombuBroker
from effectonce.testing.attempts import Attempt, Crash, Point, Touch, run, touched
from effectonce.testing.databases import database_of
from effectonce.testing.effects import Effects
from effectonce.testing.worlds import Files, Keys

HEAVY = ("celery", "kombu", "sqlalchemy", "redis", "django")


def test_importing_the_plugin_pulls_in_no_library_of_the_user() -> None:
    code = "import effectonce.testing.plugin, effectonce.testing.effects, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not set(HEAVY) & set(loaded)


def test_the_plugin_is_there_where_the_library_is(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.pluginmanager.has_plugin("effectonce")
    assert any(line.startswith("effects(") for line in pytestconfig.getini("markers"))


def test_the_names_of_ours_that_are_replaced_are_there() -> None:
    assert callable(Guard._claim)
    assert callable(KombuBroker._send_together)


def test_a_database_may_be_given_as_engine_url_or_sessionmaker(bank: sa.Engine) -> None:
    for given in (bank, str(bank.url), sessionmaker(bind=bank)):
        found = database_of(given)
        found.save()
        assert set(found.rows()) == {"accounts", "charges", "seen", "stamped"}
        found.close()


def test_what_is_no_database_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="not int"):
        database_of(5)


def test_without_a_database_the_report_says_so(app: Celery) -> None:
    @app.task(name="nothing")
    def nothing() -> None: ...

    proof = Effects().prove_once(nothing)
    assert "no database was given" in str(proof)


def test_a_plain_function_is_proven_too(bank: sa.Engine, effects: Effects) -> None:
    def fix(balance: int) -> None:
        with bank.begin() as connection:
            connection.execute(sa.text("update accounts set balance = :balance"), {"balance": balance})

    assert effects.prove_once(fix, (50,)).task.endswith("fix(50)")


def test_a_database_in_memory_is_proven_without_two_at_once(app: Celery) -> None:
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    with engine.begin() as connection:
        connection.execute(sa.text("create table rows (x int)"))

    @app.task(name="sets")
    def sets() -> None:
        with engine.begin() as connection:
            connection.execute(sa.text("delete from rows"))
            connection.execute(sa.text("insert into rows values (1)"))

    assert "two attempts at once were not tried" in str(Effects().prove_once(sets, database=engine))
    engine.dispose()


def test_a_dead_attempt_touches_nothing_any_more() -> None:
    made: list[str] = []

    def body() -> None:
        try:
            touched(lambda _: Touch("one"), lambda: made.append("one"))
        finally:
            touched(lambda _: Touch("two"), lambda: made.append("two"))

    attempt = run(Attempt(files=Files(), keys=Keys(), dies=Point("after", 0)), body)
    assert attempt.is_dead
    assert made == ["one"]
    assert not isinstance(attempt.outcome, Crash)
