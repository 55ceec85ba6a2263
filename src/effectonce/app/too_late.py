"""A message that comes longer after it was due than entries are kept (rule 16).

Its claim is committed before anything else. Where the ledger knew of the effect, the message goes on like any other.
Where it did not, the effect becomes unknown, and the message is kept with it: a person says whether it took place
(``settle``) or is to run (``rerun``). A crash in between leaves a claim that the rescuer makes unknown too.
"""

from typing import NoReturn

from effectonce.app import endings
from effectonce.app.copies import held_message
from effectonce.app.frames import Frame
from effectonce.domain.claims import Granted, State
from effectonce.domain.overdue import proves_nothing
from effectonce.errors import LedgerUnavailable
from effectonce.events import Name
from effectonce.runtime.asking import ask_for_claim


def hold_if_forgotten(frame: Frame) -> None:
    """Return when the ledger knows of this effect; else keep the message with it and end the delivery."""
    ledger = frame.ledger
    try:
        answer = ask_for_claim(ledger, frame.claim)
        if not (isinstance(answer, Granted) and proves_nothing(answer)):
            return
        ledger.mark_unknown(frame.claim.digest, frame.claim.attempt)
    except LedgerUnavailable as error:
        endings.away(frame, error)
    _end(frame)


def _end(frame: Frame) -> NoReturn:
    """Keep the message, and let its state say so."""
    try:
        frame.ledger.hold(frame.claim.digest, held_message(frame.task, frame.request))
    except LedgerUnavailable as error:
        endings.away(frame, error)
    frame.guard.happened(frame, Name.EFFECT_UNKNOWN, why="it was due longer ago than entries are kept")
    endings.show_held(frame, State.UNKNOWN)
