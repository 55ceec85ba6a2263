"""One world for all that differ in nothing that matters.

* Workers are alike: they are sorted.
* Fences and attempts are compared, never counted: they are renumbered from 1 in their order.
* Delivery tags are compared for equality: they are renumbered, and one that nothing else has is forgotten.
* Flag, deferrals and number of retries decide whether a delivery may be a repeat, and nothing else does once it is
  said: so messages keep that answer of the product's, and no more.

Each is a renaming or leaves out what no step reads, so a road exists among these worlds if it exists among all.
"""

from functools import cache

from tests.model.games import Game, Rule
from tests.model.ledger import delivery
from tests.model.worlds import Hand, Message, Record, Stage, World, numbers

NUMBERS_MATTER = frozenset(
    {Rule.REENTRY_BY_FENCE, Rule.RETRY_IS_SENT_FIRST, Rule.FENCES_GROW, Rule.ONE_IDEMPOTENCY_KEY}
)
"""Without one of these rules some step reads a number of retries or an attempt."""


def canonical(game: Game, world: World) -> World:
    """The world that stands for this one."""
    if not game.off & NUMBERS_MATTER:
        world = _with_small_numbers(_folded(game, world))
    world = _with_small_tags(world)
    return world._replace(
        hands=tuple(sorted(world.hands)), queue=tuple(sorted(world.queue)), unacked=tuple(sorted(world.unacked))
    )


def _folded(game: Game, world: World) -> World:
    kind = (game.transactional, game.broker.flags or not game.keeps(Rule.SILENCE_COUNTS_ALL))
    return world._replace(
        queue=tuple(_fold(message, *kind) for message in world.queue),
        unacked=tuple((token, _fold(message, *kind)) for token, message in world.unacked),
        hands=tuple(_fold_hand(hand, *kind, forgets=not game.lost_retry) for hand in world.hands),
    )


@cache
def _fold(message: Message, transactional: bool, flags: bool) -> Message:
    repeats = transactional and flags and delivery(message, flags=flags).may_repeat
    return message._replace(flagged=repeats, deferrals=0, retries=0)


@cache
def _fold_hand(hand: Hand, transactional: bool, flags: bool, *, forgets: bool) -> Hand:
    if forgets and hand.stage is Stage.ENDING:
        return hand._replace(message=Message(tag=hand.message.tag))
    return hand._replace(message=_fold(hand.message, transactional, flags))


def _with_small_numbers(world: World) -> World:
    found = numbers(world)
    if max(found) == len(found) - 1:
        return world
    to = {old: new for new, old in enumerate(sorted(found))}

    def message(old: Message) -> Message:
        return old._replace(reenter=to[old.reenter]) if old.reenter else old

    def record(old: Record | None) -> Record | None:
        return old and old._replace(fence=to[old.fence], attempt=to[old.attempt])

    return world._replace(
        queue=tuple(message(each) for each in world.queue),
        unacked=tuple((token, message(each)) for token, each in world.unacked),
        record=record(world.record),
        hands=tuple(
            hand._replace(fence=to[hand.fence], attempt=to[hand.attempt], message=message(hand.message))
            for hand in world.hands
        ),
        orphan=world.orphan and world.orphan._replace(record=record(world.orphan.record)),
    )


def _with_small_tags(world: World) -> World:
    """Number the tags in the order of what is known of each: its message, where that is, and who holds it."""
    holders: dict[int, list[Hand]] = {}
    for hand in world.hands:
        if hand.token:
            holders.setdefault(hand.token, []).append(_untagged_hand(hand))
    places = [(message, 0, token) for token, message in world.unacked]
    places += [(message, 1, message.tag) for message in world.queue if message.tag]
    order = sorted((_untagged(message), place, sorted(holders.get(tag, ())), tag) for message, place, tag in places)
    to = {tag: number for number, (*_, tag) in enumerate(order, 1)}
    if all(old == new for old, new in to.items()) and all(held in to for held in holders):
        return world
    return _retagged(world, to)


@cache
def _untagged(message: Message) -> Message:
    return message._replace(tag=0)


@cache
def _untagged_hand(hand: Hand) -> Hand:
    return hand._replace(token=0, message=_untagged(hand.message))


def _retagged(world: World, to: dict[int, int]) -> World:
    """Two holders of a tag that is nowhere else do not touch each other any more, so that tag is forgotten too."""
    return world._replace(
        queue=tuple(message._replace(tag=to.get(message.tag, 0)) for message in world.queue),
        unacked=tuple((to[token], message._replace(tag=to.get(message.tag, 0))) for token, message in world.unacked),
        hands=tuple(
            hand._replace(token=to.get(hand.token, 0), message=hand.message._replace(tag=to.get(hand.message.tag, 0)))
            for hand in world.hands
        ),
    )
