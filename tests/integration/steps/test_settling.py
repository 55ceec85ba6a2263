"""A person settles what a kill left unknown, and everything that waits for it goes on."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from celery import chain, chord
from celery.result import AsyncResult

from effectonce import Done, Failed
from effectonce.domain.claims import State
from tests.integration.steps.test_kills import BETWEEN, SOME, entry_of
from tests.integration.worker.harness import Shop
from tests.services.payments import Payments

APP = "tests.integration.steps.paying"


@pytest.fixture(autouse=True)
def _ends_workers(shop: Shop) -> Iterator[None]:
    """Each test arms its own workers."""
    yield
    shop.end_workers()


def start(shop: Shop, order: str) -> None:
    """Start a worker whose child dies once, after the payment of an order was answered."""
    death = shop.folder / f"death-{order}"
    shop.add(env={"EFFECTONCE_CRASH": BETWEEN, "EFFECTONCE_CRASH_ONCE": str(death)}, concurrency=1)


def wait_held(shop: Shop, result: AsyncResult) -> None:
    shop.wait(lambda: result.state == "HELD", "the result says that it is held")


@pytest.mark.parametrize("pair", SOME)
def test_a_chord_goes_on_when_its_held_part_is_settled(shop: Shop, payments: Payments, pair: str) -> None:
    start(shop, "c1")
    parts = [shop.task("pay_held").s("c1"), shop.task("pay").s("c2")]
    whole = chord(parts)(shop.task("total").s())
    wait_held(shop, whole.parent.results[0])
    changed = shop.once.entries.settle("pay-held:c1", Done("charge by hand"))
    assert (changed.state, changed.sent) == (State.COMPLETED, 1)
    assert "charge by hand" in whole.get(timeout=60)
    assert payments.charged("c1") == 1


@pytest.mark.parametrize("pair", ["redis+postgresql"])
def test_a_chain_goes_on_by_the_command(shop: Shop, payments: Payments, pair: str) -> None:
    start(shop, "d1")
    whole = chain(shop.task("pay_held").s("d1"), shop.task("echo").s())()
    wait_held(shop, whole.parent)
    words = ["settle", "pay-held:d1", "--done", "--result", '"settled"', "--yes", "--json"]
    command = [sys.executable, "-m", "celery", "-A", APP, "once", *words]
    env = {**os.environ, **shop.env}
    said = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stderr) == (0, "")
    assert json.loads(said.stdout)["sent"] == 1
    assert whole.get(timeout=60) == "got settled"
    assert whole.parent.get(timeout=10) == "settled"


@pytest.mark.parametrize("pair", ["redis+postgresql"])
def test_what_is_settled_as_failed_ends_as_a_failure(shop: Shop, payments: Payments, pair: str) -> None:
    start(shop, "e1")
    result = shop.send("pay_held", "e1")
    wait_held(shop, result)
    shop.once.entries.settle("pay-held:e1", Failed("the bank says no"))
    shop.wait(lambda: result.state == "FAILURE", "the task has failed")
    assert "the bank says no" in str(result.result)
    assert entry_of(shop, "pay-held:e1").state is State.FAILED


@pytest.mark.parametrize("pair", SOME)
def test_what_runs_again_goes_on_after_its_last_finished_step(shop: Shop, payments: Payments, pair: str) -> None:
    start(shop, f"f1-{pair}")
    result = shop.send("pay_held", f"f1-{pair}")
    wait_held(shop, result)
    assert shop.once.entries.rerun(f"pay-held:f1-{pair}").sent == 1
    assert result.get(timeout=60).startswith("charge ")
    assert payments.charged(f"f1-{pair}") == 1
    assert len(shop.outside(f"reserve:f1-{pair}")) == 1
