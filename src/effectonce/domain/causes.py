"""Why a message stands where its effect has been, or is being, carried out already.

Nobody writes the reason on a duplicate. It is told from what the message says of itself (the broker's flag, a tick's
header, a relay's mark) and from whose entry it met: its own message's, or another's. It is for people; it decides
nothing.
"""

from enum import StrEnum

from effectonce.domain.deliveries import Delivery


class Cause(StrEnum):
    """The causes there are; their names are stable."""

    REDELIVERY = "redelivery"
    """The broker delivered the message again: its worker died, or its connection was lost."""

    VISIBILITY = "visibility"
    """The visibility timeout ended while the holder was still at work."""

    CALLER = "caller"
    """The same intent was sent again, as another message or as this one."""

    BEAT = "beat"
    """A second beat, or one that was started again, sent the same tick."""

    RELAY = "relay"
    """A relay sent a message of the outbox that may have gone out before."""

    TAKEOVER = "takeover"
    """The holder was gone, or had slept past its claim."""


def cause_of(delivery: Delivery, *, own: bool, lives: bool) -> Cause:
    """Say why *delivery* came; *own*: it met its own message's entry. *lives*: whoever holds that one is at work.

    A copy that was put off has carried its cause along.
    """
    if delivery.cause:
        return Cause(delivery.cause)
    if delivery.relayed:
        return Cause.RELAY
    if delivery.flagged and (own or lives):
        return Cause.VISIBILITY if lives and delivery.is_timed else Cause.REDELIVERY
    if delivery.by_beat:
        return Cause.BEAT
    return Cause.CALLER
