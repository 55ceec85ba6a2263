import io
from collections import Counter
from pathlib import Path

import pytest

from effectonce.lab import report
from effectonce.lab.caller import Caller
from effectonce.lab.charges import Charges
from effectonce.lab.journal import Fact, Journal
from effectonce.lab.narrator import PlainNarrator, RichNarrator, narrator
from effectonce.lab.tally import Column, Tally, count_column


def column(task: str, **numbers: int) -> Column:
    fine = {
        "orders": 10,
        "messages": 20,
        "bodies": 12,
        "charges": 10,
        "twice": 0,
        "lost": 0,
        "deliveries": 25,
        "failed": 0,
        "unanswered": 0,
        "overlaps": 0,
        "killed_by_child": 1,
        "killed_by_worker": 1,
    }
    return Column(task=task, **{**fine, **numbers})


def tally(plain: Column, guarded: Column, *, broker_waits: bool = True) -> Tally:
    return Tally(
        columns=[plain, guarded],
        repeated_early=12,
        repeated_late=28,
        children_killed=2,
        workers_killed=2,
        broker_waits=broker_waits,
        seconds=42.4,
    )


def shown(of: Tally) -> str:
    out = io.StringIO()
    report.show(of, PlainNarrator(out))
    return out.getvalue()


def test_the_table_compares_the_tasks() -> None:
    text = shown(tally(column("plain", charges=19, twice=9), column("guarded")))
    rows = {line[:15].strip(): line[15:].split() for line in text.splitlines()}
    assert rows[""] == []
    assert rows["charges"] == ["19", "10"]
    assert rows["charged twice"] == ["9", "0"]
    assert rows["lost"] == ["0", "0"]
    assert "plain: 9 of 10 orders were charged more than once" in text
    assert "guarded: every one of the 10 orders was charged once" in text
    assert "repeated by the caller: 40 messages, 12 while the first was under way, 28 when it was done" in text
    assert "it took 42 s" in text


def test_a_plain_task_that_went_well_by_chance_is_called_that() -> None:
    assert "which proves nothing" in shown(tally(column("plain"), column("guarded")))


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"twice": 1}, "guarded: 1 of 10 orders were charged more than once"),
        ({"lost": 2}, "guarded: 2 of 10 orders were never charged"),
        ({"unanswered": 3}, "guarded: 3 messages got no answer"),
    ],
)
def test_a_fault_of_the_guarded_task_is_said(numbers: dict[str, int], words: str) -> None:
    guarded = column("guarded", **numbers)
    assert not guarded.is_clean
    assert words in shown(tally(column("plain"), guarded))


def test_a_broker_that_does_not_wait_is_not_expected_to_repeat() -> None:
    assert "only when a connection breaks" in shown(tally(column("plain"), column("guarded"), broker_waits=False))


def test_the_judge_counts_what_is_in_the_table(tmp_path: Path) -> None:
    charges = Charges(f"sqlite:///{tmp_path / 'charges.db'}", task="plain", schema=None)
    charges.create()
    for order in (1, 1, 2):
        charges.charge(order, 500)
    journal = Journal(tmp_path / "journal")
    journal.note(Fact(what="began", pid=1, task="plain", order=1, message="m"))
    journal.note(Fact(what="child_killed", pid=1))
    journal.note(Fact(what="began", pid=2, task="guarded", order=1, message="n"))
    journal.read()
    caller = Caller({}, [], pause=0, state_of=str)
    found = count_column("plain", orders=3, charges=charges.count(), journal=journal, caller=caller)
    assert charges.count() == Counter({1: 2, 2: 1})
    assert (found.charges, found.twice, found.lost) == (3, 1, 1)
    assert (found.bodies, found.killed_by_child, found.killed_by_worker) == (1, 1, 0)


def test_a_pipe_gets_plain_lines_and_a_terminal_a_bar() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    pipe, terminal = io.StringIO(), Terminal()
    assert isinstance(narrator(pipe), PlainNarrator)
    voice = narrator(terminal)
    assert isinstance(voice, RichNarrator)
    with voice:
        voice.say("something [red]happened")
        voice.progress(1, 2)
    report.show(tally(column("plain"), column("guarded")), voice)
    assert "something [red]happened" in terminal.getvalue()
    assert "guarded: every one of the 10 orders was charged once" in terminal.getvalue()
