"""The code of a how-to is run as it stands, on a ledger in memory."""

import re
import runpy
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import _state

from effectonce import EffectBusy, EffectOnce, Exclusive

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "periodic-tasks-that-must-not-overlap.md"


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """What the page's first block of code defines; its tasks stay out of the apps of other tests."""
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert found is not None
    file = tmp_path / "warehouse.py"
    file.write_text(found[1].replace("postgresql+psycopg://localhost/warehouse", "memory://how-to"))
    shared = set(_state._on_app_finalizers)
    names = runpy.run_path(str(file))
    yield names
    names["app"].close()
    _state._on_app_finalizers.intersection_update(shared)


def test_the_periodic_task_of_the_page_does_not_overlap(shown: dict[str, Any]) -> None:
    once, sync = shown["once"], shown["sync"]
    assert isinstance(once, EffectOnce)
    assert isinstance(sync.once, Exclusive)
    inside, may_go = threading.Event(), threading.Event()

    @shown["app"].task(name="warehouse.slow", once=Exclusive("sync", scope="warehouse.sync", lease=0.2))
    def slow() -> None:
        inside.set()
        may_go.wait(30)

    running = threading.Thread(target=slow)
    running.start()
    assert inside.wait(30)
    entry = once.ledger.find("sync")[0]
    assert entry.key == "sync"
    with pytest.raises(EffectBusy):
        slow()
    may_go.set()
    running.join(30)
    assert [sync(), sync()] == ["synced", "synced"]


def test_its_schedule_names_its_task(shown: dict[str, Any]) -> None:
    assert {entry["task"] for entry in shown["app"].conf.beat_schedule.values()} == {shown["sync"].name}


def test_every_value_of_on_busy_that_the_page_offers_is_one() -> None:
    offered = re.findall(r'^\| `"(\w+)"`', PAGE.read_text(), flags=re.MULTILINE)
    assert offered == ["skip", "follow", "defer", "wait"]
    assert [Exclusive("sync", on_busy=value).on_busy for value in offered] == offered
