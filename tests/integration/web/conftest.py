"""A dashboard over a ledger with something in it, in this process; the browser gets it over a real port."""

import itertools
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from effectonce.domain.claims import Granted
from effectonce.domain.steps import End
from effectonce.events import Name
from effectonce.web import dashboard
from tests.integration.seeing.conftest import House
from tests.integration.seeing.messages import message

HOSTILE = "<img src=x onerror=alert(1)>\"'{{7*7}}"
_numbers = itertools.count()


def furnish(house: House) -> None:
    """Effects of every kind: done, doubled, taken over, held, hostile; an outbox, and a beat."""
    for order in ("A-1041", "A-1042", "A-1043", HOSTILE):
        house.deliver("pay", order, id=f"id-{order[:6]}")
    for _ in range(3):
        house.deliver("pay", "A-1042", id="id-again")
    house.deliver("pay", "A-1042", id="id-A-1042", redelivered=True)
    house.deliver("pay", "A-1043", 999, id="id-other")
    house.hold("mail", "B-7", id="id-B-7")
    house.deliver("mail", "B-7", id="id-B-7", redelivered=True)
    house.once.write_history()
    engine = house.once.ledger.source.engine  # type: ignore[attr-defined]
    with engine.begin() as connection:
        connection.exec_driver_sql("update effectonce_entries set lease_until = 0 where state = 1")
    house.deliver("mail", "B-7", id="id-B-7", redelivered=True)
    for order in ("C-1", "C-2", "C-3"):
        hold_as_unknown(house, order)
    house.hold("mail", "D-1", id="id-D-1")
    house.once.outbox_store().store([message("mail", task_id="later", due=time.time() + 3600)])
    house.once.write_history()
    with engine.begin() as connection:  # an hour of counts, for the charts
        row = connection.exec_driver_sql("select max(minute) from effectonce_minutes").scalar()
        for at in range(1, 55):
            wave = 20 + (at * 7) % 23 + at % 5 * 3
            told = [(Name.EFFECT_COMPLETED, "", wave), (Name.EFFECT_FAILED, "", at % 4)]
            told += [(Name.EFFECT_REPLAYED, "caller", at % 6), (Name.EFFECT_DEFERRED, "visibility", (at // 9) % 4)]
            told += [(Name.EFFECT_REPLAYED, "redelivery", (at * 3) % 4)]
            for name, cause, number in told:
                connection.exec_driver_sql(
                    "insert into effectonce_minutes (minute, name, cause, number) values (?, ?, ?, ?)",
                    (row - at, name.value, cause, number),
                )


def hold_as_unknown(house: House, order: str) -> Granted:
    """An effect whose holder died in a step; its message waits."""
    from effectonce.app.copies import held_message  # noqa: PLC0415 - beside its only use

    held = house.hold("mail", order, id=f"id-{order}")
    ledger = house.once.ledger
    ledger.begin_step(held, "render", holds=False)
    ledger.end_step(held, "render", End(result=b"1"))
    ledger.begin_step(held, "send", holds=True)
    ledger.mark_unknown(held.digest, held.attempt)
    task = house.app.tasks["mail"]
    request = task.request
    request.update(id=f"id-{order}", args=(order,), kwargs={}, called_directly=False, headers={}, delivery_info={})
    try:
        ledger.hold(held.digest, held_message(task, request))
    finally:
        request.update(id=None, called_directly=True)
    return held


@contextmanager
def served(house: House, **options: Any) -> Iterator[str]:
    """The dashboard on a free port of this machine."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(dashboard(house.once, **options), log_level="error", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(10)


Serve = Callable[..., str]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("web"))  # so that pictures show no path of this machine
    house = House("sqlite:///shop.sqlite")
    furnish(house)
    yield house
    house.close()
    os.chdir(before)
