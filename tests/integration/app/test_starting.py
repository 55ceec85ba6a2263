"""What a worker finds out when it is made, before it takes a message."""

from collections.abc import Callable

import pytest
from celery import Celery

from effectonce import EffectOnce, Leased, SettingsInvalid


def guarded(app: Celery, ledger: str) -> Celery:
    EffectOnce(app, ledger=ledger)

    @app.task(name="work", once=Leased("k:{x}"))
    def work(x: int) -> int:
        return x

    return app


def test_a_ledger_in_memory_refuses_processes_that_do_not_share_it(app: Celery) -> None:
    """It would be one ledger a process, none of which knows what the others did."""
    with pytest.raises(SettingsInvalid, match=r"memory://starting.*sqlite:///.*threads or solo"):
        guarded(app, "memory://starting").WorkController(pool="prefork", concurrency=1)


@pytest.mark.parametrize("pool", ["solo", "threads"])
def test_a_ledger_in_memory_serves_a_pool_of_one_process(app: Celery, pool: str) -> None:
    assert guarded(app, "memory://starting").WorkController(pool=pool, concurrency=1)


def test_celerys_own_deduplication_is_refused(make_app: Callable[..., Celery], sqlite_url: str) -> None:
    """A chord whose worker died after the task's success would hang (celery 5.7)."""
    app = guarded(make_app(worker_deduplicate_successful_tasks=True), sqlite_url)
    with pytest.raises(SettingsInvalid, match="worker_deduplicate_successful_tasks"):
        app.WorkController(pool="solo")
    app.effectonce.ledger.close()
