"""What one client does at a store, through this library and, as its floor, with the bare driver.

Each maker connects and answers a call that does it once. The statements of the twins are the ledger's own, as its
driver gets them. The first of each store is what the others are compared with.
"""

import itertools
import os
import random
import secrets
from collections.abc import Callable
from typing import Any

import psycopg
import pymysql
import redis
import sqlalchemy as sa

from effectonce.app.ledgers import open_ledger
from effectonce.domain.claims import Claim, Granted, Outcome, Refused, State
from effectonce.stores.sql.rows import claim_values, silence_values

Maker = Callable[[str], Callable[[], None]]
ROWS = 1000
DONE = b"finished-effect!"


def claim(digest: bytes | None = None) -> Claim:
    """A claim on a new effect, or on this one."""
    return Claim(
        digest=digest or secrets.token_bytes(16),
        key=f"charge:{secrets.token_hex(6)}",
        attempt=secrets.token_bytes(8),
        identity=secrets.token_bytes(16),
        task_id=secrets.token_hex(16),
        fingerprint=b"",
        lease=60.0,
        max_takeovers=5,
        keep=86400.0,
    )


def prepare(url: str) -> None:
    """Make the ledger, rows to update, and one finished effect."""
    ledger = opened(url)
    ledger.create_schema()
    if not url.startswith("redis"):
        with ledger.source.engine.begin() as connection:
            connection.execute(sa.text("create table work_rows (id integer primary key, x integer)"))
            connection.execute(sa.text("insert into work_rows values (:id, 0)"), [{"id": n} for n in range(ROWS)])
    granted = ledger.claim(claim(DONE))
    ledger.complete(granted, Outcome(state=State.COMPLETED, result=None, keep=86400.0))
    ledger.close()


def opened(url: str) -> Any:
    """The ledger at *url*."""
    return open_ledger(url, setting="ledger", schema=None, create_schema=None)


def _random_row() -> int:
    return random.randrange(ROWS)  # noqa: S311 - no secret


UPDATE = "update work_rows set x = x + 1 where id = %s"
BOUND_UPDATE = sa.text("update work_rows set x = x + 1 where id = :id")


def guarded(url: str) -> Callable[[], None]:
    """The transaction of a guarded body, through this library."""
    ledger = opened(url)

    def act() -> None:
        mine = claim()
        with ledger.work(mine, granted=None, allow_escape=False, keep=mine.keep) as work:
            assert isinstance(work.enter(), Granted)  # noqa: S101 - a new effect is granted
            work.connection.execute(BOUND_UPDATE, {"id": _random_row()})
            work.finish(Outcome(state=State.COMPLETED, result=None, keep=mine.keep))
            work.commit()

    return act


def unguarded(url: str) -> Callable[[], None]:
    """The same work through SQLAlchemy, without a guard."""
    ledger = opened(url)
    engine = ledger.source.engine

    def act() -> None:
        with engine.connect() as connection, connection.begin():
            ledger.dialect.begin(connection, wait=1.0)
            connection.execute(BOUND_UPDATE, {"id": _random_row()})

    return act


def leased(url: str) -> Callable[[], None]:
    """Claim and settlement of a `Leased` effect."""
    ledger = opened(url)

    def act() -> None:
        granted = ledger.claim(claim())
        assert ledger.complete(granted, Outcome(state=State.COMPLETED, result=None, keep=86400.0))  # noqa: S101

    return act


def duplicate(url: str) -> Callable[[], None]:
    """A duplicate of finished work is refused."""
    ledger = opened(url)
    is_sql = not url.startswith("redis")

    def act() -> None:
        mine = claim(DONE)
        if is_sql:
            with ledger.work(mine, granted=None, allow_escape=False, keep=mine.keep) as work:
                assert isinstance(work.enter(), Refused)  # noqa: S101 - it is finished
        else:
            assert isinstance(ledger.claim(mine), Refused)  # noqa: S101

    return act


def _claim_statement(url: str, style: str) -> tuple[str, Callable[[], dict[str, Any]]]:
    """The ledger's own insert as the driver gets it, and values for it."""
    ledger = opened(url)
    text = str(ledger.statements.begin.compile(dialect=ledger.source.engine.dialect))
    ledger.close()

    def values() -> dict[str, Any]:
        return {**claim_values(claim(), state=State.COMPLETED, keep=86400.0), **silence_values(None)}

    assert style in text  # noqa: S101 - parameters as this driver writes them
    return text, values


