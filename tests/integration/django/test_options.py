"""Options that a project gives to an alias, and threads that meet on one key."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery
from django.db import connections, transaction

from effectonce import EffectOnce, Leased, Transactional
from effectonce.domain.claims import State
from tests.integration.django import project
from tests.integration.django.books.models import Charge

POSTGRESQL = ["default", "serial", "binding"]
SQLITE = ["lite", "immediate"]


@pytest.fixture(params=[*POSTGRESQL, *SQLITE])
def alias(request: pytest.FixtureRequest) -> str:
    """An alias of each kind of options; its database is empty."""
    project.empty(request.getfixturevalue("postgresql" if request.param in POSTGRESQL else "sqlite"))
    return str(request.param)


@pytest.fixture
def once(alias: str) -> Iterator[EffectOnce]:
    """An EffectOnce in that alias, whose direct calls wait long."""
    app = Celery(f"options-{alias}", broker="memory://", backend="cache+memory://", set_as_current=False)
    once = EffectOnce(app, ledger=f"django://{alias}", lease_seconds=30)
    yield once
    once.ledger.close()
    connections[alias].close()
    app.close()


def test_bodies_and_claims_work_under_each_option(once: EffectOnce, alias: str) -> None:
    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> str:
        Charge.objects.using(alias).create(order=x)
        return f"did {x}"

    @once.app.task(name="mail", once=Leased("mail:{x}"))
    def mail(x: int) -> str:
        with transaction.atomic(using=alias):
            Charge.objects.using(alias).create(order=x + 10)
        return f"mailed {x}"

    assert [work(1), work(1)] == ["did 1"] * 2
    assert [mail(1), mail(1)] == ["mailed 1"] * 2
    assert sorted(Charge.objects.using(alias).values_list("order", flat=True)) == [1, 11]
    assert {entry.state for entry in once.ledger.entries(state=None, limit=9)} == {State.COMPLETED}


def test_threads_that_meet_on_one_key_take_effect_once(once: EffectOnce, alias: str) -> None:
    """Each has a connection of its own, and all are let go together while the first body runs."""
    started, said = threading.Barrier(4), []

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> str:
        Charge.objects.using(alias).create(order=x)
        return f"did {x}"

    once.app.finalize()

    def call() -> None:
        started.wait(timeout=30)
        try:
            said.append(work(1))
        finally:
            connections[alias].close()

    threads: list[Any] = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert said == ["did 1"] * 4
    assert Charge.objects.using(alias).count() == 1
