"""Ourselves."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from celery import current_task

from effectonce import EffectOnce, Leased, Transactional, Unique
from effectonce.lab.contenders.contender import Contender
from effectonce.lab.trials.effects import Effects
from effectonce.lab.trials.place import Place

_THEIRS: Final = frozenset({"strict", "ttl", "acks_late", "reject_on_worker_lost"})
"""What is asked of others: how they acknowledge, lock and raise."""


class Guarded(Contender):
    """Guarded tasks; acknowledgement is left to the guard."""

    name = "effectonce"
    title = "effectonce"
    package = "effectonce"
    beats = True
    scheduler = "once"

    def prepare(self, app: Any, place: Place) -> None:
        """Put the guard over the app."""
        self._once = EffectOnce(
            app,
            ledger=place.ledger,
            schema=place.schema,
            namespace=place.name,
            lease_seconds=place.lease,
            beat_lease_seconds=place.lease,
        )

    @property
    def once(self) -> EffectOnce:
        """The guard."""
        return self._once

    def task(self, app: Any, body: Callable[..., Any], *, name: str, fields: Sequence[str], **options: Any) -> Any:
        """Define it with the policy of its kind."""
        template = ":".join([name, *(f"{{{field}}}" for field in fields)]) if fields else None
        leased = options.pop("leased", False)
        reserve = options.pop("reserve", None)
        own = {key: value for key, value in options.items() if key not in _THEIRS}
        unique = None if reserve is None or template is None else Unique(lease=reserve)
        policy = (Leased if leased else Transactional)(template, at_send=unique)
        return app.task(name=name, once=policy, shared=False, **own)(body)

    def write(self, effects: Effects, intent: str, at: float) -> None:
        """Write in the transaction of the entry, or under the fence of the lease."""
        if isinstance(current_task.once, Leased):
            with self._once.effect.transaction() as session:
                session.execute(effects.row(intent, at))
        else:
            self._once.session.execute(effects.row(intent, at))

    def sending(self, session: Any) -> AbstractContextManager[Any]:
        """Messages commit with the caller's transaction."""
        return self._once.outbox(session)

    def create(self) -> None:
        """Make the ledger's tables."""
        self._once.ledger.create_schema()

    def close(self) -> None:
        """Close the ledger."""
        self._once.ledger.close()
