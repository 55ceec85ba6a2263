"""Processes die."""

from typing import TYPE_CHECKING, Final

from celery import chain, chord

from effectonce.lab.scenarios.scenario import scenario

if TYPE_CHECKING:
    from effectonce.lab.trials.trial import Trial

GROUP: Final = "A process dies"


@scenario("child-killed", group=GROUP, right="one effect")
def child_killed(trial: "Trial") -> None:
    """The pool process is killed (out of memory, say) in the middle of a body that has written."""
    trial.begin()
    trial.send("charge", "order", 1.5)
    trial.kill_child(trial.wait_acting("order"))
    trial.rest()


@scenario("child-killed-unready", group=GROUP, right="one effect")
def child_killed_unready(trial: "Trial") -> None:
    """The same before the body has written, with late acknowledgement but without `task_reject_on_worker_lost`."""
    options = {"reject_on_worker_lost": None}
    trial.begin(task_options=options)
    trial.may_fail(trial.send("slow", "order", 1.5))
    trial.kill_child(trial.wait_began("order"))
    trial.rest()


@scenario("worker-killed", group=GROUP, right="one effect", seconds=20)
def worker_killed(trial: "Trial") -> None:
    """The whole worker is killed in the middle of a body, and another one takes its place."""
    trial.begin(visibility=3.0)
    trial.send("charge", "order", 1.5)
    trial.kill_worker(trial.worker_of(trial.wait_acting("order")))
    trial.add_workers()
    trial.rest()


@scenario("worker-killed-rabbitmq", group=GROUP, rabbitmq=True, right="one effect", seconds=20)
def worker_killed_rabbitmq(trial: "Trial") -> None:
    """The same on RabbitMQ."""
    trial.begin()
    trial.send("charge", "order", 1.5)
    trial.kill_worker(trial.worker_of(trial.wait_acting("order")))
    trial.add_workers()
    trial.rest()


@scenario("worker-killed-early-ack", group=GROUP, right="one effect", seconds=25)
def worker_killed_early_ack(trial: "Trial") -> None:
    """A worker that acknowledges early is killed whole before the body has written; the caller sends again."""
    trial.begin(visibility=3.0, task_options={"acks_late": False})
    trial.calls_may_stay(trial.send("slow", "order", 1.5))
    trial.kill_worker(trial.worker_of(trial.wait_began("order")))
    trial.add_workers()
    trial.send("slow", "order", 1.5)
    trial.rest()


@scenario("poison", group=GROUP, right="no effect, and an end of it", seconds=40)
def poison(trial: "Trial") -> None:
    """A message kills every process that runs it."""
    trial.begin(pool=1, lease=1.0)
    trial.most_bodies = 8
    trial.send("deadly", "order", times=0)
    trial.rest(seconds=60, unless=lambda: trial.lab.diary.count("began", "order") > trial.most_bodies)


@scenario("hard-time-limit", group=GROUP, right="one effect", seconds=20)
def hard_time_limit(trial: "Trial") -> None:
    """A body is killed by its hard time limit, which leaves no message behind; the caller sends again."""
    trial.begin(lease=1.0)
    first = trial.send("stall_once", "order", time_limit=2)
    trial.may_fail(first)
    trial.wait_answer(first)
    trial.send("stall_once", "order")
    trial.rest()


@scenario("terminated", group=GROUP, right="one effect", seconds=20)
def terminated(trial: "Trial") -> None:
    """A body is ended by `revoke(terminate=True)`, which leaves no message behind; the caller sends again."""
    trial.begin(lease=1.0, settings={"worker_enable_remote_control": True})
    first = trial.send("stall_once", "order")
    trial.may_fail(first)
    trial.wait_began("order")
    trial.lab.app.control.revoke(first, terminate=True, signal="SIGKILL")
    trial.wait_answer(first)
    trial.note("killed", text="revoke(terminate=True)")
    trial.send("stall_once", "order")
    trial.rest()


@scenario("killed-before-result", group=GROUP, right="one effect")
def killed_before_result(trial: "Trial") -> None:
    """A process dies between the end of its work and its result."""
    trial.begin(fault="result")
    trial.send("charge", "order")
    trial.rest()


@scenario("killed-before-large-result", group=GROUP, right="one effect each, and the chain goes on")
def killed_before_large_result(trial: "Trial") -> None:
    """The same in a chain, with a result larger than what a ledger keeps by itself."""
    trial.begin(fault="result")
    tasks = trial.lab.tasks
    trial.expected["first"] = 1
    trial.call(chain(tasks["bulky"].s("first"), tasks["total"].s("last")).apply_async, "last")
    trial.rest()


@scenario("killed-before-chord-count", group=GROUP, right="one effect each, and the chord ends", seconds=20)
def killed_before_chord_count(trial: "Trial") -> None:
    """A process dies between its stored result and the count of its chord."""
    trial.begin(fault="chord count")
    tasks = trial.lab.tasks
    trial.expected.update(["a", "b"])
    header = [tasks["charge"].s("a"), tasks["charge"].s("b")]
    trial.call(lambda: chord(header, tasks["total"].s("all")).apply_async(), "all")
    trial.rest()


@scenario("killed-at-retry", group=GROUP, right="one effect")
def killed_at_retry(trial: "Trial") -> None:
    """A process dies after its body asked to be tried again, and before that message is sent."""
    trial.begin(fault="retry")
    trial.send("retry_once", "order")
    trial.rest()


@scenario("killed-after-child-sent", group=GROUP, right="one effect each")
def killed_after_child_sent(trial: "Trial") -> None:
    """A process dies right after it has sent the first of three children."""
    trial.begin(fault="published:charge")
    trial.expected.update(f"order {number}" for number in range(3))
    trial.send("fan_out", "order")
    trial.rest(calm=2)


@scenario("caller-killed", group=GROUP, right="one effect", seconds=20)
def caller_killed(trial: "Trial") -> None:
    """A caller dies when it is about to publish, with the key reserved if there is such a thing; it sends again."""
    trial.begin(task_options={"reserve": 2.0})
    trial.send_from_process("charge", "order", fault="publish", intent="order")
    trial.pause(3)
    trial.send("charge", "order")
    trial.rest()
