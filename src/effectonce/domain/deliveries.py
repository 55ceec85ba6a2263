"""What a delivery says about itself, and whether it may be a repeat.

The broker's flag decides only who pays for a committed attempt (rule 3): it is missing on real duplicates and set
on messages that never started, so it never decides whether to run.
"""

from dataclasses import dataclass
from hashlib import blake2b


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One arrival of a message, or a call without one (*task_id* empty).

    *flagged*: the broker says it delivered this before. *counts*: this transport says so at all. *deferrals*: how
    often a copy of it was put off. *reenter*: the fence that its retry carries. *continues*: it has links, a chain
    or a chord. *fails_on*: it has error links, a chain or a chord. *cause*: why it came, where a copy carries that.
    *relayed*: a relay sent it that cannot know whether it had gone out. *by_beat*: a schedule sent it. *is_timed*: its
    broker delivers again what is not acknowledged in time.
    """

    task: str
    task_id: str = ""
    nesting: int = 0
    retries: int = 0
    flagged: bool = False
    counts: bool = True
    deferrals: int = 0
    reenter: int | None = None
    continues: bool = False
    fails_on: bool = False
    deferrable: bool = False
    cause: str = ""
    relayed: bool = False
    by_beat: bool = False
    is_timed: bool = False

    @property
    def identity(self) -> bytes:
        """16 bytes that name the message: `replace` keeps the id, so name and nesting belong to it (rule 5)."""
        parts = (self.task_id, self.task, str(self.nesting))
        return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()

    @property
    def may_repeat(self) -> bool:
        """Tell whether an earlier attempt of this message may have died, so that this one must be counted."""
        if not self.deferrable:
            return False
        unfenced_retry = self.retries > 0 and self.reenter is None
        return self.flagged or not self.counts or self.deferrals > 0 or self.reenter is not None or unfenced_retry
