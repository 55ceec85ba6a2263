"""Workers die."""

from typing import TYPE_CHECKING, Final

from effectonce.lab.scenarios.scenario import scenario

if TYPE_CHECKING:
    from effectonce.lab.trials.trial import Trial

GROUP: Final = "A worker dies"


@scenario("child-killed", group=GROUP, right="one effect")
def child_killed(trial: "Trial") -> None:
    """The pool process is killed (out of memory, say) in the middle of a body, with late acknowledgement."""
    trial.begin()
    trial.send("charge", "order", 1.5)
    trial.kill_child(trial.wait_acting("order"))
    trial.rest()


@scenario("worker-killed", group=GROUP, right="one effect")
def worker_killed(trial: "Trial") -> None:
    """The whole worker is killed in the middle of a body, and another one takes its place."""
    trial.begin(visibility=3.0)
    trial.send("charge", "order", 1.5)
    trial.kill_worker(trial.worker_of(trial.wait_acting("order")))
    trial.add_workers()
    trial.rest()
