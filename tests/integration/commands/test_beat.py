"""``celery -A proj once beat``: who leads, and the next, last and missed ticks, as text and as JSON."""

import json
import secrets
from typing import Any

import pytest

from effectonce.domain.series import SECOND
from effectonce.domain.ticks import Tick, TickClaim, TickState
from tests.integration.commands.conftest import NOON, Desk

GROUP = "beat:shop"


def tick(name: str, seconds: int) -> Tick:
    """The tick of an entry so many seconds after noon."""
    return Tick(group=GROUP, name=name, instant=int(NOON + seconds) * SECOND)


@pytest.fixture
def led(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A leader that has sent, missed, skipped and not yet marked something."""
    schedule = desk.ledger.schedule
    monkeypatch.setattr(schedule, "_clock", lambda: NOON)
    term = schedule.win(GROUP, holder=secrets.token_bytes(16), who="here:7", length=30)
    assert term is not None
    claims = [
        TickClaim(tick=tick("new", -5), state=TickState.SEEN, following=tick("new", 55).instant),
        TickClaim(tick=tick("report", 0), state=TickState.CLAIMED, following=tick("report", 10).instant),
        TickClaim(tick=tick("report", 10), state=TickState.CLAIMED, missed=3, following=tick("report", 20).instant),
        TickClaim(tick=tick("mail", 5), state=TickState.SKIPPED, missed=2, following=tick("mail", 15).instant),
    ]
    schedule.claim_ticks(term, claims)
    schedule.mark_ticks([tick("report", 0)])
    return desk


def told(desk: Desk, *words: str) -> Any:
    shown = desk.type("beat", "--json", *words)
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.output)


def test_who_leads_since_when_and_for_how_long(led: Desk) -> None:
    (term,) = told(led)["terms"]
    assert (term["term"], term["leader"]) == (GROUP, "here:7")
    assert term["since"].startswith("2027-01-15T08:00:00")
    assert term["left"] == 30
    assert term["fence"] > 0


def test_what_comes_next_by_its_instant(led: Desk) -> None:
    coming = [(row["entry"], row["instant"][11:19]) for row in told(led)["next"]]
    assert coming == [("mail", "08:00:15"), ("report", "08:00:20"), ("new", "08:00:55")]


def test_the_last_ticks_and_how_far_they_came(led: Desk) -> None:
    last = [(row["entry"], row["state"], row["missed_before"]) for row in told(led)["last"]]
    assert last == [("report", "claimed", 3), ("mail", "skipped", 2), ("report", "sent", 0)]
    assert all(row["task_id"] == tick(row["entry"], 0).task_id for row in told(led)["last"][2:])


def test_the_missed_ones_say_how_many(led: Desk) -> None:
    assert {row["entry"]: row["missed_before"] for row in told(led)["missed"]} == {"report": 3, "mail": 2}


def test_a_limit_counts_for_each_list(led: Desk) -> None:
    found = told(led, "--limit", "1")
    assert [len(found[part]) for part in ("next", "last", "missed")] == [1, 1, 1]


def test_people_read_lines(led: Desk) -> None:
    shown = led.type("beat")
    assert shown.exit_code == 0
    head, *_ = shown.output.splitlines()
    assert head.startswith(f"{GROUP}: here:7 leads since 2027-01-15T08:00:00+00:00, for 30.0 s more unless it renews")
    assert "2027-01-15T08:00:20+00:00  report" in shown.output
    assert "report  claimed, 3 passed over before it" in shown.output


def test_where_nobody_leads_it_says_so_and_since_when(led: Desk) -> None:
    seat = led.ledger.schedule._seats[GROUP]
    led.ledger.schedule.resign(seat.term)
    assert told(led)["terms"][0]["leader"] is None
    assert "nobody leads" in led.type("beat").output


def test_a_ledger_that_no_beat_has_used_says_what_to_start(desk: Desk) -> None:
    assert told(desk) == {"terms": [], "next": [], "last": [], "missed": []}
    assert "celery -A proj beat -S once" in desk.type("beat").output


def test_an_entry_that_is_gone_does_not_come_next(led: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a leader what is long overdue is of an entry that there is no more; without one it is what waits."""
    monkeypatch.setattr("time.time", lambda: NOON + 78)
    assert [row["entry"] for row in told(led)["next"]] == ["report", "new"]
    seat = led.ledger.schedule._seats[GROUP]
    led.ledger.schedule.resign(seat.term)
    assert [row["entry"] for row in told(led)["next"]] == ["mail", "report", "new"]
