"""The hot statements about messages, reservations and what was seen find their rows by an index too."""

import secrets
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import pytest
import sqlalchemy as sa

from effectonce.domain.outbox import Stage
from effectonce.stores.sql.ledger import SqlLedger
from tests.plan.asking import analyze, plan_of, reads_all
from tests.services import Fleet

ROWS = 3_000
HOUR = 3_600_000_000
PRIMARY = "primary key"


@pytest.fixture(scope="module", params=["postgresql", "mariadb"])
def grown(request: pytest.FixtureRequest, fleet: Fleet) -> Iterator[SqlLedger]:
    """A ledger in which much waits, is reserved and was seen."""
    server: Any = getattr(fleet, request.param)()
    url = server.fresh_url()
    ledger = SqlLedger.open(url)
    ledger.create_schema()
    _grow(ledger)
    analyze(ledger)
    yield ledger
    ledger.close()
    server.put_back(url)


def _grow(ledger: SqlLedger) -> None:
    tables = ledger.tables
    with ledger.source.engine.begin() as connection:
        now = connection.execute(sa.text(f"select {ledger.dialect.clock}")).scalar_one()
        connection.execute(tables.outbox.insert(), [_message(at, now) for at in range(ROWS)])
        connection.execute(
            tables.reservations.insert(),
            [{"name": secrets.token_bytes(16), "holder": "somebody", "ends": now + at * HOUR} for at in range(ROWS)],
        )
        connection.execute(tables.observed.insert(), [_sighting(now) for _ in range(ROWS)])
        connection.execute(tables.history.insert(), [_happened(now) for _ in range(ROWS)])
        connection.execute(
            tables.minutes.insert(),
            [{"number": 1, "minute": now // 60_000_000 - at, "name": "a", "cause": ""} for at in range(ROWS)],
        )


def _message(at: int, now: int) -> dict[str, Any]:
    """Half are late, half wait for their time, and some for those of the same order."""
    words = ("task", "task_id", "exchange", "routing_key", "content_type", "content_encoding")
    return {
        "due": now + (at - ROWS // 2) * HOUR,
        "since": now,
        "tries": 0,
        "stage": int(Stage.PARKED if at % 3 else Stage.READY),
        "effect": secrets.token_bytes(16),
        "in_order": None if at % 10 else f"order-{at % 70}",
        **dict.fromkeys((*words, "headers", "properties", "declares"), "word"),
        "body": b"body",
    }


def _sighting(now: int) -> dict[str, Any]:
    words = dict.fromkeys(("would", "task_id", "task", "key"), "word")
    digests = {"mark": secrets.token_bytes(16), "digest": secrets.token_bytes(16)}
    return {**words, **digests, "seen_first": now, "seen_last": now, "times": 1, "again": 0}


def _happened(now: int) -> dict[str, Any]:
    words = dict.fromkeys(("name", "cause", "task", "task_id", "attempt", "facts"), "word")
    return {**words, "at": now, "fence": 1, "times": 1, "digest": secrets.token_bytes(16)}


HOT = {
    "outbox.due": ("outbox", "effectonce_outbox_due"),
    "outbox.all_due": ("outbox", "effectonce_outbox_due"),
    "outbox.due_of": ("outbox", "effectonce_outbox_effect"),
    "outbox.take": ("outbox", PRIMARY),
    "outbox.strike": ("outbox", PRIMARY),
    "outbox.give_back": ("outbox", PRIMARY),
    "outbox.refuse": ("outbox", PRIMARY),
    "reservations.take_over": ("reservations", PRIMARY),
    "reservations.holder": ("reservations", PRIMARY),
    "reservations.give_back": ("reservations", PRIMARY),
    "reservations.sweep": ("reservations", "effectonce_reserved_until"),
    "sightings.again": ("observed", PRIMARY),
    "history.of": ("history", "effectonce_history_of"),
    "history.recent": ("history", PRIMARY),
    "history.trim": ("history", PRIMARY),
    "history.tallies": ("minutes", PRIMARY),
    "history.trim_minutes": ("minutes", PRIMARY),
}


@pytest.mark.parametrize("name", HOT)
def test_a_hot_statement_finds_its_rows_by_its_index(grown: SqlLedger, name: str) -> None:
    table, index = HOT[name]
    plan = plan_of(grown, attrgetter(name)(grown.statements), _values(grown, asks="trim" not in name))
    primary = "PRIMARY" if grown.dialect.name == "mariadb" else f"effectonce_{table}_pkey"
    assert (primary if index is PRIMARY else index) in plan
    assert not reads_all(grown, plan, f"effectonce_{table}"), plan


@pytest.mark.parametrize("name", ["outbox.due", "outbox.all_due"])
def test_a_relay_does_not_sort_what_waits_to_take_a_batch_of_it(grown: SqlLedger, name: str) -> None:
    """Rows of one instant are put in order, which is few."""
    plan = plan_of(grown, attrgetter(name)(grown.statements), _values(grown))
    assert '"Node Type": "Sort"' not in plan
    assert "filesort" not in plan


@pytest.mark.parametrize("grown", ["postgresql"], indirect=True)
@pytest.mark.parametrize("name", ["reservations.reserve", "sightings.first"])
def test_who_comes_first_is_decided_by_the_primary_key(grown: SqlLedger, name: str) -> None:
    plan = plan_of(grown, attrgetter(name)(grown.statements), _values(grown))
    table = {"reservations.reserve": "reservations", "sightings.first": "observed"}[name]
    assert f'"Conflict Arbiter Indexes": ["effectonce_{table}_pkey"]' in plan


def _values(ledger: SqlLedger, *, asks: bool = True) -> dict[str, Any]:
    with ledger.source.engine.connect() as connection:
        effect = connection.execute(sa.text("select effect from effectonce_outbox where id = 7")).scalar_one()
        last = connection.execute(sa.text("select max(id) from effectonce_history")).scalar_one()
        name = connection.execute(
            sa.text("select name from effectonce_reservations order by ends desc limit 1")
        ).scalar_one()
    words = dict.fromkeys(("holder", "task", "task_id", "would", "key", "error"), "word")
    return {
        **words,
        "digest": bytes(effect),
        "effect": bytes(effect),
        "name": bytes(name),
        "mark": secrets.token_bytes(16),
        "limit": 50,
        "at_once": 0,
        "ids": [3, 5, 7],
        "id": 7,
        "tries": 0,
        "stage": 1,
        "hold": 1,
        "pause": 1,
        "us": 1,
        "again": 0,
        "before": last,
        "last": last - ROWS + 50,
        "minutes": 60 if asks else ROWS - 20,
    }
