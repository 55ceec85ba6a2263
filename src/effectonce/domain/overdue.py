"""Messages that come so late that their effect may have been forgotten (rule 16).

A finished entry lives *keep*. A message that was due longer ago than that may be a duplicate of an effect whose entry
is gone: nothing in the ledger can tell. So it is not run on the strength of an empty ledger. While something of the
effect is left (an entry, a tombstone), that decides as ever.
"""

from effectonce.domain.claims import Granted


def is_overdue(*, due: float | None, now: float, keep: float | None) -> bool:
    """Whether the entry of a message's effect may be gone by now; *due* and *now* are epoch seconds.

    One of which nobody knows when it was due is taken for fresh: it was sent by somebody who does not know us.
    """
    return due is not None and keep is not None and now - due > keep


def proves_nothing(granted: Granted) -> bool:
    """Whether the ledger knew nothing of an effect when it granted this claim, or only of an attempt that died."""
    return granted.attempts == 1 or granted.takeover


def due_at(sent: float | None, eta: float | None) -> float | None:
    """When a message was due: when it was sent, or its eta, whichever is later."""
    known = [instant for instant in (sent, eta) if instant is not None]
    return max(known) if known else None
