"""Names that are reserved for a time."""

import secrets
from collections.abc import Callable

from effectonce.ports import LedgerStore
from effectonce.testing.conformance.crowds import at_once
from effectonce.testing.conformance.scene import HOUR, MOMENT, Suite


def new_name() -> bytes:
    """A name that nobody has reserved."""
    return secrets.token_bytes(16)


def _reserve(store: LedgerStore, name: bytes, holder: str) -> Callable[[], str]:
    return lambda: store.reserve(name, holder, HOUR)


class Reserving(Suite):
    """Rules about reservations."""

    def test_the_first_has_it_and_the_second_is_told_who(self, store: LedgerStore) -> None:
        name = new_name()
        assert [store.reserve(name, holder, HOUR) for holder in ("one", "two", "one")] == ["one", "one", "one"]
        assert store.reserve(new_name(), "two", HOUR) == "two"

    def test_of_many_at_once_one_has_it_and_all_are_told_the_same(self, store: LedgerStore) -> None:
        """Nobody looks first and reserves after that."""
        for _ in range(5):
            name = new_name()
            holders = at_once([_reserve(store, name, str(at)) for at in range(8)])
            assert len(set(holders)) == 1

    def test_a_reservation_ends_by_itself(self, store: LedgerStore) -> None:
        """Hole H15: its holder may be dead."""
        name = new_name()
        store.reserve(name, "one", MOMENT)
        self.until(lambda: store.reserve(name, "two", HOUR) == "two")
        assert store.reserve(name, "three", HOUR) == "two"

    def test_of_many_that_come_after_its_end_one_has_it(self, store: LedgerStore) -> None:
        name = new_name()
        store.reserve(name, "dead", MOMENT)
        self.let_pass(store, 0.01)
        holders = at_once([_reserve(store, name, str(at)) for at in range(8)])
        assert len(set(holders)) == 1
        assert holders[0] != "dead"

    def test_its_holder_alone_gives_it_back(self, store: LedgerStore) -> None:
        name = new_name()
        store.reserve(name, "one", HOUR)
        assert not store.give_back(name, "two")
        assert store.reserve(name, "two", HOUR) == "one"
        assert store.give_back(name, "one")
        assert not store.give_back(name, "one")
        assert store.reserve(name, "two", HOUR) == "two"

    def test_asking_again_does_not_move_its_end(self, store: LedgerStore) -> None:
        name = new_name()
        store.reserve(name, "one", 0.05)
        store.reserve(name, "one", HOUR)
        self.until(lambda: store.reserve(name, "two", HOUR) == "two")

    def test_what_has_ended_is_swept_away_and_what_has_not_stays(self, store: LedgerStore) -> None:
        ended, standing = new_name(), new_name()
        store.reserve(ended, "one", MOMENT)
        store.reserve(standing, "one", HOUR)
        self.let_pass(store, 0.01)
        store.forget_reservations()
        assert store.forget_reservations() == 0
        assert [store.reserve(name, "two", HOUR) for name in (ended, standing)] == ["two", "one"]
