"""Django on MariaDB: what its driver and its server do without a word."""

from typing import Any

import pytest
from django.db import connections

from effectonce import EffectOnce, Transactional, TransactionEscaped
from effectonce.contrib.django.host import DjangoHost
from effectonce.domain.claims import State
from tests.integration.django.books.models import Charge
from tests.integration.sql.deadlocks import deadlock

pytestmark = pytest.mark.parametrize("alias", ["mariadb"], indirect=True)


@pytest.mark.parametrize("statement", ["create table surprise (id int)", "/* c */ truncate books_receipt"])
def test_a_statement_that_commits_without_a_word_is_vetoed(once: EffectOnce, alias: str, statement: str) -> None:
    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        Charge.objects.using(alias).create(order=x)
        connections[alias].cursor().execute(statement)

    with pytest.raises(TransactionEscaped, match=r"CREATE|TRUNCATE"):
        work(1)
    assert not Charge.objects.using(alias).exists()
    assert once.ledger.entries(state=None, limit=9) == []


def test_a_body_that_swallows_a_deadlock_and_goes_on_is_run_again(once: EffectOnce, alias: str) -> None:
    """The server rolls all of it back, the entry too; what comes after it is in a transaction without the entry."""
    ledger: Any = once.ledger
    engine = ledger.source.engine
    with engine.begin() as connection:
        connection.exec_driver_sql("create or replace table pair (id int primary key, x int)")
        connection.exec_driver_sql("insert into pair values (1, 0), (2, 0)")
    runs: list[int] = []

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> str:
        runs.append(x)
        Charge.objects.using(alias).create(order=x)
        if len(runs) == 1:
            deadlock(once.connection, engine)
            Charge.objects.using(alias).create(order=x)
        return "done"

    assert work(1) == "done"
    assert (len(runs), Charge.objects.using(alias).count()) == (2, 1)
    assert [entry.state for entry in once.ledger.entries(state=None, limit=9)] == [State.COMPLETED]


def test_the_other_driver_is_refused_with_what_to_do(alias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        __name__ = "MySQLdb"

    backend: Any = connections[alias]
    monkeypatch.setattr(type(backend), "Database", Other())
    with pytest.raises(ValueError, match=r"install_as_MySQLdb"):
        _ = DjangoHost(alias).drivername
