"""Which ticks are due, and what becomes of the missed ones. The series is every ten units: 0, 10, 20 ..."""

import pytest

from effectonce.domain.series import Grid, Once, Series
from effectonce.domain.ticks import (
    COUNTED,
    MOST_AT_ONCE,
    Due,
    Missed,
    Planned,
    Recorded,
    Tick,
    TickState,
    decide,
    entry_digest,
    first_last,
    soonest,
)

EVERY_TEN = Grid(10)


def planned(
    missed: Missed = Missed.LATEST, *, series: Series = EVERY_TEN, start: int | None = None, life: int | None = None
) -> Planned:
    return Planned(name="report", series=series, missed=missed, start=start, life=life)


@pytest.mark.parametrize("missed", list(Missed))
def test_nothing_is_due_before_the_next_instant_and_that_one_alone_at_it(missed: Missed) -> None:
    assert decide(planned(missed), last=20, now=29, since=0) == Due()
    assert decide(planned(missed), last=30, now=29, since=0) == Due(), "the clock went back"
    assert decide(planned(missed), last=20, now=30, since=0) == Due(send=(30,))
    assert decide(planned(missed, series=Once(50)), last=20, now=49, since=0) == Due()


@pytest.mark.parametrize(
    ("missed", "since", "expected"),
    [
        (Missed.LATEST, 45, Due(send=(50,), missed=2)),
        (Missed.ALL, 45, Due(send=(30, 40, 50))),
        (Missed.SKIP, 45, Due(send=(50,), missed=2)),
        (Missed.SKIP, 50, Due(send=(50,), missed=2)),
        (Missed.SKIP, 51, Due(skipped=50, missed=3)),
        (Missed.LATEST, 51, Due(send=(50,), missed=2)),
    ],
)
def test_of_missed_ticks_those_are_sent_that_the_entry_wants(missed: Missed, since: int, expected: Due) -> None:
    assert decide(planned(missed), last=20, now=55, since=since) == expected


@pytest.mark.parametrize(
    ("missed", "life", "expected"),
    [
        (Missed.LATEST, 5, Due(skipped=50, missed=3)),
        (Missed.LATEST, 6, Due(send=(50,), missed=2)),
        (Missed.ALL, 5, Due(skipped=50, missed=3)),
        (Missed.ALL, 16, Due(send=(40, 50), missed=1)),
        (Missed.ALL, 15, Due(send=(50,), missed=2)),
    ],
)
def test_a_tick_of_no_use_any_more_is_passed_over(missed: Missed, life: int, expected: Due) -> None:
    assert decide(planned(missed, life=life), last=20, now=55, since=0) == expected


def test_catching_up_has_an_end_and_so_has_counting() -> None:
    caught = decide(planned(Missed.ALL), last=0, now=10 * 500, since=0)
    assert len(caught.send) == MOST_AT_ONCE
    assert (caught.send[0], caught.send[-1], caught.missed) == (4010, 5000, 400)
    assert decide(planned(), last=0, now=10 * 5000, since=0).missed == COUNTED
    assert decide(planned(Missed.SKIP), last=0, now=10 * 5000, since=10**9).missed == COUNTED
    assert decide(planned(series=Once(50)), last=0, now=60, since=0) == Due(send=(50,))


def test_an_entry_that_nobody_knows_begins_at_its_start_or_with_the_next_but_for_the_one_now() -> None:
    assert first_last(planned(start=7), now=55) == 7
    assert first_last(planned(start=70), now=55) == 55
    assert first_last(planned(), now=55) == 49, "the instant of now is wanted"
    assert first_last(planned(series=Once(60)), now=55) == 55


def recorded(name: str, following: int | None) -> Recorded:
    tick = Tick(group="g", name=name, instant=0)
    return Recorded(tick=tick, state=TickState.SENT, fence=1, at=0.0, missed=0, following=following)


def test_the_soonest_are_those_that_come_next() -> None:
    rows = [recorded("late", 30), recorded("over", None), recorded("b", 10), recorded("a", 10)]
    assert [row.tick.name for row in soonest(rows, limit=2)] == ["a", "b"]
    assert [row.tick.name for row in soonest(rows, limit=9)] == ["a", "b", "late"]


def test_a_tick_has_one_id_whoever_sends_it() -> None:
    tick = Tick(group="g", name="report", instant=1_800_000_000_000_000)
    assert tick.task_id == Tick(group="g", name="report", instant=1_800_000_000_000_000).task_id
    others = [("g", "report", 1_800_000_000_000_001), ("h", "report", tick.instant), ("g", "reports", tick.instant)]
    ids = {Tick(group=group, name=name, instant=at).task_id for group, name, at in others}
    assert len(ids | {tick.task_id}) == 4
    assert tick.task_id[14] == "8"
    assert tick.text == "2027-01-15T08:00:00+00:00"
    assert Tick(group="g", name="r", instant=-1).task_id != Tick(group="g", name="r", instant=1).task_id


def test_a_group_and_a_name_cannot_pass_for_others() -> None:
    assert entry_digest("ab", "c") != entry_digest("a", "bc")
    assert entry_digest("g", "\ud800") != entry_digest("g", "?")
    assert len(entry_digest("g", "n")) == 16
