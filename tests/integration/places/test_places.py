"""Ledgers by tenant on two PostgreSQL servers, and the ways in which a task without a key is named: one real worker."""

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from effectonce import EffectOnce, KeyInvalid, KeyMissing
from effectonce.domain.claims import State
from effectonce.lab.process_tree import wait_until
from effectonce.lab.processes import Worker
from tests.services import Fleet, PostgreSQL

PROJECT = "tests.integration.places.shop"


class Tenants:
    """The app, its worker, and what is seen of them."""

    def __init__(self, folder: Path, fleet: Fleet) -> None:
        self.folder = folder
        one, two = fleet.postgresql(), fleet.second_postgresql()
        self.second = two
        self.urls = {"default": one.fresh_url(), "blue": two.fresh_url()}
        self.env = {
            "PLACES_FOLDER": str(folder),
            "PLACES_BROKER": fleet.redis().fresh_url(),
            "PLACES_ONE": self.urls["default"],
            "PLACES_TWO": self.urls["blue"],
        }
        os.environ.update(self.env)
        self.module = importlib.import_module(PROJECT)
        self.app: Any = self.module.app
        self.once: EffectOnce = self.module.once
        for url in self.urls.values():
            self.ask(url, "create table charges (order_id text)")
        for store in self.once.stores:
            store.create_schema()
        self.worker = Worker(PROJECT, folder=folder, pool="threads", env=self.env).start().wait_ready()

    def close(self) -> None:
        self.worker.stop()
        for store in self.once.stores:
            store.close()
        self.app.close()

    def send(self, name: str, *args: Any, tenant: str | None = None, **options: Any) -> Any:
        headers = {**options.pop("headers", {}), **({"tenant": tenant} if tenant else {})}
        return self.app.tasks[name].apply_async(args, headers=headers or None, **options)

    def ask(self, url: str, statement: str) -> list[Any]:
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        with engine.begin() as connection:
            result = connection.exec_driver_sql(statement)
            return list(result.scalars()) if result.returns_rows else []

    def charges(self, tenant: str) -> list[str]:
        return self.ask(self.urls[tenant], "select order_id from charges order by order_id")

    def bodies(self, what: str) -> list[str]:
        """The keys under which these bodies ran."""
        file = self.folder / "bodies"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line.partition(" ")[2] for line in lines if line.split()[0] == what]

    def wait(self, ready: Any, what: str) -> None:
        if not wait_until(ready, seconds=60):
            pytest.fail(f"waited in vain until {what}\n{self.worker.log_text()[-4000:]}")


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory, fleet: Fleet) -> Iterator[Tenants]:
    tenants = Tenants(tmp_path_factory.mktemp("places"), fleet)
    yield tenants
    tenants.close()


def test_a_tenant_in_a_header_has_keys_work_and_messages_in_a_ledger_of_its_own(tenants: Tenants) -> None:
    results = [tenants.send("charge", "1", tenant=each) for each in (None, "blue", "blue", "green")]
    assert [result.get(timeout=60) for result in results] == ["charged 1"] * 4
    assert (tenants.charges("default"), tenants.charges("blue")) == (["1", "1"], ["1"])
    keys = tenants.bodies("charge:1")
    assert len(keys) == len(set(keys)) == 3
    (blue,) = (key for key in keys if "blue" in key)
    found = tenants.once.entries.find(blue)
    assert [seen.store.name for seen in found] == [tenants.once.stores[1].name]
    tenants.wait(lambda: len(tenants.bodies("mail:1")) == 3, "the messages of all three went out")


def test_a_message_left_in_the_outbox_of_one_of_them_is_relayed(tenants: Tenants) -> None:
    """Each ledger has relays of its own in the worker."""
    engine = sa.create_engine(tenants.urls["blue"])
    mail = tenants.app.tasks["mail"]
    with sa.orm.Session(engine) as session, tenants.once.outbox(session, in_order="one after the other"):
        mail.apply_async(("2",), effect_key="two", headers={"tenant": "blue"})
        session.commit()
    engine.dispose()
    tenants.wait(lambda: tenants.bodies("mail:2"), "it was relayed")


