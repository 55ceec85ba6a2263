"""The bytes of a value can be read back, so no two values share them."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from effectonce.domain.canonical import EPOCH, encode_argument, encode_part
from tests.property.values import LOOSE, VALUES, carried, meaning


class Reader:
    """Reads what an encoder wrote: the proof that it can be read in one way only."""

    def __init__(self, written: bytes) -> None:
        self._rest = written

    def value(self) -> Any:
        """The next value."""
        letter = chr(self._rest[0])
        self._rest = self._rest[1:]
        return self._ways()[letter]()

    def end(self) -> bool:
        """Whether all has been read."""
        return not self._rest

    def _ways(self) -> dict[str, Callable[[], Any]]:
        return {
            "n": lambda: None,
            "T": lambda: True,
            "F": lambda: False,
            "i": lambda: int(self._until(b";"), 16),
            "f": lambda: float(self._until(b";")),
            "s": lambda: self._counted().decode("utf-8", "surrogatepass"),
            "b": self._counted,
            "u": lambda: UUID(bytes=self._next(16)),
            "D": lambda: Decimal(self._until(b";").decode()),
            "a": lambda: date.fromordinal(int(self._until(b";"), 16)),
            "t": lambda: time.fromisoformat(self._until(b";").decode()),
            "w": lambda: EPOCH + timedelta(microseconds=int(self._until(b";"), 16)),
            "z": lambda: EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=int(self._until(b";"), 16)),
            "p": lambda: timedelta(microseconds=int(self._until(b";"), 16)),
            "l": lambda: [self.value() for _ in range(int(self._until(b":")))],
            "d": lambda: {self.value(): self.value() for _ in range(int(self._until(b":")))},
            "S": lambda: {self.value() for _ in range(int(self._until(b":")))},
        }

    def _until(self, end: bytes) -> bytes:
        found, _, self._rest = self._rest.partition(end)
        return found

    def _next(self, count: int) -> bytes:
        found, self._rest = self._rest[:count], self._rest[count:]
        return found

    def _counted(self) -> bytes:
        return self._next(int(self._until(b":")))


@given(values=st.lists(VALUES | st.timedeltas(), max_size=3))
def test_parts_can_be_read_back_one_after_the_other(values: list[Any]) -> None:
    reader = Reader(b"".join(map(encode_part, values)))
    assert [meaning(reader.value()) for _ in values] == [meaning(value) for value in values]
    assert reader.end()


@given(value=LOOSE | st.sets(st.integers() | st.floats(allow_nan=False)))
def test_arguments_can_be_read_back(value: Any) -> None:
    reader = Reader(encode_argument(value))
    assert meaning(reader.value()) == meaning(value)
    assert reader.end()


@given(value=VALUES)
def test_a_part_is_the_same_at_the_worker(value: Any) -> None:
    assert encode_part(value) == encode_part(carried(value)) == encode_argument(value)


@given(instant=st.datetimes(timezones=st.just(UTC)))
def test_an_instant_differs_from_the_time_on_the_wall(instant: datetime) -> None:
    assert encode_part(instant) != encode_part(instant.replace(tzinfo=None))