def pg_work(url: str) -> Callable[[], None]:
    """``begin``, one update, ``commit``: three round trips."""
    connection = _psycopg(url)

    def act() -> None:
        with connection.transaction():
            connection.execute(UPDATE, (_random_row(),))

    return act


def pg_claimed(url: str) -> Callable[[], None]:
    """The same with the ledger's claim in it: four round trips."""
    connection, (text, values) = _psycopg(url), _claim_statement(url, "%(digest)s")

    def act() -> None:
        with connection.transaction():
            connection.execute(text, values())
            connection.execute(UPDATE, (_random_row(),))

    return act


def pg_pipelined(url: str) -> Callable[[], None]:
    """The same, ``begin`` and claim sent together: three round trips."""
    connection, (text, values) = _psycopg(url), _claim_statement(url, "%(digest)s")

    def act() -> None:
        with connection.pipeline():
            connection.execute("begin")
            cursor = connection.execute(text, values())
        assert cursor.rowcount == 1  # noqa: S101 - a new effect
        connection.execute(UPDATE, (_random_row(),))
        connection.execute("commit")

    return act


def _psycopg(url: str) -> Any:
    return psycopg.connect(url.replace("+psycopg", ""), autocommit=True, prepare_threshold=None)


def maria_work(url: str) -> Callable[[], None]:
    """``begin``, one update, ``commit``."""
    address = sa.make_url(url)
    connection: Any = pymysql.connect(
        host=address.host,
        port=address.port or 3306,
        user=address.username,
        password=address.password or "",
        database=address.database,
    )

    def act() -> None:
        with connection.cursor() as cursor:
            connection.begin()
            cursor.execute(UPDATE, (_random_row(),))
            connection.commit()

    return act


def sqlite_work(url: str) -> Callable[[], None]:
    """``begin immediate``, one update, ``commit``."""
    import sqlite3  # noqa: PLC0415 - only here

    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=30)

    def act() -> None:
        connection.execute("begin immediate")
        connection.execute(UPDATE.replace("%s", "?"), (_random_row(),))
        connection.execute("commit")

    return act


def redis_twin(url: str) -> Callable[[], None]:
    """What a lock with a time to live costs: ``SET NX PX`` and a delete."""
    client, numbers = redis.Redis.from_url(url), itertools.count()

    def act() -> None:
        name = f"twin:{os.getpid()}:{next(numbers)}"
        client.set(name, "1", nx=True, px=60_000)
        client.delete(name)

    return act


def redis_look(url: str) -> Callable[[], None]:
    """One question, one answer."""
    client = redis.Redis.from_url(url)
    return lambda: client.get("twin:nothing") and None


def empty_transaction(url: str) -> Callable[[], None]:
    """What running an empty body costs at the store: the guard's transaction with no work in it."""
    ledger = opened(url)

    def act() -> None:
        mine = claim()
        with ledger.work(mine, granted=None, allow_escape=False, keep=mine.keep) as work:
            work.enter()
            work.finish(Outcome(state=State.COMPLETED, result=None, keep=mine.keep))
            work.commit()

    return act


THROUGH_US: dict[str, Maker] = {
    "unguarded, SQLAlchemy": unguarded,
    "guarded Transactional": guarded,
    "Leased: claim and settlement": leased,
}
TRANSACTIONS: dict[str, dict[str, Maker]] = {
    "postgresql": {
        "work alone, driver": pg_work,
        "work and claim, driver": pg_claimed,
        "work and claim, driver, pipelined": pg_pipelined,
        **THROUGH_US,
    },
    "mariadb": {"work alone, driver": maria_work, **THROUGH_US},
    "sqlite": {"work alone, driver": sqlite_work, **THROUGH_US},
    "redis": {"SET NX and DEL, driver": redis_twin, "Leased: claim and settlement": leased},
}
_SQL_DUPLICATES: dict[str, Maker] = {"empty body run": empty_transaction, "duplicate refused": duplicate}
DUPLICATES: dict[str, dict[str, Maker]] = {
    **dict.fromkeys(("postgresql", "mariadb", "sqlite"), _SQL_DUPLICATES),
    "redis": {"empty body run": leased, "GET, driver": redis_look, "duplicate refused": duplicate},
}
