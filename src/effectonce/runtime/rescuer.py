"""The rescuer: frees claims whose holder is gone and whose message will not come back.

A hard time limit or a terminate makes Celery acknowledge the message of a body that was killed: no redelivery takes
the claim over, and it would stand for ever (hole H9). The rescuer releases a claim whose lease ended more than one
lease ago and counts a death. Many may run at once: each release is conditional on the fence.
"""

from collections.abc import Callable

from effectonce.events import Emit, Event, Name
from effectonce.ports import LedgerStore

BATCH = 100


class Rescuer:
    """Rescues at one store, a batch at a time."""

    def __init__(self, store: Callable[[], LedgerStore], *, emit: Emit) -> None:
        self._store = store
        self._emit = emit

    def rescue(self) -> int:
        """Free one batch; returns how many, so that a full batch can be followed by the next at once."""
        freed = self._store().rescue(BATCH)
        for entry in freed:
            self._emit(
                Event(
                    name=Name.CLAIM_RESCUED,
                    key=entry.key,
                    task_id=entry.task_id,
                    attempt=entry.attempt.hex(),
                    fence=entry.fence,
                    facts={"deaths": entry.deaths + 1},
                )
            )
        return len(freed)
