"""The broker delivers a message more than once."""

from typing import TYPE_CHECKING, Final

from celery import chain, chord

from effectonce.lab.proxy import Fault
from effectonce.lab.scenarios.scenario import scenario
from effectonce.lab.trials.parts import OWN_BROKER

if TYPE_CHECKING:
    from effectonce.lab.trials.trial import Trial

GROUP: Final = "The broker delivers again"
VISIBILITY: Final = 2.0


@scenario("long-body", group=GROUP, right="one effect", seconds=25)
def long_body(trial: "Trial") -> None:
    """A body lasts longer than the visibility timeout of Redis, and another worker is idle."""
    trial.begin(workers=2, visibility=VISIBILITY)
    trial.send("charge", "order", 5.0)
    trial.rest(calm=VISIBILITY + 1)


@scenario("long-countdown", group=GROUP, right="one effect", seconds=25)
def long_countdown(trial: "Trial") -> None:
    """A message is not due before its visibility timeout is over."""
    trial.begin(workers=2, visibility=VISIBILITY)
    trial.send("charge", "order", countdown=7)
    trial.rest(calm=VISIBILITY + 1)


@scenario("long-countdown-one-process", group=GROUP, right="one effect", seconds=25)
def long_countdown_one_process(trial: "Trial") -> None:
    """The same with one worker of one process, whose copies run one after the other."""
    trial.begin(workers=1, pool=1, visibility=VISIBILITY)
    trial.send("charge", "order", countdown=7)
    trial.rest(calm=VISIBILITY + 1)


@scenario("long-retry-countdown", group=GROUP, right="one effect", seconds=25)
def long_retry_countdown(trial: "Trial") -> None:
    """A task asks to be tried again later than the visibility timeout, and another worker is idle."""
    trial.begin(workers=2, visibility=VISIBILITY)
    trial.send("retry_once", "order", 7.0)
    trial.rest(calm=VISIBILITY + 1)


@scenario("parked-retry", group=GROUP, right="one effect", seconds=25)
def parked_retry(trial: "Trial") -> None:
    """The same, where such retries wait in the ledger instead (`far_eta="park"`); others have no such setting."""
    trial.begin(workers=2, visibility=VISIBILITY, settings={"effectonce_far_eta": "park"})
    trial.send("retry_once", "order", 7.0)
    trial.rest(calm=VISIBILITY + 1)


@scenario("backlog", group=GROUP, right="one effect each", seconds=25)
def backlog(trial: "Trial") -> None:
    """Messages are acknowledged early, and wait behind others in a worker for longer than the visibility timeout."""
    settings = {"worker_prefetch_multiplier": 4}
    trial.begin(workers=2, pool=1, visibility=VISIBILITY, settings=settings, task_options={"acks_late": False})
    for number in range(5):
        trial.send("charge", f"order {number}", 2.0)
    trial.rest(calm=VISIBILITY + 1)


@scenario("another-worker-less-patient", group=GROUP, right="one effect", seconds=20)
def another_worker_less_patient(trial: "Trial") -> None:
    """A worker of another queue, on the same Redis, has a shorter visibility timeout than the one that works."""
    trial.begin(workers=1)
    trial.add_workers(options=("-Q", "another"), visibility=VISIBILITY)
    trial.send("charge", "order", 6.0)
    trial.rest(calm=VISIBILITY + 1)


@scenario("clock-ahead", group=GROUP, right="one effect", seconds=20)
def clock_ahead(trial: "Trial") -> None:
    """One worker's clock is an hour ahead, so that every message of others looks long overdue to it."""
    trial.begin(workers=1, pool=1, visibility=30.0)
    trial.add_workers(pool=1, skew=3600.0)
    trial.send("charge", "order", 4.0)
    trial.rest(calm=3)


@scenario("publish-reply-lost", group=GROUP, right="one effect")
def publish_reply_lost(trial: "Trial") -> None:
    """The answer of Redis to a publish is lost, and the client publishes again."""
    proxy = trial.scene.before_broker()
    trial.begin()
    rule = proxy.when(b"LPUSH", Fault.LOST_REPLY)
    trial.send("charge", "order")
    rule.wait()
    trial.rest(calm=2)


@scenario("broker-from-snapshot", group=GROUP, needs=(OWN_BROKER,), right="one effect each", seconds=25)
def broker_from_snapshot(trial: "Trial") -> None:
    """Redis is killed and comes back with an older copy of its data, in which finished messages still wait."""
    trial.begin(workers=0)
    for number in range(3):
        trial.send("charge", f"order {number}")
    trial.scene.keep_snapshot()
    worker = trial.add_workers()[0]
    trial.rest()
    worker.kill()
    trial.scene.restart_from_snapshot()
    trial.add_workers()
    trial.rest(calm=2)


