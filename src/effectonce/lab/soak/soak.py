"""A whole soak: rounds until the time is over."""

import shutil
import tempfile
import time
from collections.abc import Sequence

from effectonce.lab.narrator import Narrator
from effectonce.lab.servers.faults import ServiceMissing
from effectonce.lab.soak.course import Course, Outcome
from effectonce.lab.soak.plan import ALL, ROUND, Round, System, plan_rounds
from effectonce.lab.soak.report import Soaked
from effectonce.lab.soak.system import Servers, open_servers, possible_systems, raise_ground


def run(
    *,
    minutes: float,
    seed: int,
    narrator: Narrator,
    systems: Sequence[System] = ALL,
    seconds: float = ROUND,
    rounds: int | None = None,
    guards: bool = True,
) -> Soaked:
    """Soak for *minutes*, at least one round, and return what was counted; no process is left behind, whatever happens.

    Of files only those are left that a round has written in which something was doubled, lost or stuck. A round
    sends and strikes for *seconds* and then comes to rest; the last one ends when it ends. *rounds* is the most of
    them; without *guards* the judge has much to find. Raises ServiceMissing when this machine has none of the systems,
    ServiceFailed or ProcessFailed for a server or worker that does not start.
    """
    possible, left_out = possible_systems(systems)
    if not possible:
        raise ServiceMissing("; ".join(left_out))
    most = rounds or max(1, int(minutes * 60 / seconds) + 1)
    outcomes: list[Outcome] = []
    began = time.monotonic()
    with narrator, open_servers() as servers:
        for plan in plan_rounds(rounds=most, seed=seed, systems=possible, seconds=seconds):
            if outcomes and time.monotonic() - began >= minutes * 60:
                break
            outcomes.append(_take(plan, servers, narrator, guards=guards))
    return Soaked(seed=seed, seconds=time.monotonic() - began, outcomes=outcomes, left_out=left_out)


def _take(plan: Round, servers: Servers, narrator: Narrator, *, guards: bool) -> Outcome:
    narrator.say(f"round {plan.number}: {plan.system.name}, {len(plan.orders)} orders, {len(plan.strikes)} blows")
    with raise_ground(servers, plan.system, renews=plan.renews, guards=guards) as ground:
        outcome = Course(plan, ground, narrator).take()
        if not outcome.is_clean:
            narrator.say(f"what this round has written is kept in {_keep(ground.site.folder)}")
    narrator.say(
        f"round {plan.number}: {outcome.effects} effects in {outcome.bodies} bodies; doubled {len(outcome.doubled)}, "
        f"lost {len(outcome.lost)}, stuck {len(outcome.stuck)}"
    )
    return outcome


def _keep(folder: str) -> str:
    """Copy logs, journal, calls and a ledger's file to where they outlive the soak."""
    return str(shutil.copytree(folder, tempfile.mkdtemp(prefix="effectonce-found-"), dirs_exist_ok=True))
