from pathlib import Path
from typing import Any

import pytest

from effectonce.lab.journal import Fact, Journal, What


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


def note(journal: Journal, what: What, pid: int = 1, **facts: Any) -> None:
    journal.note(Fact(what=what, pid=pid, **{"task": "plain", "order": 7, "message": "m", **facts}))
    journal.read()


def test_what_one_notes_another_reads(journal: Journal, tmp_path: Path) -> None:
    other = Journal(tmp_path / "journal")
    journal.note(Fact(what="began", pid=5, task="plain", order=7, message="m"))
    other.read()
    assert [(run.task, run.order, run.pid) for run in other.runs] == [("plain", 7, 5)]
    other.read()
    assert len(other.runs) == 1


def test_half_a_line_is_read_when_it_is_whole(journal: Journal, tmp_path: Path) -> None:
    journal.note(Fact(what="began", pid=5))
    path = tmp_path / "journal"
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    journal.read()
    assert journal.runs == []
    path.write_bytes(whole)
    journal.read()
    assert len(journal.runs) == 1


def test_a_body_is_in_the_middle_between_its_charge_and_its_end(journal: Journal) -> None:
    note(journal, "began")
    assert journal.running("plain", 7) is None
    note(journal, "charged")
    run = journal.running("plain", 7)
    assert run
    assert run.pid == 1
    assert journal.running("guarded", 7) is None
    note(journal, "ended")
    assert journal.running("plain", 7) is None


def test_a_kill_ends_the_body_of_this_process_only(journal: Journal) -> None:
    note(journal, "began", pid=1)
    note(journal, "ended", pid=1)
    note(journal, "began", pid=1, order=8)
    note(journal, "began", pid=2, order=9)
    note(journal, "child_killed", pid=1)
    assert [(run.order, run.death) for run in journal.runs] == [(7, None), (8, "child_killed"), (9, None)]


@pytest.mark.parametrize(
    ("before", "redelivered", "overlaps"),
    [
        (["began"], True, 1),
        (["began", "charged"], True, 1),
        (["began"], False, 0),
        (["began", "ended"], True, 0),
        (["began", "worker_killed"], True, 0),
        ([], True, 0),
    ],
)
def test_a_redelivery_overlaps_only_a_body_that_runs(
    journal: Journal, before: list[What], redelivered: bool, overlaps: int
) -> None:
    for what in before:
        note(journal, what)
    note(journal, "delivered", pid=2, redelivered=redelivered)
    assert len(journal.overlaps) == overlaps
    assert journal.overlap("plain", 7) is bool(overlaps)


def test_a_repeat_by_the_caller_is_no_redelivery_of_the_message_that_runs(journal: Journal) -> None:
    note(journal, "began", message="m")
    note(journal, "delivered", pid=2, message="another", redelivered=True)
    assert journal.overlaps == []
