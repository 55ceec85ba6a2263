"""How a body may not leave its transaction under Django, and what is true of the work and the entry then."""

from collections.abc import Callable
from contextlib import suppress

import pytest
import sqlalchemy as sa
from django.db import IntegrityError, close_old_connections, connections, transaction

from effectonce import EffectHeld, EffectOnce, LedgerUnsuitable, Transactional, TransactionEscaped
from effectonce.domain.claims import State
from tests.integration.django.books.models import Charge, Receipt

Escape = Callable[[str], object]

ESCAPES: dict[str, Escape] = {
    "close": lambda alias: connections[alias].close(),
    "close all": lambda _alias: connections.close_all(),
    "close old": lambda _alias: close_old_connections(),
    "commit": lambda alias: transaction.commit(using=alias),
    "rollback": lambda alias: transaction.rollback(using=alias),
    "autocommit": lambda alias: transaction.set_autocommit(True, using=alias),
    "COMMIT": lambda alias: connections[alias].cursor().execute("COMMIT"),
    "ROLLBACK": lambda alias: connections[alias].cursor().execute("/* c */ rollback"),
    "durable": lambda alias: transaction.atomic(using=alias, durable=True).__enter__(),
    "durable, deeper": lambda alias: _durable_inside(alias),  # noqa: PLW0108 - it is defined below
}


def _durable_inside(alias: str) -> None:
    with transaction.atomic(using=alias), transaction.atomic(using=alias, durable=True):
        pass


@pytest.mark.parametrize("name", ESCAPES)
def test_an_escape_is_refused_where_it_is_tried_and_nothing_is_left(once: EffectOnce, alias: str, name: str) -> None:
    after = []

    @once.app.task(name="work", once=Transactional("k:{x}"), autoretry_for=(Exception,))
    def work(x: int) -> None:
        Charge.objects.using(alias).create(order=x)
        ESCAPES[name](alias)
        after.append(x)

    with pytest.raises(TransactionEscaped):
        work(1)
    assert after == []
    assert not Charge.objects.using(alias).exists()
    assert once.ledger.entries(state=None, limit=9) == []


SWALLOWED = [name for name in ESCAPES if not name.startswith("durable")]


@pytest.mark.parametrize("name", SWALLOWED)
def test_an_escape_that_the_body_swallows_is_raised_at_its_end(once: EffectOnce, alias: str, name: str) -> None:
    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        Charge.objects.using(alias).create(order=x)
        with suppress(Exception):
            ESCAPES[name](alias)

    with pytest.raises(TransactionEscaped):
        work(1)
    assert not Charge.objects.using(alias).exists()
    assert once.ledger.entries(state=None, limit=9) == []


def test_a_write_through_another_alias_is_refused(once: EffectOnce, alias: str) -> None:
    other = {"default": "twin", "lite": "elsewhere", "maria": "maria_twin"}[alias]

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        Charge.objects.using(alias).create(order=x)
        Charge.objects.using(other).create(order=x)

    with pytest.raises(TransactionEscaped, match=other):
        work(1)
    assert not Charge.objects.using(alias).exists()
    assert not Charge.objects.using(other).exists()


def test_another_alias_may_be_read(once: EffectOnce, alias: str) -> None:
    other = {"default": "twin", "lite": "elsewhere", "maria": "maria_twin"}[alias]

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> int:
        Charge.objects.using(alias).create(order=x)
        return int(Charge.objects.using(other).filter(order=x).count())

    assert work(1) == 0
    assert Charge.objects.using(alias).count() == 1


@pytest.mark.parametrize("alias", ["postgresql"], indirect=True)
def test_a_commit_of_sqlalchemy_to_the_same_database_is_refused(once: EffectOnce, alias: str) -> None:
    settings = connections[alias].settings_dict
    url = sa.URL.create(
        "postgresql+psycopg",
        settings["USER"] or None,
        settings["PASSWORD"] or None,
        settings["HOST"] or None,
        int(settings["PORT"]) if settings["PORT"] else None,
        settings["NAME"],
    )
    engine = sa.create_engine(url, poolclass=sa.NullPool)

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        Charge.objects.using(alias).create(order=x)
        with engine.begin() as connection:
            connection.execute(sa.text('insert into books_charge ("order") values (9)'))

    with pytest.raises(TransactionEscaped, match="another connection"):
        work(1)
    assert not Charge.objects.using(alias).exists()


