"""Callers send the same thing again."""

from typing import TYPE_CHECKING, Final

from effectonce.lab.scenarios.scenario import scenario

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
