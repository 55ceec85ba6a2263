"""The broker delivers a message more than once."""

from typing import TYPE_CHECKING, Final

from effectonce.lab.scenarios.scenario import scenario

if TYPE_CHECKING:
    from effectonce.lab.trials.trial import Trial

GROUP: Final = "The broker delivers again"
VISIBILITY: Final = 2.0


@scenario("long-body", group=GROUP, right="one effect")
def long_body(trial: "Trial") -> None:
    """A body lasts longer than the visibility timeout of Redis, and another worker is idle."""
    trial.begin(workers=2, visibility=VISIBILITY)
    trial.send("charge", "order", 5.0)
    trial.rest(calm=VISIBILITY + 1)


@scenario("long-countdown", group=GROUP, right="one effect")
def long_countdown(trial: "Trial") -> None:
    """A message is not due before its visibility timeout is over."""
    trial.begin(workers=2, visibility=VISIBILITY)
    trial.send("charge", "order", countdown=7)
    trial.rest(calm=VISIBILITY + 1)


@scenario("long-countdown-one-process", group=GROUP, right="one effect")
def long_countdown_one_process(trial: "Trial") -> None:
    """The same with one worker of one process, whose copies run one after the other."""
    trial.begin(workers=1, pool=1, visibility=VISIBILITY)
    trial.send("charge", "order", countdown=7)
    trial.rest(calm=VISIBILITY + 1)
