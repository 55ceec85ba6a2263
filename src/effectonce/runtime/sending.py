"""The conductor where a broker and a store have no transaction in common: claim, send, mark.

After a crash a claimed tick without a mark may have been sent or not. Whoever leads next sends it again, with the same
id and the same key: a guarded task takes effect once. What could not be sent, because the broker is away, stays
claimed and is tried at the next pass.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from effectonce import crashpoints
from effectonce.domain.ticks import Planned, Tick, TickClaim, TickState
from effectonce.ports import TickStore
from effectonce.runtime.conductor import Conductor, Deposed, batches, claim_of

logger = logging.getLogger("effectonce")


class NotSent(Exception):
    """The broker could not be reached: the tick waits, and what follows it too."""


class SendingConductor(Conductor):
    """Sends the ticks of a group by itself.

    *send* publishes one tick with confirmation; NotSent leaves it to be sent again, any other error means that it
    cannot be sent.
    """

    def __init__(self, store: TickStore, *, send: Callable[[Planned, Tick], None], **others: Any) -> None:
        super().__init__(store, **others)
        self._send = send

    def _resume(self, batch: Sequence[tuple[Tick, Planned]]) -> None:
        self._check(self._store.claim_ticks(self._standing(), [claim_of(tick) for tick, _ in batch]))
        self._send_all(batch)

    def _take(self, claims: Iterable[TickClaim], entries: Mapping[str, Planned]) -> None:
        for batch in batches(list(claims)):
            granted = [
                claim.tick
                for claim, answer in zip(batch, self._claim(batch), strict=True)
                if self._took(claim, answer) and claim.state is TickState.CLAIMED
            ]
            self._unsent.update((tick, entries[tick.name]) for tick in granted)
            self._send_all([(tick, entries[tick.name]) for tick in granted])
            self._mark()

    def _send_all(self, ticks: Iterable[tuple[Tick, Planned]]) -> None:
        for tick, entry in ticks:
            term = self._standing()
            crashpoints.crash_point("tick.send.before")
            try:
                self._send(entry, tick)
            except Deposed:
                raise
            except NotSent as error:
                logger.warning("the tick %s of %s could not be sent yet: %s", tick.text, tick.name, error)
                return
            except Exception:
                logger.exception("the tick %s of %s cannot be sent", tick.text, tick.name)
                del self._unsent[tick]
                self._pass_over(tick, why="it cannot be sent")
                continue
            self._note(tick)
            crashpoints.crash_point("tick.send.after")
            del self._unsent[tick]
            self._unmarked.append(tick)
            self._tell(tick, term)