@pytest.mark.parametrize("how", ["at the end", "before another write"])
def test_a_commit_of_the_driver_makes_the_entry_unknown(once: EffectOnce, alias: str, how: str) -> None:
    """Half of the work is committed and the entry with it: no later delivery may replay or repeat it."""
    ran = []

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        ran.append(x)
        Charge.objects.using(alias).create(order=x)
        connections[alias].connection.commit()
        if how != "at the end":
            Charge.objects.using(alias).create(order=x)

    with pytest.raises(TransactionEscaped):
        work(1)
    assert [entry.state for entry in once.ledger.entries(state=None, limit=9)] == [State.UNKNOWN]
    with pytest.raises(EffectHeld):
        work(1)
    assert ran == [1]


def test_work_that_is_marked_for_rollback_does_not_pass_for_success(once: EffectOnce, alias: str) -> None:
    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        Charge.objects.using(alias).create(order=x)
        transaction.set_rollback(True, using=alias)

    with pytest.raises(TransactionEscaped, match="rollback"):
        work(1)
    assert once.ledger.entries(state=None, limit=9) == []


def test_an_integrity_error_that_is_caught_without_a_savepoint_does_not_pass_for_success(
    once: EffectOnce, alias: str
) -> None:
    """A75: Django marks the block, and leaves it without a word."""

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        charge = Charge.objects.using(alias).create(order=x)
        Receipt.objects.using(alias).create(charge=charge, number=1)
        with suppress(IntegrityError):
            Receipt.objects.using(alias).create(charge=charge, number=1)

    with pytest.raises(TransactionEscaped, match="savepoint"):
        work(1)
    assert not Charge.objects.using(alias).exists()
    assert once.ledger.entries(state=None, limit=9) == []


def test_an_integrity_error_behind_a_savepoint_is_the_bodys_own_affair(once: EffectOnce, alias: str) -> None:
    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> str:
        charge = Charge.objects.using(alias).create(order=x)
        Receipt.objects.using(alias).create(charge=charge, number=1)
        with suppress(IntegrityError), transaction.atomic(using=alias):
            Receipt.objects.using(alias).create(charge=charge, number=1)
        return "done"

    assert work(1) == "done"
    assert Receipt.objects.using(alias).count() == 1


def test_a_block_that_is_left_open_does_not_pass_for_success(once: EffectOnce, alias: str) -> None:
    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        Charge.objects.using(alias).create(order=x)
        transaction.atomic(using=alias).__enter__()

    with pytest.raises(TransactionEscaped):
        work(1)
    assert not connections[alias].in_atomic_block
    assert not Charge.objects.using(alias).exists()


def test_a_body_that_may_escape_and_closes_its_connection_still_counts_once(once: EffectOnce, alias: str) -> None:
    ran = []

    @once.app.task(name="work", once=Transactional("k:{x}", allow_escape=True))
    def work(x: int) -> str:
        ran.append(x)
        Charge.objects.using(alias).create(order=x)
        connections[alias].close()
        return "done"

    assert [work(1), work(1)] == ["done", "done"]
    assert ran == [1]
    assert not connections[alias].in_atomic_block


def test_a_body_that_may_escape_writes_where_it_likes(once: EffectOnce, alias: str) -> None:
    other = {"default": "twin", "lite": "elsewhere", "maria": "maria_twin"}[alias]

    @once.app.task(name="work", once=Transactional("k:{x}", allow_escape=True))
    def work(x: int) -> str:
        Charge.objects.using(other).create(order=x)
        return "done"

    assert work(1) == "done"
    Charge.objects.using(other).all().delete()


@pytest.mark.parametrize("alias", ["postgresql"], indirect=True)
def test_an_alias_without_autocommit_is_refused(once: EffectOnce, alias: str) -> None:
    other = EffectOnce(once.app, ledger="django://manual")

    @once.app.task(name="work", once=Transactional("k:{x}"), autoretry_for=(Exception,))
    def work(x: int) -> None:
        Charge.objects.using("manual").create(order=x)

    with pytest.raises(LedgerUnsuitable, match="autocommit"):
        work(1)
    assert not Charge.objects.using(alias).exists()
    other.ledger.close()


def test_after_a_body_the_connection_can_be_closed_and_committed_as_ever(once: EffectOnce, alias: str) -> None:
    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        Charge.objects.using(alias).create(order=x)
        if x == 2:
            raise ValueError(x)

    work(1)
    with pytest.raises(ValueError, match="2"):
        work(2)
    connection = connections[alias]
    assert not {"close", "commit", "rollback", "set_autocommit"} & set(vars(connection))
    assert [len(each.execute_wrappers) for each in connections.all()] == [0] * len(connections.all())
    connection.close()
    assert Charge.objects.using(alias).count() == 1
