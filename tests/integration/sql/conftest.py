"""A ledger on each database, beside a table that bodies write to."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from effectonce.stores.sql.ledger import SqlLedger
from tests.integration.sql.scene import CHARGES

ALL = ["sqlite", "postgresql", "mariadb"]


@pytest.fixture(params=ALL)
def database(request: pytest.FixtureRequest) -> str:
    """The address of an empty database, of each kind."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def engine(database: str) -> Iterator[sa.Engine]:
    """A user's engine, whose database has a table of charges and the ledger's tables."""
    engine = sa.create_engine(database)
    with engine.begin() as connection:
        connection.execute(sa.text(f"create table {CHARGES} (effect text not null)"))
    store = SqlLedger.open(database, create_schema=True)
    store.ping()
    store.close()
    yield engine
    engine.dispose()


@pytest.fixture
def ledger(engine: sa.Engine) -> Iterator[SqlLedger]:
    """A ledger of ours in that database."""
    store = SqlLedger.open(engine.url)
    yield store
    store.close()
