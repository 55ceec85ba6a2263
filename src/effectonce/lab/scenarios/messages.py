"""Messages that are part of something larger, taken back, too late, or sent at a bad moment."""

from typing import TYPE_CHECKING, Final

from celery import chain, chord, group

from effectonce.lab.scenarios.scenario import scenario
from effectonce.lab.trials.diary import now

if TYPE_CHECKING:
    from effectonce.lab.trials.trial import Trial

GROUP: Final = "Chains, chords, transactions, revokes"


@scenario("duplicate-in-a-chain", group=GROUP, right="one effect each, and the chain goes on")
def duplicate_in_a_chain(trial: "Trial") -> None:
    """The middle of a chain is under way already, sent by somebody else."""
    trial.begin()
    charge = trial.lab.tasks["charge"]
    trial.send("charge", "middle", 3.0)
    trial.wait_acting("middle")
    trial.expected.update(["first"])
    whole = chain(charge.si("first"), charge.si("middle", 3.0), charge.si("last"))
    trial.call(whole.apply_async, "last")
    trial.rest()


@scenario("equal-chord-members", group=GROUP, right="one effect each, and the chord ends")
def equal_chord_members(trial: "Trial") -> None:
    """Two members of a chord are the same call."""
    trial.begin()
    tasks = trial.lab.tasks
    trial.expected.update(["member"])
    header = [tasks["charge"].s("member", 1.0), tasks["charge"].s("member", 1.0)]
    trial.call(lambda: chord(header, tasks["total"].s("all")).apply_async(), "all")
    trial.rest()


@scenario("done-member-of-a-group", group=GROUP, right="one effect each")
def done_member_of_a_group(trial: "Trial") -> None:
    """A member of a group was done before by another call."""
    trial.begin()
    charge = trial.lab.tasks["charge"]
    trial.wait_answer(trial.send("charge", "a"))
    trial.expected.update(["a", "b"])
    trial.expected["a"] = 1
    trial.call(lambda: group([charge.s("a"), charge.s("b")]).apply_async(), "b", told=False)
    trial.rest()


@scenario("children-and-retry", group=GROUP, right="one effect each")
def children_and_retry(trial: "Trial") -> None:
    """A task sends three children, asks to be tried again after the second, and starts from the first."""
    trial.begin()
    trial.expected.update(f"order {number}" for number in range(3))
    trial.send("fan_out", "order")
    trial.rest(calm=2)


@scenario("rolled-back", group=GROUP, right="no effect: what it belongs to never happened")
def rolled_back(trial: "Trial") -> None:
    """A caller sends inside a transaction of its database, and rolls back."""
    trial.begin()
    with trial.lab.effects.session() as session:
        session.execute(trial.lab.effects.row("order placed", now()))
        with trial.lab.contender.sending(session):
            trial.calls_may_stay(trial.send("charge", "order", times=0))
        session.rollback()
    trial.rest(calm=3)


@scenario("sent-before-commit", group=GROUP, right="one effect")
def sent_before_commit(trial: "Trial") -> None:
    """A caller sends inside a transaction, and commits a second later what the task reads."""
    trial.begin()
    trial.expected["order placed"] = 1
    with trial.lab.effects.session() as session:
        session.execute(trial.lab.effects.row("order placed", now()))
        with trial.lab.contender.sending(session):
            trial.send("confirm", "order")
        trial.pause(2)
        session.commit()
    trial.rest()


@scenario("revoked", group=GROUP, right="one effect", seconds=20)
def revoked(trial: "Trial") -> None:
    """A message is revoked before it runs, and then the caller sends again."""
    trial.begin(settings={"worker_enable_remote_control": True})
    first = trial.send("charge", "order", countdown=3)
    trial.lab.app.control.revoke(first)
    trial.wait_answer(first)
    trial.send("charge", "order")
    trial.rest()


@scenario("expired", group=GROUP, right="one effect", seconds=20)
def expired(trial: "Trial") -> None:
    """A message expires while no worker is there, and then the caller sends again."""
    trial.begin(workers=0)
    first = trial.send("charge", "order", expires=1)
    trial.pause(1.5)
    trial.add_workers()
    trial.wait_answer(first)
    trial.send("charge", "order")
    trial.rest()


@scenario("expires-while-busy", group=GROUP, right="one effect each, and the chord ends", seconds=20)
def expires_while_busy(trial: "Trial") -> None:
    """A chord's member arrives in time while the same is under way, and would expire before that is done."""
    trial.begin(pool=3)
    tasks = trial.lab.tasks
    trial.send("charge", "a", 5.0)
    trial.wait_acting("a")
    trial.expected.update(["b"])
    header = [tasks["charge"].s("a", 5.0).set(expires=2), tasks["charge"].s("b")]
    trial.call(lambda: chord(header, tasks["total"].s("all")).apply_async(), "all")
    trial.rest()


@scenario("broker-away-at-publish", group=GROUP, right="one effect", seconds=20)
def broker_away_at_publish(trial: "Trial") -> None:
    """The broker is away when the caller sends, and the caller sends again when it is back."""
    proxy = trial.scene.before_broker()
    trial.begin(workers=0)
    proxy.refuse()
    proxy.cut(reset=True)
    charge = trial.lab.tasks["charge"]
    trial.call(lambda: charge.apply_async(("order",), retry=False), "order", may_fail=True)
    proxy.heal()
    trial.add_workers()
    trial.send("charge", "order")
    trial.rest()


@scenario("unsayable-result", group=GROUP, right="no effect, since the caller is told that it failed")
def unsayable_result(trial: "Trial") -> None:
    """A body has written, and returns what cannot be encoded."""
    trial.begin()
    trial.may_fail(trial.send("unsayable", "order", times=0))
    trial.rest()


@scenario("rolling-deploy", group=GROUP, right="one effect", seconds=30)
def rolling_deploy(trial: "Trial") -> None:
    """Old code is killed in a body, new code with one more argument takes the message, and a caller sends again."""
    trial.begin(visibility=3.0)
    trial.send("charge", "order", 1.5)
    trial.kill_worker(trial.worker_of(trial.wait_acting("order")))
    trial.add_workers(edition=2)
    trial.rest()
    trial.send("charge", "order", 1.5)
    trial.rest()
