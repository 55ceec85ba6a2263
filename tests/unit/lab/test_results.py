"""What the lab makes of what it has counted, and how it shows it."""

from collections.abc import Mapping
from dataclasses import asdict
from html.parser import HTMLParser
from typing import Any

import pytest

from effectonce.lab.results.markdown import rewritten
from effectonce.lab.results.page import page_of
from effectonce.lab.results.report import Report, cell
from effectonce.lab.results.text import table, verdict
from effectonce.lab.results.timeline import timeline
from effectonce.lab.trials.verdict import Call, Outcome, Word

DONE = Call(intent="a", message="m", state="SUCCESS")


def _outcome(**changes: Any) -> Outcome:
    counted = {"expected": {"a": 1}, "effects": {"a": 1}, "bodies": {"a": 1}, "calls": (DONE,)}
    return Outcome(**{**counted, **changes})


def _row(contender: str, outcome: Outcome, **more: Any) -> Mapping[str, Any]:
    told = {"scenario": "child-killed", "contender": contender, "seconds": 1.0, "moments": [], **more}
    return {**told, "words": outcome.words, "outcome": asdict(outcome)}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ("once",)),
        ({"effects": {"a": 2}}, ("doubled",)),
        ({"effects": {}}, ("lost",)),
        ({"effects": {"b": 3}}, ("doubled", "lost")),
        ({"effects": {"a": 1, "b": 1}}, ("unasked",)),
        ({"expected": {"a": 0}, "effects": {}}, ("once",)),
        ({"expected": {"a": 0}}, ("unasked",)),
        ({"bodies": {"a": 31}}, ("endless",)),
        ({"calls": (DONE, Call(intent="a", message="", refused="AlreadyQueued"))}, ("refused",)),
        ({"calls": (DONE, Call(intent="a", message="", refused="OperationalError", may_fail=True))}, ("once",)),
        ({"calls": (Call(intent="a", message="m"),)}, ("stuck",)),
        ({"calls": (Call(intent="a", message="m", state="FAILURE"),)}, ("failed",)),
        ({"calls": (Call(intent="a", message="m", state="FAILURE", may_fail=True),)}, ("once",)),
        ({"effects": {}, "calls": (Call(intent="a", message="m"),)}, ("lost", "stuck")),
        ({"broken": "it never happened"}, ("broken",)),
    ],
)
def test_the_verdict_names_all_that_is_wrong(changes: dict[str, Any], words: tuple[Word, ...]) -> None:
    outcome = _outcome(**changes)
    assert outcome.words == words
    assert outcome.is_right == (words == ("once",))


def test_only_our_own_column_makes_a_run_wrong() -> None:
    doubled = _outcome(effects={"a": 3})
    assert Report.of([_row("celery", doubled), _row("effectonce", _outcome())]).wrong == []
    ours = _row("effectonce", doubled)
    report = Report.of([_row("celery", _outcome()), ours])
    assert report.wrong == [ours]
    assert "WRONG: effectonce in child-killed: doubled (3x)" in list(verdict(report))


def test_what_could_not_be_carried_out_is_no_success_of_ours() -> None:
    assert len(Report.of([_row("effectonce", _outcome(broken="no worker"))]).wrong) == 1


def test_what_lacked_a_server_is_said_and_is_not_wrong() -> None:
    row = {"scenario": "child-killed", "contender": "effectonce", "missing": "a RabbitMQ"}
    report = Report.of([row])
    assert report.wrong == []
    assert cell(row) == "not tried"
    assert "not tried, for want of a RabbitMQ" in list(verdict(report))


def test_the_table_has_a_column_a_contender_and_a_line_a_scenario() -> None:
    lines = list(table(Report.of([_row("celery", _outcome(effects={"a": 2})), _row("effectonce", _outcome())])))
    assert lines[0].split() == ["celery", "effectonce"]
    assert [line.split("  ") for line in lines[1:]] == [
        ["A process dies"],
        ["", "child-killed", "doubled (2x)", "once"],
    ]