@scenario("connection-lost-rabbitmq", group=GROUP, rabbitmq=True, right="one effect", seconds=20)
def connection_lost_rabbitmq(trial: "Trial") -> None:
    """RabbitMQ loses the connections of a worker in the middle of a body, and delivers its message again."""
    proxy = trial.scene.before_broker()
    trial.begin(workers=2)
    trial.send("charge", "order", 4.0)
    trial.wait_acting("order")
    proxy.cut(reset=True)
    trial.rest(calm=5)


@scenario("chain-delivered-again", group=GROUP, right="one effect each", seconds=20)
def chain_delivered_again(trial: "Trial") -> None:
    """The first task of a chain is delivered again while it runs, and both copies send the rest."""
    trial.begin(workers=2, visibility=VISIBILITY)
    tasks = trial.lab.tasks
    trial.expected["first"] = 1
    trial.call(lambda: chain(tasks["charge"].si("first", 4.0), tasks["charge"].si("second")).apply_async(), "second")
    trial.rest(calm=VISIBILITY + 1)


@scenario("chord-delivered-again", group=GROUP, right="one effect each", seconds=20)
def chord_delivered_again(trial: "Trial") -> None:
    """A member of a chord is delivered again while it runs."""
    trial.begin(workers=2, visibility=VISIBILITY)
    tasks = trial.lab.tasks
    trial.expected.update(["a", "b"])
    header = [tasks["charge"].s("a", 4.0), tasks["charge"].s("b")]
    trial.call(lambda: chord(header, tasks["total"].s("all")).apply_async(), "all")
    trial.rest(calm=VISIBILITY + 1)


@scenario("replaced-and-delivered-again", group=GROUP, right="one effect", seconds=20)
def replaced_and_delivered_again(trial: "Trial") -> None:
    """A task replaces itself by another one, and its first message is delivered again meanwhile."""
    trial.begin(workers=2, visibility=VISIBILITY)
    trial.send("swap", "order", 4.0)
    trial.rest(calm=VISIBILITY + 1)


@scenario("replaced-and-sent-again", group=GROUP, right="one effect, and both callers get its result", seconds=20)
def replaced_and_sent_again(trial: "Trial") -> None:
    """A task replaces itself by another one, and the caller sends it again when that is done."""
    trial.begin()
    first = trial.send("swap", "order")
    trial.wait_answer(first)
    second = trial.send("swap", "order")
    for message in (first, second):
        trial.must_get(message, "done order")
    trial.rest()


@scenario("frozen-holder-retries", group=GROUP, right="one effect", seconds=30)
def frozen_holder_retries(trial: "Trial") -> None:
    """A worker is frozen for longer than its lease; another one takes over; the first one wakes up and retries."""
    trial.begin(workers=2, pool=1, visibility=VISIBILITY, lease=2.0)
    trial.send("hold_then_retry", "order", 1.5)
    _freeze_until_taken_over(trial)
    trial.rest(calm=3)


@scenario("frozen-holder", group=GROUP, right="one effect", seconds=30)
def frozen_holder(trial: "Trial") -> None:
    """A worker is frozen (SIGSTOP) for longer than its lease; another one takes over; the first one wakes up."""
    trial.begin(workers=2, pool=1, visibility=VISIBILITY, lease=2.0)
    trial.send("hold", "order", 1.5)
    _freeze_until_taken_over(trial)
    trial.rest(calm=3)


@scenario("busy-copy-outlives-its-holder", group=GROUP, right="one effect", seconds=30)
def busy_copy_outlives_its_holder(trial: "Trial") -> None:
    """A second worker gets the message while the first one works; then the first one is killed."""
    settings = {"effectonce_renew_visibility": False}
    trial.begin(workers=2, pool=1, visibility=VISIBILITY, settings=settings)
    trial.send("slow", "order", 5.0)
    holder = trial.worker_of(trial.wait_began("order"))
    trial.wait(lambda: trial.lab.diary.count("delivered", "order") > 1, "a second delivery")
    trial.kill_worker(holder)
    trial.rest(calm=3, seconds=60)


def _freeze_until_taken_over(trial: "Trial") -> None:
    """Stop the worker that began (SIGSTOP), and let it go on when another one has begun."""
    frozen = trial.worker_of(trial.wait_began("order"))
    frozen.pause()
    trial.note("frozen", pid=frozen.pid)
    trial.wait_takeover("order")
    frozen.resume()
