"""One running and one more: which message goes on after a holder.

A message may be dropped only when another one will begin after it came, so that what changed in between is seen. So
each holder has at most one follower, registered on its own claim: it is known by the holder's fence, and the next grant
forgets it. A message that finds a follower came while that holder held the claim; the follower's grant, or anybody's
before it, is a later one. Where the holder has gone meanwhile, nothing is known, and the message looks again.

`tests/model/test_following.py` steps through all orders of messages, copies and deaths.
"""

from enum import IntEnum


class Following(IntEnum):
    """What a ledger answers to a message that wants to follow a holder."""

    NEXT = 1
    """It follows; asked again, it still does."""

    ANOTHER = 2
    """Another message follows, and will begin later than now."""

    MOVED = 3
    """That holder holds the claim no more."""