def test_json_comes_back_as_it_was_and_names_versions_without_a_date() -> None:
    report = Report.of([_row("effectonce", _outcome())])
    again = Report.from_json(report.to_json())
    assert again.wrong == []
    assert {"celery", "kombu", "effectonce", "python"} <= set(again.versions)


def test_what_is_kept_gives_the_same_table_and_holds_neither_ids_nor_times() -> None:
    report = Report.of([_row("celery", _outcome(effects={"a": 2})), _row("effectonce", _outcome(broken="a\nb"))])
    kept = Report.from_json(report.to_brief_json())
    assert list(table(kept)) == list(table(report))
    assert kept.rows[0]["outcome"] == {"effects": {"a": 2}, "bodies": {"a": 1}, "answers": ["SUCCESS"]}
    assert [set(row) for row in kept.rows] == [{"scenario", "contender", "words", "outcome"}] * 2


def test_a_later_run_replaces_rows_of_an_earlier_one() -> None:
    earlier = Report.of([_row("celery", _outcome()), _row("effectonce", _outcome(effects={}))])
    merged = Report.merged([earlier, Report.of([_row("effectonce", _outcome())])])
    assert [cell(merged.row("child-killed", name)) for name in ("celery", "effectonce")] == ["once", "once"]


def test_the_page_needs_nothing_else_is_well_formed_and_escapes() -> None:
    moments = [
        {"at": 10.0, "what": "sent", "pid": 1, "intent": "a", "message": "m", "text": ""},
        {"at": 11.0, "what": "began", "pid": 2, "intent": "a", "message": "m", "text": ""},
        {"at": 11.5, "what": "acted", "pid": 2, "intent": "a", "message": "m", "text": ""},
        {"at": 12.0, "what": "killed", "pid": 2, "intent": "", "message": "", "text": "<b>"},
    ]
    page = page_of(Report.of([_row("celery", _outcome(), moments=moments), _row("effectonce", _outcome())]))
    reader = _Nesting()
    reader.feed(page)
    assert reader.open == []
    assert "<b>" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "prefers-color-scheme: dark" in page
    assert page.count("<svg") == 1


def test_the_summary_counts_rows_that_are_right_and_leaves_out_what_was_not_tried() -> None:
    rows = [
        _row("celery", _outcome(effects={"a": 2})),
        _row("effectonce", _outcome()),
        {"scenario": "worker-killed-rabbitmq", "contender": "effectonce", "missing": "a RabbitMQ"},
    ]
    report = Report.from_json(Report.of(rows).to_json())
    page = rewritten("before\n<!-- lab: summary -->\nold\n<!-- lab: end -->\nafter\n", report)
    assert page.startswith("before\n<!-- lab: summary -->\n| what is made to happen | plain Celery | effectonce |\n")
    assert "| A process dies (2) | 0 of 1 | 1 of 1 |\n<!-- lab: end -->\nafter\n" in page
    assert rewritten(page, report) == page


def test_a_timeline_has_a_bar_for_each_body_and_a_mark_for_what_happened() -> None:
    moments = [
        {"at": 1.0, "what": "sent", "pid": 1, "intent": "a", "message": "m", "text": ""},
        {"at": 1.0, "what": "began", "pid": 2, "intent": "a", "message": "m", "text": ""},
        {"at": 2.0, "what": "killed", "pid": 2, "intent": "", "message": "", "text": "SIGKILL"},
        {"at": 3.0, "what": "began", "pid": 3, "intent": "a", "message": "m", "text": ""},
        {"at": 4.0, "what": "acted", "pid": 3, "intent": "a", "message": "", "text": ""},
        {"at": 5.0, "what": "ended", "pid": 3, "intent": "a", "message": "m", "text": ""},
    ]
    drawn = timeline(moments, title="one")
    assert [drawn.count(f'class="{kind}"') for kind in ("body dead", "body", "send", "kill", "act")] == [1, 1, 1, 1, 1]
    assert drawn.count('class="lane"') == 3
    assert timeline([], title="none") == ""


class _Nesting(HTMLParser):
    """Which tags are open; a wrong end is an error."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """One that is open and closed."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
