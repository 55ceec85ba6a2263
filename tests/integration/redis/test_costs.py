"""What a guarded call costs on Redis."""

from collections.abc import Iterator

import pytest
from celery import Celery

from effectonce import EffectOnce, Leased
from tests.integration.redis.wire import counted


@pytest.fixture
def once(redis_url: str) -> Iterator[EffectOnce]:
    """A guarded task that was called once, so that the server knows the scripts."""
    app = Celery("costs", broker="memory://", backend="cache+memory://", set_as_current=False)
    once = EffectOnce(app, ledger=redis_url)

    @app.task(name="mail", once=Leased("mail:{x}"))
    def mail(x: int) -> int:
        return x

    mail(0)
    mail(0)
    yield once
    once.ledger.close()
    app.close()


def test_a_leased_effect_costs_two_commands(once: EffectOnce, monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch) as sent:
        assert once.app.tasks["mail"](1) == 1
    assert len(sent) == 2


def test_a_duplicate_of_finished_work_costs_one_command(once: EffectOnce, monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch) as sent:
        assert once.app.tasks["mail"](0) == 0
    assert len(sent) == 1
