"""`effect.transaction()`: writes of a leased body that commit on condition of the fence."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from celery import Celery

from effectonce import EffectOnce, FenceRefused, Leased, LedgerUnsuitable, OutsideEffect, Transactional, effect


@pytest.fixture
def table(tmp_path: Path) -> sa.Table:
    return sa.Table("rows", sa.MetaData(), sa.Column("x", sa.Integer))


@pytest.fixture
def engine(tmp_path: Path, table: sa.Table) -> sa.Engine:
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'effects.sqlite'}")
    table.metadata.create_all(engine)
    return engine


def rows(engine: sa.Engine, table: sa.Table) -> list[int]:
    with engine.connect() as connection:
        return list(connection.execute(sa.select(table.c.x)).scalars())


def test_a_transaction_of_a_leased_body_commits_at_its_end(app: Celery, engine: sa.Engine, table: sa.Table) -> None:
    EffectOnce(app, ledger=engine, create_schema=True)

    @app.task(once=Leased("work:{x}"))
    def work(x: int) -> None:
        with effect.transaction() as session:
            session.execute(table.insert().values(x=x))
            session.commit()
            session.execute(table.insert().values(x=x + 1))

    work(1)
    assert rows(engine, table) == [1, 2]


def test_a_transaction_is_rolled_back_with_what_its_block_raises(
    app: Celery, engine: sa.Engine, table: sa.Table
) -> None:
    EffectOnce(app, ledger=engine, create_schema=True)

    @app.task(once=Leased("work:{x}"))
    def work(x: int) -> None:
        with effect.transaction() as session:
            session.execute(table.insert().values(x=x))
            session.commit()
            raise ValueError(x)

    with pytest.raises(ValueError, match="1"):
        work(1)
    assert rows(engine, table) == []


def test_a_transaction_of_a_holder_that_lost_its_claim_commits_nothing(
    app: Celery, engine: sa.Engine, table: sa.Table
) -> None:
    once = EffectOnce(app, ledger=engine, create_schema=True)
    refused: list[FenceRefused] = []

    @app.task(once=Leased("work:{x}"))
    def work(x: int) -> None:
        held = once.ledger.find("work:1")[0]
        try:
            with effect.transaction() as session:
                session.execute(table.insert().values(x=x))
                session.connection().execute(
                    sa.text("update effectonce_entries set fence = fence + 1 where digest = :digest"),
                    {"digest": held.digest},
                )
        except FenceRefused as error:
            refused.append(error)

    work(1)
    assert len(refused) == 1
    assert rows(engine, table) == []


def test_a_transaction_needs_a_leased_body_on_a_sql_ledger(app: Celery, once: EffectOnce) -> None:
    @app.task(once=Leased("work:{x}"))
    def work(x: int) -> None:
        with effect.transaction():
            pass

    with pytest.raises(LedgerUnsuitable, match="not a SQL database"):
        work(1)


def test_a_transactional_body_has_its_own_transaction(app: Celery, engine: sa.Engine) -> None:
    EffectOnce(app, ledger=engine, create_schema=True)

    @app.task(once=Transactional("work:{x}"))
    def work(x: int) -> None:
        effect.transaction()

    with pytest.raises(OutsideEffect, match="transaction"):
        work(1)
