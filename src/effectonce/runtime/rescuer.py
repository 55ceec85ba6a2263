"""The rescuer: frees claims whose holder is gone and whose message will not come back.

A hard time limit or a terminate makes Celery acknowledge the message of a body that was killed: no redelivery takes
the claim over, and it would stand for ever (hole H9). The rescuer releases a claim whose lease ended more than one
lease ago and counts a death; one of which nobody knows what it did, and whose task says hold, it leaves to a person.
Many may run at once: each release is conditional on the fence.
"""

from collections.abc import Callable, Sequence

from effectonce.domain.claims import State
from effectonce.errors import LedgerUnavailable
from effectonce.events import Emit, Event, Name
from effectonce.ports import LedgerStore

BATCH = 100


class Rescuer:
    """Rescues at every store, a batch at a time."""

    def __init__(self, stores: Callable[[], Sequence[LedgerStore]], *, emit: Emit) -> None:
        self._stores = stores
        self._emit = emit

    def rescue(self) -> int:
        """Free one batch of each store; returns the size of the largest: after a full one the next comes at once.

        A store that is away does not keep the others from being rescued; its error is raised after them.
        """
        most, away = 0, None
        for store in self._stores():
            try:
                most = max(most, self._rescue_at(store))
                store.forget_reservations()
            except LedgerUnavailable as error:
                away = error
        if away is not None:
            raise away
        return most

    def _rescue_at(self, store: LedgerStore) -> int:
        freed = store.rescue(BATCH)
        for entry in freed:
            left = store.read(entry.digest)
            is_unknown = left is not None and left.state is State.UNKNOWN
            self._emit(
                Event(
                    name=Name.EFFECT_UNKNOWN if is_unknown else Name.CLAIM_RESCUED,
                    key=entry.key,
                    task_id=entry.task_id,
                    attempt=entry.attempt.hex(),
                    fence=entry.fence,
                    digest=entry.digest,
                    place=store.name,
                    facts={"deaths": entry.deaths + 1},
                )
            )
        return len(freed)
