"""What people and the pruner do with entries; see `effectonce.ports`."""

from dataclasses import dataclass
from typing import Protocol

from effectonce.domain.claims import Entry, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """One batch of pruning: how many entries it *looked* at and *removed*, and where the next begins; None: over."""

    looked: int
    removed: int
    after: bytes | None

    @property
    def share(self) -> float:
        """Which part of the ledger has been looked at, 0 to 1: digests are spread evenly."""
        return 1.0 if self.after is None else int.from_bytes(self.after[:4]) / 2**32


class Keeping(Protocol):
    """The part of a `LedgerStore` that looks after what is held or finished."""

    def unhold(self, digest: bytes, message: bytes) -> None:
        """Forget one message kept with an entry: it has been sent again."""
        ...

    def settle_held(self, entry: Entry, outcome: Outcome, *, by: bytes) -> bool:
        """End an entry that is UNKNOWN or POISONED as a person says, if nothing has moved since *entry* was read.

        *by* (8 random bytes) becomes its attempt, with a larger fence, so that a holder which wakes is refused. Its
        messages stay until `unhold`. False: something has moved.
        """
        ...

    def free(self, entry: Entry, *, by: bytes, keep: float | None) -> bool:
        """Let an entry run again that is held or finished, if nothing has moved since *entry* was read.

        RELEASED, without deaths and result, under a larger fence of *by*. Of one that was held the steps that ended
        stay, of a finished one none. The tombstone lives *keep*.
        """
        ...

    def redact(self, entry: Entry) -> bool:
        """Take key, fingerprint, result and steps away from a finished entry, if nothing has moved since it was read.

        Digest, identity and state stay, so no duplicate runs; its result counts as not kept.
        """
        ...

    @property
    def forgets_by_itself(self) -> bool:
        """Whether entries whose time is over go without `prune`."""
        ...

    def prune(self, *, limit: int, after: bytes) -> Pruned:
        """Look at up to *limit* entries in the order of their digests, after *after*, and remove those that are over.

        That is: ended or released, past their life, and without a message. With their steps; one short transaction.
        """
        ...

    def over(self, *, limit: int, after: bytes) -> Pruned:
        """Look as `prune` does, and say how many it would remove now; nothing is written."""
        ...
