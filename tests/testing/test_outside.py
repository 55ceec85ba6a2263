"""What tasks touch besides a database: HTTP, messages, Redis, files."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import redis
import requests
import sqlalchemy as sa
import urllib3
from celery import Celery
from sqlalchemy.orm import Session

from effectonce import EffectOnce, Leased, Transactional
from effectonce.testing import NotOnce
from effectonce.testing.effects import Effects
from tests.testing.bank import Charge, open_bank


class Payments(http.server.BaseHTTPRequestHandler):
    """Takes every request."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def payments() -> Iterator[str]:
    """The address of a payment server."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Payments)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/charges"
    server.shutdown()
    thread.join()
    server.server_close()


def _with_requests(url: str, headers: dict[str, str]) -> None:
    requests.post(url, headers=headers, timeout=5)


def _with_httpx(url: str, headers: dict[str, str]) -> None:
    with httpx.Client() as client:
        client.post(url, headers=headers)


def _with_urllib3(url: str, headers: dict[str, str]) -> None:
    with urllib3.PoolManager() as pool:
        pool.request("POST", url, headers=headers)


def _with_the_standard_library(url: str, headers: dict[str, str]) -> None:
    place = urllib3.util.parse_url(url)
    connection = http.client.HTTPConnection(str(place.host), place.port)
    connection.request("POST", place.path or "/", headers=headers)
    connection.getresponse().read()
    connection.close()


CLIENTS = {
    "requests": _with_requests,
    "httpx": _with_httpx,
    "urllib3": _with_urllib3,
    "http.client": _with_the_standard_library,
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_payment_without_a_key_is_found_and_with_one_passes(
    app: Celery, once: EffectOnce, effects: Effects, payments: str, client: str
) -> None:
    @app.task(name="careless", once=Leased("careless:{order_id}"))
    def careless(order_id: int) -> None:
        CLIENTS[client](payments, {})

    @app.task(name="careful", once=Leased("careful:{order_id}"))
    def careful(order_id: int) -> None:
        CLIENTS[client](payments, {"Idempotency-Key": str(once.effect.idempotency_key("pay"))})

    with pytest.raises(NotOnce) as raised:
        effects.prove_once(careless, (1,))
    (finding, *_) = raised.value.findings
    assert finding.fault.startswith("killed after POST http://127.0.0.1")
    assert "made 2 times instead of 1" in finding.differences[0]
    assert effects.prove_once(careful, (1,)).trials > 5


def test_a_message_to_a_guarded_task_may_be_sent_twice(app: Celery, once: EffectOnce, effects: Effects) -> None:
    @app.task(name="receipt", once=Leased("receipt:{order_id}"))
    def receipt(order_id: int) -> None: ...

    @app.task(name="order", once=Leased("order:{order_id}"))
    def order(order_id: int) -> None:
        receipt.delay(order_id)

    assert "publish receipt(1,) {}" in effects.prove_once(order, (1,)).points


def test_a_counter_in_redis_is_found_and_a_set_passes(app: Celery, effects: Effects, redis_url: str) -> None:
    client = redis.Redis.from_url(redis_url)
    client.set("orders", 7)

    @app.task(name="adds")
    def adds(order_id: int) -> None:
        client.incr("orders")

    @app.task(name="joins")
    def joins(order_id: int) -> None:
        client.sadd("paid", order_id)

    with pytest.raises(NotOnce, match="key orders is otherwise"):
        effects.prove_once(adds, (1,))
    assert client.get("orders") == b"7"
    effects.prove_once(joins, (1,))
    assert client.keys() == [b"orders"]
    client.close()


def test_a_lock_that_a_killed_holder_cannot_release(
    app: Celery, effects: Effects, redis_url: str, bank: sa.Engine
) -> None:
    """The ``finally`` of a killed process does not run."""
    client = redis.Redis.from_url(redis_url)

    @app.task(name="locks")
    def locks(order_id: int) -> None:
        if not client.set(f"lock:{order_id}", "x", nx=True):
            return
        try:
            with bank.begin() as connection:
                connection.execute(
                    sa.text("insert into seen values (:key) on conflict do nothing"), {"key": str(order_id)}
                )
        finally:
            client.delete(f"lock:{order_id}")

    with pytest.raises(NotOnce) as raised:
        effects.prove_once(locks, (1,))
    assert "table seen: 0 rows instead of 1" in str(raised.value)
    assert "killed before insert into seen" in str(raised.value)
    client.close()


def test_a_file_that_is_appended_to_is_found_and_one_that_is_written_passes(
    app: Celery, effects: Effects, tmp_path: Path
) -> None:
    book = tmp_path / "book"

    @app.task(name="appends")
    def appends(order_id: int) -> None:
        with book.open("a") as file:
            file.write(f"{order_id}\n")

    @app.task(name="writes")
    def writes(order_id: int) -> None:
        book.write_text(f"{order_id}\n")

    with pytest.raises(NotOnce, match=r"file .*book is otherwise"):
        effects.prove_once(appends, (1,))
    assert not book.exists()
    effects.prove_once(writes, (1,))


def test_a_body_of_twenty_points_is_proven_in_time(app: Celery, once: EffectOnce, effects: Effects) -> None:
    """Ten seconds on SQLite are promised; the deadline here leaves room for a busy machine."""

    @app.task(name="long", once=Transactional("long:{order_id}"))
    def long(order_id: int) -> None:
        for amount in range(17):
            once.session.execute(sa.insert(Charge).values(order_id=order_id, amount=amount))

    proof = effects.prove_once(long, (1,))
    assert len(proof.points) >= 20
    assert proof.trials >= 50


def test_postgresql_is_proven_in_a_copy(app: Celery, effects: Effects, postgresql_url: str) -> None:
    bank = open_bank(postgresql_url)

    @app.task(name="charge")
    def charge(order_id: int) -> None:
        with Session(bank) as session, session.begin():
            session.add(Charge(order_id=order_id, amount=5))

    @app.task(name="fix")
    def fix() -> None:
        with bank.begin() as connection:
            connection.execute(sa.text("update accounts set balance = 50"))

    with pytest.raises(NotOnce, match="table charges: 2 rows instead of 1"):
        effects.prove_once(charge, (1,), database=bank)
    assert effects.prove_once(fix, database=bank).trials == 7
    with bank.connect() as connection:
        assert connection.execute(sa.text("select count(*) from charges")).scalar() == 0
        assert connection.execute(sa.text("select balance from accounts")).scalar() == 100
    bank.dispose()


def test_a_message_that_commits_with_the_work_is_not_lost_when_its_sender_dies(
    app: Celery, once: EffectOnce, effects: Effects
) -> None:
    """Between the commit and the publish it is in the outbox, and the next delivery sends it; twice, at worst."""

    @app.task(name="receipt", once=Leased("receipt:{order_id}"))
    def receipt(order_id: int) -> None: ...

    @app.task(name="order", once=Transactional("order:{order_id}"))
    def order(order_id: int) -> None:
        once.session.add(Charge(order_id=order_id, amount=5))
        receipt.delay(order_id)

    assert any(point.startswith("publish receipt") for point in effects.prove_once(order, (1,)).points)