def test_while_one_server_is_away_the_effects_of_the_other_go_on(tenants: Tenants) -> None:
    """Last but one thing that a worker of many tenants may do is to stop for one of them."""
    second: PostgreSQL = tenants.second
    second.stop()
    try:
        waiting = tenants.send("charge", "3", tenant="blue")
        tenants.wait(lambda: "effect.deferred" in tenants.worker.log_text(), "it was put off")
        assert tenants.send("charge", "3").get(timeout=60) == "charged 3"
        assert "stopped consuming" not in tenants.worker.log_text()
    finally:
        second.start()
    assert waiting.get(timeout=60) == "charged 3"
    assert tenants.charges("blue").count("3") == 1


class TestKeyless:
    """A task that names no key is named by its call, by the HTTP request, by the tick or by its parent."""

    def test_by_the_call(self, tenants: Tenants) -> None:
        results = [tenants.send("mail", "k1", effect_key=key) for key in ("a", "a", "b")]
        assert [result.get(timeout=60) for result in results] == ["mailed k1"] * 3
        assert sorted(tenants.bodies("mail:k1")) == ["mail:a", "mail:b"]

    def test_by_the_http_request_and_the_arguments(self, tenants: Tenants) -> None:
        headers = {"effectonce_http": "request-7"}
        results = [tenants.send("mail", order, headers=headers) for order in ("k2", "k2", "k3")]
        assert [result.get(timeout=60) for result in results] == ["mailed k2", "mailed k2", "mailed k3"]
        assert [len(tenants.bodies(f"mail:{order}")) for order in ("k2", "k3")] == [1, 1]

    def test_by_the_tick(self, tenants: Tenants) -> None:
        ticks = ["2026-11-01T00:00:00Z", "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"]
        results = [tenants.send("mail", "k4", headers={"effectonce_tick": tick}) for tick in ticks]
        assert [result.get(timeout=60) for result in results] == ["mailed k4"] * 3
        assert len(tenants.bodies("mail:k4")) == 2

    def test_by_the_parent_and_the_ordinal_of_the_send(self, tenants: Tenants) -> None:
        """The parent runs once more in another generation, and its children are others."""
        for again in (None, None, "backfill", "backfill"):
            assert tenants.send("parent", "k5", effect_again=again).get(timeout=60) == "sent 2"
        tenants.wait(lambda: len(tenants.bodies("mail:k5")) == 4, "each child ran once")
        assert len(set(tenants.bodies("mail:k5"))) == 4

    def test_by_nothing_is_an_error(self, tenants: Tenants) -> None:
        with pytest.raises(KeyMissing):
            tenants.send("mail", "k6").get(timeout=60)
        assert tenants.bodies("mail:k6") == []


class TestAtTheCall:
    def test_a_policy_that_takes_its_key_from_the_call_wants_one(self, tenants: Tenants) -> None:
        results = [tenants.send("import", "f", effect_key=key) for key in ("x", "x", "y")]
        assert [result.get(timeout=60) for result in results] == ["imported f"] * 3
        assert sorted(tenants.bodies("import:f")) == ["import:x", "import:y"]
        with pytest.raises(KeyMissing):
            tenants.send("import", "f").get(timeout=60)

    def test_a_policy_with_a_key_of_its_own_takes_none(self, tenants: Tenants) -> None:
        with pytest.raises(KeyInvalid):
            tenants.send("charge", "9", effect_key="mine")

    def test_a_generation_is_one_more_run_and_itself_repeatable(self, tenants: Tenants) -> None:
        for again in (None, "g1", "g1", "g2"):
            assert tenants.send("charge", "g", effect_again=again).get(timeout=60) == "charged g"
        assert tenants.charges("default").count("g") == 3
        (key,) = (key for key in tenants.bodies("charge:g") if "g1" in key)
        (first,) = tenants.once.entries.find(key)
        assert first.entry.state is State.COMPLETED
