"""Running the points of one case side by side, and judging what they left."""

import secrets
import time
from dataclasses import dataclass, field
from typing import Any, Self

from celery.result import AsyncResult

from effectonce.domain.claims import Claim, State
from effectonce.lab.processes import Worker
from tests.integration.worker.harness import Shop
from tests.services import Fleet

LEASE = 2.0
DEADLINE = 240.0
TWINS = {"defer.before", "defer.after"}
"""Points that only a delivery passes which meets another at work."""

DEATHS = {"takeover.after": 2}
"""Points that need a claim whose holder died, and how often the flow dies by itself on its way there.

A first delivery of a transactional task leaves no claim behind.
"""

PAUSES = {"defer.before": 1.0, "defer.after": 1.0, "visibility.before": 2.0, "visibility.after": 2.0}
"""Points that a quick transactional body does not pass, and how long its body takes there, in seconds."""

OVERDUE = {"rescue.before", "rescue.after"}
"""Points of the rescuer: they need a claim whose holder and message are gone."""

RELAYED = {"relay.before", "relay.after"}
"""Points of the relays: they need a message that its process did not send. Only the workers of these points relay, and
there are seats for both."""


@dataclass
class Run:
    """One point: its order, its worker, and the calls that were sent."""

    point: str
    order: str
    queue: str
    worker: Worker
    calls: list[AsyncResult] = field(default_factory=list)


class Matrix:
    """The workers of one case, one for each point."""

    def __init__(self, fleet: Fleet, pair: str, *, policy: str, pool: str) -> None:
        self._policy = policy
        self._shop = Shop(
            fleet, pair, pool=pool, settings={"SHOP_LEASE": str(LEASE), "SHOP_RENEW": "1"}, app="tests.crash.flows"
        )
        self._runs: list[Run] = []
        self._passed_by: list[str] = []

    def __enter__(self) -> Self:
        self._shop.reset()
        return self

    def __exit__(self, *_: object) -> None:
        for run in self._runs:
            run.worker.kill()
        self._shop.close()

    def run(self, point: str) -> Run:
        """Start the worker that dies at *point*, and send it an order that passes there."""
        order = str(len(self._runs) + 1)
        queue = f"q{order}"
        relays = {"FLOW_RELAYS": "yes" if point in RELAYED else "no"}
        worker = self._shop.add(
            wait=False,
            name=f"at-{point}",
            concurrency=2,
            queues=[queue],
            env={
                "EFFECTONCE_CRASH": point,
                "EFFECTONCE_CRASH_ONCE": str(self._death(point)),
                "FLOW_QUEUE": queue,
                **relays,
            },
        )
        run = Run(point, order, queue, worker)
        self._runs.append(run)
        if point in OVERDUE:
            self._leave_a_claim()
        self._send(run)
        return run

    def _send(self, run: Run) -> None:
        point, order, queue = run.point, run.order, run.queue
        link = self._shop.task("linked").s(order).set(queue=queue)
        for _ in range(2 if point in TWINS else 1):
            flow = self._shop.task(self._policy)
            told: dict[str, float] = {"deadly": DEATHS.get(point, 0)}
            if point in PAUSES and self._policy == "charge":
                told["pause"] = PAUSES[point]
            run.calls.append(flow.apply_async((order,), told, queue=queue, link=link))

    def _send_another(self, run: Run) -> None:
        """One more order: the rescuer was there before the takeover, and released the claim of the dead (rule 17)."""
        self._passed_by += [f"{run.point} was passed by, and: {words}" for words in self._wrong(run)]
        run.order, run.calls = str(int(run.order) + 1000), []
        self._send(run)

    def watch(self, runs: list[Run]) -> None:
        """Start dead workers again until every point was passed, every call has ended, and nothing is claimed."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end and not all(self._is_over(run) for run in runs):
            for run in runs:
                if not run.worker.is_running:
                    run.worker.start()
                if run.point in RELAYED and not self._death(run.point).exists():
                    self._leave_a_message(run)
                if run.point in DEATHS and not self._death(run.point).exists() and self._has_ended(run):
                    self._send_another(run)
            time.sleep(0.1)

    def _is_over(self, run: Run) -> bool:
        return self._death(run.point).exists() and self._has_ended(run)

    def _has_ended(self, run: Run) -> bool:
        linked = self._shop.outside(f"linked:{run.order}")
        noted = self._policy != "charge" or bool(self._shop.outside(f"noted:{run.order}"))
        return bool(linked) and noted and all(call.ready() for call in run.calls)

    def judge(self, run: Run) -> list[str]:
        """What is wrong with a run, in words."""
        nobody = [] if self._death(run.point).exists() else ["nobody died there"]
        stuck = ["an entry is stuck"] if self._claimed() else []
        return [f"{run.point}: {words}" for words in [*nobody, *stuck, *self._wrong(run), *self._passed_by]]

    def _wrong(self, run: Run) -> list[str]:
        found = {
            "a call did not succeed": [call.state for call in run.calls if call.state != "SUCCESS"],
            f"the link went out {len(self._keys('linked', run))} times": len(self._keys("linked", run)) != 1,
            f"a message of the body went out {self._noted(run)} times": self._noted(run) != 1,
            f"effects: {self._effects(run)}": self._effects(run) != 1,
        }
        return [words for words, wrong in found.items() if wrong]

    def _effects(self, run: Run) -> int:
        if self._policy == "charge":
            return self._shop.effects()[int(run.order)]
        return len(self._keys("mail", run))

    def _noted(self, run: Run) -> int:
        return len(self._keys("noted", run)) if self._policy == "charge" else 1

    def _keys(self, what: str, run: Run) -> set[str]:
        """The idempotency keys that the outside saw: it lets each act once."""
        return set(self._shop.outside(f"{what}:{run.order}"))

    def _claimed(self) -> list[str]:
        """Keys that are claimed though their lease ended long ago."""
        claimed = self._shop.once.ledger.entries(state=State.CLAIMED, limit=100)
        return [entry.key for entry in claimed if entry.lease_left < -3 * LEASE]

    def _death(self, point: str) -> Any:
        return self._shop.folder / f"death-{point}"

    def _leave_a_message(self, run: Run) -> None:
        """A message whose process died between its commit and the sending; the next one when this is taken."""
        store = self._shop.once.outbox_store()
        if store.depth().ready < 2:
            vars(self._shop.once.dispatcher)["dispatch"] = lambda _stored: None
            with self._shop.once.outbox():
                self._shop.task("noted").apply_async((run.order,), queue=run.queue)

    def _leave_a_claim(self) -> None:
        """A claim without a message, as a hard time limit leaves it (hole H9)."""
        claim = Claim(
            digest=secrets.token_bytes(16),
            key="left behind",
            attempt=secrets.token_bytes(8),
            identity=secrets.token_bytes(16),
            task_id="",
            fingerprint=b"",
            lease=0.2,
            max_takeovers=5,
        )
        self._shop.once.ledger.claim(claim)
