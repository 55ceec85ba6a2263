"""The keeper of visibility: renews what is held, lets go of what is not ours or stuck, and brings nothing back."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from effectonce.events import Event, Name
from effectonce.ports import Described
from effectonce.ports.outbox import BrokerAway
from effectonce.runtime.visibility import VisibilityKeeper

DAY = 24 * 3600.0


class Message:
    def __init__(self, due: float | None = None) -> None:
        self.due = due


class Broker:
    """Holds messages by tag; *gone* are those that it no longer counts as delivered."""

    def __init__(self) -> None:
        self.messages: dict[str, Message] = {}
        self.gone: set[str] = set()
        self.away = False
        self.renewals: list[list[str]] = []

    def held(self) -> Mapping[str, Any]:
        return dict(self.messages)

    def describe(self, message: Message) -> Described:
        return Described(task="shop.pay", task_id="id-1", due=message.due)

    def renew(self, tags: Sequence[str]) -> frozenset[str]:
        if self.away:
            raise BrokerAway
        self.renewals.append(sorted(tags))
        return frozenset(self.gone & set(tags))

    def sweep(self) -> None:
        raise NotImplementedError


class Scene:
    def __init__(self, at_most: float | None = DAY) -> None:
        self.broker: Broker | None = Broker()
        self.now, self.epoch = 1000.0, 5_000_000.0
        self.events: list[Event] = []
        self.keeper = VisibilityKeeper(
            lambda: self.broker,
            at_most=at_most,
            emit=self.events.append,
            clock=lambda: self.now,
            wall=lambda: self.epoch + self.now,
        )

    def take(self, tag: str, due_in: float | None = None) -> None:
        assert self.broker is not None
        self.broker.messages[tag] = Message(None if due_in is None else self.epoch + self.now + due_in)

    def renew(self, *, after: float = 1.0) -> list[str] | None:
        """What a step renewed; None when it asked nobody."""
        assert self.broker is not None
        self.now += after
        before = len(self.broker.renewals)
        self.keeper.renew()
        return self.broker.renewals[-1] if len(self.broker.renewals) > before else None

    def lost(self) -> list[str]:
        return [event.facts["why"] for event in self.events if event.name is Name.DELIVERY_LOST]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_all_that_is_held_is_renewed_in_one_call_and_said(scene: Scene) -> None:
    scene.take("a")
    scene.take("b", due_in=3600)
    assert scene.renew() == ["a", "b"]
    assert scene.events == [Event(name=Name.DELIVERY_RENEWED, facts={"renewed": 2, "held": 2})]


def test_a_worker_that_holds_nothing_asks_nobody(scene: Scene) -> None:
    assert scene.renew() is None
    assert scene.events == []


def test_what_the_broker_gave_away_is_renewed_no_more(scene: Scene) -> None:
    """A renewal of it would be one of its next holder's delivery, which has the same tag."""
    scene.take("a")
    scene.take("b")
    assert scene.broker is not None
    scene.broker.gone = {"a"}
    assert scene.renew() == ["a", "b"]
    assert scene.lost() == []
    scene.broker.gone = set()
    assert scene.renew() == ["b"]
    assert scene.lost() == ["the broker does not count it as held any more"]
    assert scene.renew() == ["b"]
    assert len(scene.lost()) == 1


def test_what_was_acknowledged_meanwhile_is_not_called_lost(scene: Scene) -> None:
    scene.take("a")
    assert scene.broker is not None
    scene.broker.gone = {"a"}
    scene.renew()
    del scene.broker.messages["a"]
    scene.renew()
    assert scene.lost() == []


def test_a_copy_of_a_lost_message_that_comes_to_this_worker_is_renewed(scene: Scene) -> None:
    """It has the same tag, and is another delivery."""
    scene.take("a")
    assert scene.broker is not None
    scene.broker.gone = {"a"}
    scene.renew()
    assert scene.renew() is None
    scene.broker.gone = set()
    scene.take("a")
    assert scene.renew() == ["a"]


def test_a_body_that_hangs_comes_back_one_day(scene: Scene) -> None:
    scene.take("a")
    assert scene.renew() == ["a"]
    assert scene.renew(after=DAY) == ["a"]
    assert scene.renew(after=1) is None
    assert scene.lost() == ["held for longer than 86400 s"]


def test_waiting_for_an_eta_uses_up_none_of_the_age(scene: Scene) -> None:
    scene.take("a", due_in=10 * DAY)
    assert scene.renew() == ["a"]
    assert scene.renew(after=10.5 * DAY) == ["a"]
    assert scene.renew(after=DAY) is None


def test_without_a_limit_nothing_is_too_old() -> None:
    scene = Scene(at_most=None)
    scene.take("a")
    scene.renew()
    assert scene.renew(after=1000 * DAY) == ["a"]


def test_a_broker_that_is_away_makes_nothing_lost(scene: Scene) -> None:
    scene.take("a")
    scene.renew()
    assert scene.broker is not None
    scene.broker.away = True
    with pytest.raises(BrokerAway):
        scene.renew()
    scene.broker.away = False
    assert scene.renew() == ["a"]
    assert scene.lost() == []


def test_while_a_worker_reconnects_nothing_is_renewed(scene: Scene) -> None:
    scene.take("a")
    scene.renew()
    broker, scene.broker = scene.broker, None
    scene.keeper.renew()
    scene.broker = broker
    assert scene.renew() == ["a"]
