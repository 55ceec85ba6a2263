"""The database has a bad day."""

from typing import TYPE_CHECKING, Final

from effectonce.lab.proxy import Fault
from effectonce.lab.scenarios.scenario import scenario
from effectonce.lab.trials.parts import OWN_LEDGER, SERVER_LEDGER

if TYPE_CHECKING:
    from effectonce.lab.trials.trial import Trial

GROUP: Final = "The database has a bad day"
WORK: Final = b"(?i)insert into .*lab_effects"


@scenario("database-restarts", group=GROUP, needs=(OWN_LEDGER,), right="one effect", seconds=35)
def database_restarts(trial: "Trial") -> None:
    """The database is killed in the middle of a body and comes back; a caller that is told of a failure sends again."""
    trial.begin()
    first = trial.send("charge", "order", 2.0)
    trial.may_fail(first)
    trial.wait_acting("order")
    trial.scene.restart_database()
    trial.rest()
    trial.send_again_unless_done(first, "charge", "order", 2.0)
    trial.rest()


@scenario("database-away", group=GROUP, needs=(SERVER_LEDGER,), right="one effect", seconds=25)
def database_away(trial: "Trial") -> None:
    """The database cannot be reached for three seconds when a message arrives."""
    proxy = trial.scene.before_ledger()
    trial.begin()
    proxy.refuse()
    proxy.cut(reset=True)
    trial.send("charge", "order")
    trial.pause(3)
    proxy.heal()
    trial.rest()


@scenario("commit-reply-lost", group=GROUP, needs=(SERVER_LEDGER,), right="one effect", seconds=20)
def commit_reply_lost(trial: "Trial") -> None:
    """The answer to COMMIT is lost: nobody knows what became of it; a caller that is told of a failure sends again."""
    proxy = trial.scene.before_ledger()
    trial.begin()
    rule = proxy.when(b"COMMIT", Fault.LOST_REPLY, after=WORK)
    first = trial.send("charge", "order")
    trial.may_fail(first)
    rule.wait()
    trial.rest()
    trial.send_again_unless_done(first, "charge", "order")
    trial.rest()


@scenario("commit-arrives-late", group=GROUP, needs=(SERVER_LEDGER,), right="one effect", seconds=25)
def commit_arrives_late(trial: "Trial") -> None:
    """The connection breaks at COMMIT, and the server carries it out a moment later."""
    proxy = trial.scene.before_ledger()
    trial.begin()
    rule = proxy.when(b"COMMIT", Fault.LATE_REQUEST, after=WORK)
    first = trial.send("charge", "order")
    trial.may_fail(first)
    rule.wait()
    trial.send_again_unless_done(first, "charge", "order", patience=4)
    rule.let_go()
    trial.rest(calm=2)
