"""Messages that are due later than their broker lets a worker hold them.

A worker takes a message with an eta at once and holds it until it is due. On a broker with a visibility timeout that
is shorter, the message is given to another worker meanwhile, unless each worker renews what it holds. The sender cannot
know whether they all do, so it says what it sends: once for each task a warning, or an error instead of the message.
Or it parks the message in the outbox, whose relays send it when it is due.
"""

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from effectonce.app.brokers import visibility_timeout
from effectonce.app.etas import eta_of
from effectonce.domain.modes import Mode
from effectonce.domain.visibility import is_far
from effectonce.errors import EtaTooFar, SettingsInvalid

if TYPE_CHECKING:
    from effectonce.app.extension import EffectOnce

logger = logging.getLogger("effectonce")


class FarEtas:
    """Looks at the etas of one app's messages."""

    def __init__(self, once: "EffectOnce") -> None:
        self._once = once
        self._warned: set[str] = set()

    def look(self, name: str, message: Any) -> float | None:
        """Warn of, or refuse, a message that is due beyond the visibility timeout; raises EtaTooFar.

        Answers the instant until which it is to be parked, in seconds since the epoch; None: it is sent now.
        """
        eta = _eta(message)
        if eta is None or self._once.mode is Mode.OFF:
            return None
        timeout = visibility_timeout(self._once.app)
        seconds = eta - time.time()
        if timeout is None or not is_far(seconds, timeout):
            return None
        said = self._said()
        if said == "park":
            return eta
        error = EtaTooFar(task=name, seconds=round(seconds, 1), timeout=timeout)
        if said == "raise":
            raise error
        if name not in self._warned:
            self._warned.add(name)
            logger.warning("%s", error)
        return None

    def _said(self) -> str:
        """Read the setting; a sender whose settings cannot be used only warns, as its workers report the faults."""
        try:
            return self._once.settings.far_eta if self._once.mode is Mode.ENFORCE else "warn"
        except SettingsInvalid:
            return "warn"


def _eta(message: Any) -> float | None:
    facts = message.headers or {}
    if "task" not in facts and isinstance(message.body, Mapping):
        facts = message.body
    return eta_of(facts)
