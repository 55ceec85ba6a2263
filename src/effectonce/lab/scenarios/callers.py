"""Callers send the same thing again, in another form, or by another way."""

import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from effectonce.lab.scenarios.scenario import scenario
from effectonce.lab.trials.parts import OWN_BROKER

if TYPE_CHECKING:
    from effectonce.lab.trials.trial import Trial

GROUP: Final = "The caller sends again"


@scenario("sent-again-early", group=GROUP, right="one effect")
def sent_again_early(trial: "Trial") -> None:
    """A caller that got no answer sends again while the first is under way."""
    trial.begin()
    trial.send("charge", "order", 2.0)
    trial.wait_acting("order")
    trial.send("charge", "order", 2.0)
    trial.rest()


@scenario("sent-again-late", group=GROUP, right="one effect")
def sent_again_late(trial: "Trial") -> None:
    """A caller that got no answer sends again when the first is done."""
    trial.begin()
    trial.wait_answer(trial.send("charge", "order"))
    trial.send("charge", "order")
    trial.rest()


@scenario("sent-by-name", group=GROUP, right="one effect")
def sent_by_name(trial: "Trial") -> None:
    """A caller that does not have the task's code sends it by name, twice."""
    trial.begin()
    app = trial.lab.app
    for _ in range(2):
        trial.call(lambda: app.send_task("charge", ("order", 2.0)), "order")
    trial.rest()


@scenario("direct-call", group=GROUP, right="one effect")
def direct_call(trial: "Trial") -> None:
    """While a body runs in a worker, the caller runs the same by `.apply()`, and sends it once more."""
    trial.begin()
    trial.send("charge", "order", 3.0)
    trial.wait_acting("order")
    trial.lab.tasks["charge"].apply(("order", 3.0))
    trial.send("charge", "order", 3.0)
    trial.rest()


@scenario("lock-shorter-than-body", group=GROUP, right="one effect", seconds=20)
def lock_shorter_than_body(trial: "Trial") -> None:
    """A lock or lease of one second guards a body of five, and the caller sends three times meanwhile."""
    trial.begin(workers=2, lease=1.0, task_options={"ttl": 1})
    for _ in range(3):
        trial.send("hold", "order", 5.0)
        trial.pause(2)
    trial.rest()


@scenario("arguments-in-other-words", group=GROUP, right="one effect")
def arguments_in_other_words(trial: "Trial") -> None:
    """The same call by position, by name, and with a default written out, each when the last is done."""
    trial.begin()
    ship = trial.lab.tasks["ship"]
    forms = [
        lambda: ship.delay("order"),
        lambda: ship.delay(order="order"),
        lambda: ship.delay("order", "post"),
        lambda: ship.delay("order", carrier="post"),
    ]
    for form in forms:
        trial.wait_answer(trial.call(form, "order post"))
    trial.rest()


@scenario("key-is-a-default", group=GROUP, right="one effect")
def key_is_a_default(trial: "Trial") -> None:
    """The argument that names the intent is left to its default."""
    trial.begin()
    trial.send("ship_by_carrier", "order", intent="order post")
    trial.rest()


@scenario("rich-arguments", group=GROUP, right="one effect each")
def rich_arguments(trial: "Trial") -> None:
    """The argument that names the intent is a UUID, or a datetime; each is sent twice."""
    trial.begin()
    for value in (uuid.UUID(int=7), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)):
        trial.wait_answer(trial.send("charge", value))
        trial.send("charge", value)
    trial.rest()


@scenario("same-name-in-two-modules", group=GROUP, right="one effect each")
def same_name_in_two_modules(trial: "Trial") -> None:
    """Two tasks of two modules have one function name and one argument."""
    trial.begin()
    trial.wait_answer(trial.send("billing.send", "order", intent="bill order"))
    trial.send("mail.send", "order", intent="mail order")
    trial.rest()


@scenario("failed-then-sent-again", group=GROUP, right="one effect")
def failed_then_sent_again(trial: "Trial") -> None:
    """A body raises, and the caller sends again."""
    trial.begin()
    first = trial.send("stop_once", "order")
    trial.may_fail(first)
    trial.wait_answer(first)
    trial.send("stop_once", "order")
    trial.rest()


@scenario("retry", group=GROUP, right="one effect")
def retry(trial: "Trial") -> None:
    """A body asks to be tried again, and then the caller sends once more."""
    trial.begin()
    trial.wait_quiet(trial.send("retry_once", "order"))
    trial.send("retry_once", "order")
    trial.rest()


@scenario("retry-where-duplicates-raise", group=GROUP, right="one effect")
def retry_where_duplicates_raise(trial: "Trial") -> None:
    """The same where a library is told to raise at a duplicate."""
    trial.begin(task_options={"strict": True})
    trial.wait_quiet(trial.send("retry_once", "order"))
    trial.send("charge", "next")
    trial.rest()


@scenario("eager", group=GROUP, needs=(OWN_BROKER,), right="one effect, and no Redis is needed", seconds=10)
def eager(trial: "Trial") -> None:
    """With `task_always_eager`, as in unit tests, Redis is away, and the caller calls twice."""
    trial.begin(workers=0, settings={"task_always_eager": True})
    trial.scene.redis.kill()
    for _ in range(2):
        trial.call(lambda: trial.lab.tasks["charge"].apply_async(("order",)), "order", told=False)
