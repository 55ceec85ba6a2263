"""What a demo says at its end: the table, what happened in a line each, and the verdict."""

from collections.abc import Callable, Iterator

from effectonce.lab.narrator import Narrator
from effectonce.lab.tally import Column, Tally, rows


def show(tally: Tally, narrator: Narrator) -> None:
    """Print all of it."""
    narrator.text()
    narrator.table([column.task for column in tally.columns], rows(tally))
    narrator.text()
    for line in [*happenings(tally), "", *verdicts(tally)]:
        narrator.text(line)


def happenings(tally: Tally) -> Iterator[str]:
    """Yield what happened, with the numbers that were measured."""
    repeated = tally.repeated_early + tally.repeated_late
    yield (
        f"repeated by the caller: {repeated} messages, {tally.repeated_early} while the first was under way, "
        f"{tally.repeated_late} when it was done"
    )
    overlaps = f"delivered again by the broker while the first body still ran: {_each(tally, lambda one: one.overlaps)}"
    yield overlaps if tally.broker_waits else f"{overlaps}; this broker does so only when a connection breaks"
    yield (
        f"pool processes killed: {tally.children_killed}; "
        f"bodies broken off: {_each(tally, lambda one: one.killed_by_child)}"
    )
    yield (
        f"workers killed whole and started again: {tally.workers_killed}; "
        f"bodies broken off: {_each(tally, lambda one: one.killed_by_worker)}"
    )
    guarded = tally.of("guarded")
    yield (
        f"deliveries of the guarded task: {guarded.deliveries}, of which {guarded.deliveries - guarded.bodies} "
        "ran no body: done already, or busy and kept for later"
    )
    for column in tally.columns:
        yield from _faults(column)
    yield f"it took {tally.seconds:.0f} s"


def verdicts(tally: Tally) -> Iterator[str]:
    """Yield one line a task."""
    for column in tally.columns:
        yield f"{column.task}: {_verdict(column)}"


def _verdict(column: Column) -> str:
    if column.is_clean:
        every = f"every one of the {column.orders} orders was charged once"
        return every if column.task == "guarded" else f"{every}; this time nothing went wrong, which proves nothing"
    faults = []
    if column.twice:
        faults.append(f"{column.twice} of {column.orders} orders were charged more than once")
    if column.lost:
        faults.append(f"{column.lost} of {column.orders} orders were never charged")
    if column.unanswered:
        faults.append(f"{column.unanswered} messages got no answer")
    return ", ".join(faults)


def _faults(column: Column) -> Iterator[str]:
    if column.failed:
        yield f"messages of the {column.task} task that ended with an error: {column.failed}"
    if column.unanswered:
        yield f"messages of the {column.task} task without an answer when the demo gave up: {column.unanswered}"


def _each(tally: Tally, number: Callable[[Column], int]) -> str:
    """Return the sum, and what each task has of it."""
    parts = ", ".join(f"{column.task} {number(column)}" for column in tally.columns)
    return f"{sum(number(column) for column in tally.columns)} ({parts})"
