"""Real workers of a Django project, killed: effects 1, losses 0."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from django.db import connections

from effectonce.lab.process_tree import wait_until
from effectonce.lab.processes import Worker
from tests.integration.django import project
from tests.integration.django.books.models import Charge
from tests.services import Fleet

DEADLINE = 60.0


class Site:
    """A project on a broker and a database, its workers, and what its bodies did."""

    def __init__(self, broker: str, database: str, alias: str, folder: Path) -> None:
        self.alias, self._folder = alias, folder
        self._env = {
            "DJANGO_SETTINGS_MODULE": "tests.integration.django.settings",
            "PROJECT_DATABASE": database,
            "PROJECT_BROKER": broker,
            "PROJECT_RESULTS": broker,
            "PROJECT_FOLDER": str(folder),
        }
        # Whoever sends needs neither Django nor the guard: the key is told by the worker.
        self._sender = Celery("sender", broker=broker, backend=broker, set_as_current=False)
        self.workers: list[Worker] = []

    def start(self, **env: str) -> Worker:
        worker = Worker(
            "tests.integration.django.proj",
            folder=self._folder,
            name=f"w{len(self.workers)}",
            queues=["books"],
            concurrency=2,
            env={**self._env, **env},
            cwd=Path(__file__).parents[3],
        )
        self.workers.append(worker)
        return worker.start().wait_ready()

    def send(self, task: str, order: int) -> Any:
        name = f"tests.integration.django.books.tasks.{task}"
        return self._sender.send_task(name, (order,), queue="books")

    def shut(self, order: int) -> None:
        (self._folder / f"shut-{order}").touch()

    def open(self, order: int) -> None:
        (self._folder / f"open-{order}").touch()

    def wait_at(self, order: int) -> None:
        self.wait((self._folder / f"at-{order}").exists, f"a body is at gate {order}")

    def wait(self, ready: Callable[[], bool], what: str) -> None:
        if not wait_until(ready, seconds=DEADLINE):
            pytest.fail(f"waited in vain until {what}\n" + "".join(each.log_text()[-3000:] for each in self.workers))

    def lines(self, book: str) -> list[str]:
        file = self._folder / book
        return file.read_text().splitlines() if file.exists() else []

    def charges(self) -> list[int]:
        found = list(Charge.objects.using(self.alias).order_by("order").values_list("order", flat=True))
        connections[self.alias].close()
        return found

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
        self._sender.close()


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def site(request: pytest.FixtureRequest, fleet: Fleet, redis_url: str, tmp_path: Path) -> Iterator[Site]:
    url = ""
    server: Any = None if request.param == "sqlite" else getattr(fleet, request.param)()
    if request.param == "sqlite":
        project.give_sqlite(tmp_path)
        site = Site(redis_url, f"sqlite:///{tmp_path / 'lite.sqlite'}", "lite", tmp_path)
    else:
        url = server.fresh_url()
        getattr(project, f"give_{request.param}")(url)
        site = Site(redis_url, url, "maria" if request.param == "mariadb" else "default", tmp_path)
    connections.close_all()
    yield site
    site.close()
    connections.close_all()
    if url:
        server.put_back(url)


def test_a_worker_killed_in_the_body_leaves_one_effect_and_loses_none(site: Site) -> None:
    """The row was written and not committed; the message comes again, and so do those behind it."""
    site.shut(1)
    worker = site.start()
    results = {order: [site.send("charge", order) for _ in range(2)] for order in (1, 2, 3)}
    site.wait_at(1)
    worker.kill()
    site.open(1)
    site.start()
    for order, twins in results.items():
        assert [twin.get(timeout=DEADLINE) for twin in twins] == [f"charged {order}"] * 2
    assert site.charges() == [1, 2, 3]
    assert site.lines("bodies").count("charge 1") >= 2
    assert sorted(site.lines("hooks")) == ["charge 1", "charge 2", "charge 3"]


POINTS = ["claim.before", "claim.after", "body.after", "outbox.after", "settle.before", "commit.before", "commit.after"]
ORDINARY = [("postgresql", "outbox.after"), ("mariadb", "commit.after"), ("sqlite", "commit.before")]


@pytest.mark.parametrize(
    ("site", "point"),
    [
        pytest.param(kind, point, marks=() if (kind, point) in ORDINARY else pytest.mark.soak)
        for kind in ("postgresql", "mariadb", "sqlite")
        for point in POINTS
    ],
    indirect=["site"],
)
def test_a_process_killed_at_a_point_leaves_one_effect_and_one_message(site: Site, point: str, tmp_path: Path) -> None:
    """What the body sends is in the same commit: the outside sees one key of its mail, and sees it."""
    site.start(EFFECTONCE_CRASH=point, EFFECTONCE_CRASH_ONCE=str(tmp_path / "died"))
    results = [site.send("charge", order) for order in (1, 1, 2)]
    assert [result.get(timeout=DEADLINE) for result in results] == ["charged 1", "charged 1", "charged 2"]
    assert (tmp_path / "died").exists()
    assert site.charges() == [1, 2]
    site.wait(lambda: len(set(site.lines("outside"))) == 2, "both mails are out")


def test_a_leased_task_acts_once_and_its_worker_keeps_no_transaction(site: Site) -> None:
    site.start()
    results = [site.send("mail", 1) for _ in range(3)]
    assert [result.get(timeout=DEADLINE) for result in results] == [False] * 3
    assert len(site.lines("outside")) == 1


def test_a_body_that_closes_its_connection_fails_and_its_worker_goes_on(site: Site) -> None:
    site.start()
    failed = site.send("closes", 1)
    assert failed.get(timeout=DEADLINE, propagate=False).code == "transaction-escaped"
    assert site.send("charge", 2).get(timeout=DEADLINE) == "charged 2"
    assert site.charges() == [2]
