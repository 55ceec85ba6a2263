"""What a demo has measured, counted from the charges, the journal and the caller; nothing is taken for granted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from effectonce.lab.caller import Caller
from effectonce.lab.journal import Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One task's numbers.

    *twice* and *lost* count orders. *unanswered* messages got no result before the demo gave up, *failed* ones got an
    error. The last four count bodies: repeated by the broker while they ran, and broken off by a kill.
    """

    task: str
    orders: int
    messages: int
    bodies: int
    charges: int
    twice: int
    lost: int
    deliveries: int
    failed: int
    unanswered: int
    overlaps: int
    killed_by_child: int
    killed_by_worker: int

    @property
    def is_clean(self) -> bool:
        """Tell whether every order was charged once and every message has its answer."""
        return not (self.twice or self.lost or self.unanswered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """A whole run.

    *workers_killed* counts workers that were killed whole. *broker_waits*: the broker delivers a message again that
    was not acknowledged in time; one that does not (RabbitMQ) watches the worker's connection instead.
    """

    columns: Sequence[Column]
    repeated_early: int
    repeated_late: int
    children_killed: int
    workers_killed: int
    broker_waits: bool
    seconds: float

    def of(self, task: str) -> Column:
        """Return one task's column."""
        return next(column for column in self.columns if column.task == task)


def count_column(task: str, *, orders: int, charges: Counter[int], journal: Journal, caller: Caller) -> Column:
    """Count what one task did to orders 1 to *orders*."""
    runs = [run for run in journal.runs if run.task == task]
    deaths = Counter(run.death for run in runs)
    return Column(
        task=task,
        orders=orders,
        messages=caller.sent[task],
        bodies=len(runs),
        charges=charges.total(),
        twice=sum(1 for times in charges.values() if times > 1),
        lost=sum(1 for number in range(1, orders + 1) if not charges[number]),
        deliveries=_of(task, [fact.task for fact in journal.deliveries]),
        failed=caller.failed[task],
        unanswered=_of(task, [message.task for message in caller.under_way]),
        overlaps=_of(task, [fact.task for fact in journal.overlaps]),
        killed_by_child=deaths["child_killed"],
        killed_by_worker=deaths["worker_killed"],
    )


def rows(tally: Tally) -> Mapping[str, Sequence[int]]:
    """Return the lines of the table, one number a column."""
    names = {
        "orders": "orders",
        "messages sent": "messages",
        "bodies run": "bodies",
        "charges": "charges",
        "charged twice": "twice",
        "lost": "lost",
    }
    return {title: [getattr(column, name) for column in tally.columns] for title, name in names.items()}


def _of(task: str, tasks: Sequence[str]) -> int:
    return tasks.count(task)
