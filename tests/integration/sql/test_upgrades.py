"""Taking the tables to this release's version: steps are made once, in order, and what is there is checked."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from effectonce.stores.sql.ledger import SqlLedger
from effectonce.stores.sql.migrations import BOOK
from effectonce.testing.conformance.crowds import at_once
from effectonce.testing.conformance.scene import granted, new_claim

FIRST = ["pre_0001", "pre_0002"]


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def bare(request: pytest.FixtureRequest) -> Iterator[SqlLedger]:
    """A ledger whose database has no tables."""
    ledger = SqlLedger.open(request.getfixturevalue(f"{request.param}_url"), create_schema=False)
    yield ledger
    ledger.close()


def test_a_bare_database_gets_all_steps_once(bare: SqlLedger) -> None:
    assert bare.check_schema() != []
    assert bare.missing_steps(phase="pre") == FIRST
    assert bare.upgrade_schema(phase="pre") == FIRST
    assert bare.upgrade_schema(phase="post") == bare.missing_steps(phase="post") == []
    assert bare.check_schema() == []
    granted(bare, new_claim())


def test_tables_that_were_only_created_are_taken_over(bare: SqlLedger) -> None:
    """Their rows stay, and the step is noted as made."""
    bare.create_schema()
    claim = new_claim()
    granted(bare, claim)
    assert bare.check_schema() == [f"a step was not made: {step}" for step in FIRST]
    assert bare.upgrade_schema(phase="pre") == FIRST
    assert bare.check_schema() == []
    assert bare.read(claim.digest) is not None


def test_what_differs_is_named(bare: SqlLedger) -> None:
    bare.upgrade_schema(phase="pre")
    with bare.source.engine.begin() as connection:
        connection.exec_driver_sql("drop table effectonce_held")
        connection.exec_driver_sql("alter table effectonce_steps add column surplus integer")
    told = "\n".join(bare.check_schema())
    assert "is missing: table effectonce_held" in told
    assert "is not expected: column effectonce_steps surplus" in told


def test_the_tables_of_others_are_nobodys_business(bare: SqlLedger) -> None:
    bare.upgrade_schema(phase="pre")
    with bare.source.engine.begin() as connection:
        connection.exec_driver_sql("create table charges (id integer)")
    assert bare.check_schema() == []


def test_of_several_at_once_one_makes_each_step(postgresql_url: str) -> None:
    ledgers = [SqlLedger.open(postgresql_url) for _ in range(4)]
    made = at_once([lambda each=each: each.upgrade_schema(phase="pre") for each in ledgers])  # type: ignore[misc]
    assert sorted(map(list, made)) == [[], [], [], FIRST]
    for ledger in ledgers:
        ledger.close()


def test_a_schema_of_its_own_has_its_own_book(postgresql_url: str) -> None:
    ledger = SqlLedger.open(postgresql_url, schema="once")
    assert ledger.upgrade_schema(phase="pre") == FIRST
    assert ledger.check_schema() == []
    assert BOOK in sa.inspect(ledger.source.engine).get_table_names("once")
    ledger.close()


def test_the_statements_that_are_printed_make_the_same_tables(bare: SqlLedger) -> None:
    with bare.source.engine.begin() as connection:
        for statement in bare.schema_sql():
            connection.exec_driver_sql(statement)
    assert bare.check_schema() == [f"a step was not made: {step}" for step in FIRST]
    granted(bare, new_claim())
