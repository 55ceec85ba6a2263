"""A second send of the same key, with real senders, brokers and workers."""

import os
import subprocess
import sys

import pytest
from celery import group

from tests.integration.worker.harness import Shop

STORES = ["redis+postgresql", "redis+sqlite", "redis+redis"]
SENDER = """
import sys
from tests.integration.policies import tasks
sys.stdin.readline()
result = getattr(tasks, sys.argv[1]).delay("today")
print(result.id, result.duplicate)
"""


def senders(shop: Shop, task: str, number: int, **env: str) -> list[subprocess.Popen[str]]:
    """Processes that send the same when they are told to."""
    return [
        subprocess.Popen(
            [sys.executable, "-c", SENDER, task],
            env={**os.environ, **shop.env, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(number)
    ]


def told(processes: list[subprocess.Popen[str]]) -> list[list[str]]:
    """Tell all to send, and what each says."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [process.communicate(timeout=60)[0].split() for process in processes]


@pytest.mark.parametrize("pair", STORES)
def test_of_many_senders_at_once_one_sends_and_all_know_its_id(shop: Shop, pair: str) -> None:
    """Processes of their own, and a unique constraint between them."""
    shop.shut("report-today")
    answers = told(senders(shop, "report", 5))
    assert len({task_id for task_id, _ in answers}) == 1
    assert sorted(duplicate for _, duplicate in answers) == ["False"] + ["True"] * 4
    shop.open("report-today")
    shop.start()
    assert shop.app.AsyncResult(answers[0][0]).get(timeout=60) == "report of today"


@pytest.mark.parametrize("pair", ["redis+postgresql", "redis+redis"])
def test_until_it_is_done_a_second_send_gives_the_first_result(shop: Shop, pair: str) -> None:
    shop.shut("report-1")
    shop.start()
    first = shop.send("report", "1")
    shop.wait_at("report-1")
    second = shop.send("report", "1")
    assert (first.duplicate, second.duplicate, second.id) == (False, True, first.id)
    shop.open("report-1")
    assert second.get(timeout=60) == "report of 1"
    shop.wait(lambda: not shop.send("report", "1").duplicate, "the reservation was given back")


@pytest.mark.parametrize("pair", ["redis+postgresql", "redis+redis"])
def test_until_it_has_started_a_send_during_the_body_is_another_one(shop: Shop, pair: str) -> None:
    shop.shut("begun-1")
    first, second = shop.send("begun", "1"), shop.send("begun", "1")
    assert second.duplicate
    shop.start()
    shop.wait_at("begun-1")
    third = shop.send("begun", "1")
    assert not third.duplicate
    shop.open("begun-1")
    assert [first.get(timeout=60), third.get(timeout=60)] == ["begun 1"] * 2
    assert shop.bodies("begun:1") == 2


@pytest.mark.parametrize("pair", ["redis+postgresql"])
def test_a_message_that_is_retried_is_not_done(shop: Shop, pair: str) -> None:
    shop.start()
    first = shop.send("paid", "1", 1)
    shop.wait_bodies("paid:1", 1)
    assert shop.send("paid", "1", 1).duplicate
    assert first.get(timeout=60) == "paid 1"
    shop.wait(lambda: not shop.send("paid", "1", 1).duplicate, "the reservation was given back")


@pytest.mark.parametrize("pair", ["redis+postgresql"])
def test_members_of_a_group_all_go_out(shop: Shop, pair: str) -> None:
    """Each is waited for under its own id; the policy of the task lets one of them act."""
    shop.start()
    assert group([shop.task("paid").s("2")] * 3).apply_async().get(timeout=60) == ["paid 2"] * 3
    assert shop.bodies("paid:2") == 1


@pytest.mark.parametrize("pair", STORES)
@pytest.mark.parametrize("point", ["reserve.before", "reserve.after"])
def test_a_sender_killed_beside_its_reservation_refuses_nobody_for_ever(shop: Shop, pair: str, point: str) -> None:
    """Hole H15: nothing was sent, and the reservation ends after its two seconds."""
    process, *_ = senders(shop, "fragile", 1, EFFECTONCE_CRASH=point)
    assert told([process]) == [[]]
    assert process.returncode == -9
    shop.start()
    shop.wait(lambda: not shop.send("fragile", "today").duplicate, "the reservation has ended")
    shop.wait_bodies("fragile:today", 1)


@pytest.mark.parametrize("pair", ["redis+postgresql", "redis+redis"])
@pytest.mark.parametrize("point", ["give_back.before", "give_back.after"])
def test_a_worker_killed_beside_the_end_of_a_reservation_leaves_none(shop: Shop, pair: str, point: str) -> None:
    """Its message comes again, finds its effect done, and gives back what it had reserved."""
    death = shop.folder / f"death-{point}"
    mortal = shop.add(queues=["mortal"], env={"EFFECTONCE_CRASH": point, "EFFECTONCE_CRASH_ONCE": str(death)})
    first = shop.send("paid", "3", queue="mortal")
    shop.wait(death.exists, "somebody died there")
    assert first.get(timeout=60) == "paid 3"
    shop.wait(lambda: not shop.send("paid", "3", queue="mortal").duplicate, "the reservation was given back")
    assert shop.bodies("paid:3") == 1
    mortal.stop()


@pytest.mark.parametrize("pair", ["redis+postgresql", "redis+sqlite"])
def test_what_a_body_reserves_commits_with_its_message_or_is_undone_with_it(shop: Shop, pair: str) -> None:
    """A body that is rolled back has reserved nothing, and its next attempt sends."""
    shop.start()
    first = shop.send("orders", "5", 1)
    assert first.get(timeout=60) == [False, True]
    shop.wait_bodies("report:5", 1)
    shop.wait(lambda: not shop.send("report", "5").duplicate, "the reservation was given back")
