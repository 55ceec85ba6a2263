"""A worker that lives keeps what it holds, and one that does not loses it: without any guard, on a 3 s timeout."""

import time
from collections.abc import Callable

import pytest

from tests.integration.visibility.conftest import Hire
from tests.integration.visibility.crew import TIMEOUT, Crew
from tests.integration.visibility.sentinel import MASTER
from tests.integration.visibility.sqs import OPTIONS, Sqs
from tests.services import Redis

LONG = 4 * TIMEOUT
SWEEPS_OF_KOMBU = {"unacked_restore_interval": 1, "unacked_restore_throttle": 1}
MESSAGES = ("long", "later", "early", "behind", "other")


@pytest.mark.timeout(240)
def test_each_message_of_a_living_worker_runs_once_and_those_of_a_dead_one_come_back(
    hire: Hire, through_sentinel: Callable[[str], str], sqs: Sqs
) -> None:
    """A01, A04, A07, A09: bodies and countdowns of 12 s, messages that wait for a slot, in each pool; then kill -9.

    All is taken by one worker; then an idle one comes. The crew without the keeper shows that it gets such messages.
    """
    kept = [
        hire("prefork", options={"priority_steps": [0, 3, 6, 9], "queue_order_strategy": "priority"}),
        hire("threads", pool="threads", broker=through_sentinel, options={"master_name": MASTER}),
        hire("solo", pool="solo", queues=("celery", "second")),
        hire("sqs", broker=lambda _: sqs.url, options=OPTIONS, drained=lambda: not sqs.queues["celery"]),
        hire("gevent", pool="gevent", concurrency=4, options={"global_keyprefix": "shop:"}),
    ]
    without = hire("without", settings={"renew_visibility": False}, options=SWEEPS_OF_KOMBU)
    crews = [*kept, without]
    for crew in crews:
        crew.start()
    for crew in crews:
        crew.wait_ready()
        send(crew)
    for crew in crews:
        crew.wait_noted("long:began")
        crew.start(concurrency=4)
    for crew in kept:
        wait_done(crew)
    without.wait_noted("long:began", 2)
    without.wait_noted("later:began", 2)
    without.wait_noted("early:began", 2)
    assert {crew.name: counted(crew) for crew in kept} == {crew.name: dict.fromkeys(MESSAGES, 1) for crew in kept}
    assert_all_come_back(kept)


def send(crew: Crew) -> None:
    crew.send("work", "long", LONG, priority=6)
    crew.send("work", "later", 0, countdown=LONG, priority=3)
    crew.send("early", "early")
    crew.send("work", "behind", 0.5, priority=9)
    crew.send("work", "other", 0.5, queue=crew.queues[-1])


def wait_done(crew: Crew) -> None:
    """Wait until each has ended and the broker holds nothing that could start a body."""
    for what in MESSAGES:
        crew.wait_noted(f"{what}:ended")
    crew.wait(crew.is_drained, "the broker holds nothing")


def counted(crew: Crew) -> dict[str, int]:
    return {what: crew.bodies(what) for what in MESSAGES}


def assert_all_come_back(crews: list[Crew]) -> None:
    """Kill (or, for one, stop) the worker that runs a body: another has it within two timeouts."""
    for crew in crews:
        crew.send("hold", "orphan")
    gone = {}
    for crew in crews:
        crew.wait_noted("orphan:began")
        worker = crew.worker_of(crew.notes("orphan:began")[0][0])
        end = worker.pause if crew.name == "solo" else worker.kill
        end()
        gone[crew.name] = time.monotonic()
    for crew in crews:
        crew.wait_noted("orphan:began", 2)
        crew.let_go("orphan")
    for crew in crews:
        crew.wait_noted("orphan:ended")
    late = {crew.name: crew.notes("orphan:began")[1][1] - gone[crew.name] for crew in crews}
    assert {name: round(seconds, 1) for name, seconds in late.items() if seconds > 2 * TIMEOUT} == {}


def test_a_worker_goes_on_renewing_after_its_broker_was_away(hire: Hire, redis_server: Redis) -> None:
    """The channel of before is closed, and the keeper follows the worker to the new one."""
    crew = hire("back", pool="threads", concurrency=2, options={"visibility_timeout": 2}).start().wait_ready()
    redis_server.kill()
    crew.wait_log("cannot ask the broker")
    redis_server.start()
    crew.wait_log("answer again")
    crew.send("work", "long", 4)
    crew.wait_noted("long:ended")
    crew.wait(crew.is_drained, "the broker holds nothing")
    assert crew.bodies("long") == 1
    assert "Traceback" not in crew.logs()
