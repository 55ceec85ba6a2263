"""A retry of a body's own (rule 5)."""

import uuid
from typing import Any

import pytest
import sqlalchemy as sa
from celery import Celery
from celery.app.trace import build_tracer
from kombu.messaging import Producer

from effectonce import EffectOnce, Transactional


def test_a_retry_is_published_when_the_work_is_rolled_back_and_the_key_is_free(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its copy would meet the transaction that sent it, or outlive a death that left the work open."""
    app = Celery(uuid.uuid4().hex, broker="memory://", backend="cache+memory://", set_as_current=False)
    once = EffectOnce(app, ledger=sqlite_url)
    engine = once.ledger.source.engine  # type: ignore[attr-defined]
    open_at_publish: list[int] = []

    @app.task(name="again", bind=True, once=Transactional("again:{x}"))
    def again(self: Any, x: int) -> None:
        once.connection.execute(sa.text("create table written (x int)"))
        raise self.retry(countdown=0)

    plain: Any = Producer.publish

    def publish(self: Producer, *args: Any, **options: Any) -> Any:
        open_at_publish.append(engine.pool.checkedout())
        return plain(self, *args, **options)

    monkeypatch.setattr(Producer, "publish", publish)
    request = {"id": uuid.uuid4().hex, "task": "again", "delivery_info": {}, "retries": 0, "is_eager": False}
    ending = build_tracer("again", again, app=app)(request["id"], [1], {}, request).info
    assert ending.state == "RETRY"
    assert open_at_publish == [0]
    once.ledger.close()
    app.close()
