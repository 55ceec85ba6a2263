"""What is different between how a clean run left the outside and how another one did."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from effectonce.testing.attempts import Touch
from effectonce.testing.databases import Rows

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How a run left the outside: *rows* by table, *things* (keys, files) by name, and the calls that were *made*."""

    rows: Rows
    things: Mapping[str, Any]
    made: tuple[Touch, ...]


def volatile(first: State, second: State) -> frozenset[str]:
    """Columns (``table.column``) and things in which two clean runs differ: instants, random ids."""
    found = {
        f"{table}.{column}"
        for table, rows in first.rows.items()
        for column in (rows[0] if rows else ())
        if _column(rows, column) != _column(second.rows.get(table, []), column)
    }
    return frozenset(found | {name for name in first.things if first.things[name] != second.things.get(name)})


def _column(rows: Sequence[Mapping[str, Any]], column: str) -> Counter[str]:
    return Counter(repr(row.get(column)) for row in rows)


def differences(clean: State, other: State, left_out: frozenset[str]) -> tuple[str, ...]:
    """In lines, what *other* has more, less, or otherwise; columns named in *left_out* are not looked at."""
    tables = sorted({*clean.rows, *other.rows})
    return tuple(
        line
        for lines in (
            *(_of_table(table, clean.rows.get(table, []), other.rows.get(table, []), left_out) for table in tables),
            _of_things(clean.things, other.things, left_out),
            _of_calls(clean.made, other.made),
        )
        for line in lines
    )


def _of_table(
    table: str, clean: Iterable[Mapping[str, Any]], other: Iterable[Mapping[str, Any]], left_out: frozenset[str]
) -> Iterator[str]:
    expected, found = (Counter(_row(table, row, left_out) for row in rows) for rows in (clean, other))
    if expected == found:
        return
    if expected.total() != found.total():
        yield f"table {table}: {_number(found.total(), 'row')} instead of {expected.total()}"
    else:
        yield f"table {table}: {_number((found - expected).total(), 'row')} otherwise"
    yield from (f"  + {row}" for row in list((found - expected).elements())[:_SHOWN])
    yield from (f"  - {row}" for row in list((expected - found).elements())[:_SHOWN])


def _row(table: str, row: Mapping[str, Any], left_out: frozenset[str]) -> str:
    told = (f"{name}={value!r}" for name, value in row.items() if not {name, f"{table}.{name}"} & left_out)
    return f"({', '.join(told)})"


def _of_things(clean: Mapping[str, Any], other: Mapping[str, Any], left_out: frozenset[str]) -> Iterator[str]:
    for name in sorted({*clean, *other} - left_out):
        if clean.get(name) != other.get(name):
            words = "is missing" if other.get(name) is None else "is new" if clean.get(name) is None else "is otherwise"
            yield f"{name} {words}"


def _of_calls(clean: Iterable[Touch], other: Iterable[Touch]) -> Iterator[str]:
    expected, found = _effective(clean), _effective(other)
    for what in sorted({*expected, *found}):
        if expected[what] != found[what]:
            yield f"{what}: made {_number(found[what], 'time')} instead of {expected[what]}"


def _effective(touches: Iterable[Touch]) -> Counter[str]:
    """How often each call counts: calls that show the same key count once."""
    recorded = [touch for touch in touches if touch.recorded]
    keyed = {(touch.what, touch.once) for touch in recorded if touch.once is not None}
    return Counter([touch.what for touch in recorded if touch.once is None] + [what for what, _ in keyed])


def _number(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
