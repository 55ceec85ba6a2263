"""The pages that show."""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from effectonce.app.doctor import Severity, examine
from effectonce.app.entries import Seen
from effectonce.app.exporter import text_of
from effectonce.app.overview import TICKS, Overview, overview
from effectonce.app.timeline import actions_for, timeline
from effectonce.domain.claims import Entry, State
from effectonce.domain.outbox import Stage
from effectonce.domain.ticks import TickState
from effectonce.errors import LedgerUnavailable, SchemaMissing
from effectonce.ports import LedgerStore, history_of, is_scheduling, is_transactional, survey_of
from effectonce.ports.history import Happened
from effectonce.ports.surveys import Leaf
from effectonce.web import charts
from effectonce.web.shown import desk_of, page

ROWS: Final = 50
LOOK: Final = 5_000
"""Entries that one search looks at before it asks whether to go on."""

_WAIT: Final = 0.7


def overview_page(request: Request) -> HTMLResponse:
    """How things stand; its inner part is asked for again every few seconds."""
    once = desk_of(request).once
    part = request.headers.get("hx-request") == "true"
    template = "overview_part.html" if part else "overview.html"
    try:
        seen = overview(once, minutes=charts.MINUTES)
        recent = _recent(once, limit=12)
    except LedgerUnavailable as error:
        return page(request, template, status=200 if part else 503, seen=None, error=error)
    minute = int(time.time() // 60)
    return page(
        request,
        template,
        seen=seen,
        verdict=_verdict(seen),
        recent=recent,
        shown=[
            ("Effects a minute", charts.effects(seen.tallies, until=minute)),
            ("Duplicates stopped, by cause", charts.duplicates(seen.tallies, until=minute)),
        ],
        error=None,
    )


def _verdict(seen: Overview) -> list[tuple[str, int]]:
    """What is wrong, the worst first."""
    return [(trouble.value, number) for trouble, number in seen.trouble.items() if number]


def _recent(once: Any, *, limit: int) -> Sequence[Happened]:
    found: list[Happened] = []
    for history in filter(None, map(history_of, _ledgers(once))):
        with suppress(SchemaMissing):
            found += history.recent(limit=limit)
    return sorted(found, key=lambda each: -each.at)[:limit]


def _ledgers(once: Any) -> Sequence[LedgerStore]:
    """All ledgers; an app whose tasks need none has its leases."""
    return once.ledgers or (once.leases,)


def _chosen(request: Request) -> tuple[LedgerStore, Sequence[str]]:
    """The ledger that is looked at, and the names of all, where there are several."""
    ledgers, said = _ledgers(desk_of(request).once), request.query_params.get("ledger", "")
    number = int(said) if said.isdigit() and int(said) < len(ledgers) else 0
    return ledgers[number], [ledger.name for ledger in ledgers] if len(ledgers) > 1 else []


def entries_page(request: Request) -> HTMLResponse:
    """Entries by words and state, a page at a time."""
    asked = request.query_params
    words, name = asked.get("q", "").strip(), asked.get("state", "")
    state = State[name.upper()] if name.upper() in State.__members__ else None
    after = _digest(asked.get("after", ""))
    ledger, ledgers = _chosen(request)
    leaf = _leaf(ledger, words, state, after)
    return page(
        request,
        "entries.html",
        leaf=leaf,
        words=words,
        state=name if state else "",
        states=[each.name.lower() for each in State],
        rows=ROWS,
        ledgers=ledgers,
        number=asked.get("ledger", "0"),
    )


def _leaf(ledger: LedgerStore, words: str, state: State | None, after: bytes | None) -> Leaf:
    digest = _digest(words)
    if digest is not None:
        entry = ledger.read(digest)
        return Leaf(found=[] if entry is None else [entry], looked=1, after=None)
    survey = survey_of(ledger)
    if survey is not None:
        return survey.search(words, state=state, limit=ROWS, look=LOOK, after=after)
    entries: Sequence[Entry] = ledger.entries(state=state, limit=LOOK, after=after)
    found = [entry for entry in entries if words in entry.key][:ROWS]
    return Leaf(found=found, looked=len(entries), after=found[-1].digest if len(found) == ROWS else None)


def _digest(said: str) -> bytes | None:
    try:
        found = bytes.fromhex(said)
    except ValueError:
        return None
    return found if len(found) == 16 else None  # noqa: PLR2004 - bytes of a digest


def seen_by(request: Request) -> Seen | None:
    """The effect that the address names; by digest, since a key may name several."""
    found = desk_of(request).once.entries.find(request.path_params["digest"])
    return found[0] if found else None


def entry_page(request: Request) -> HTMLResponse:
    """One effect with its timeline. Its result is shown when that is asked for, and never by itself."""
    seen = seen_by(request)
    if seen is None:
        return not_found(request)
    asks = "result" in request.query_params
    return entry_answer(request, seen, result=_result(seen.entry) if asks else None)


def entry_answer(
    request: Request, seen: Seen, *, result: str | None = None, status: int = 200, **told: Any
) -> HTMLResponse:
    """The page of one effect; *told*: what an action has to say."""
    history = desk_of(request).once.entries.history(seen)
    return page(
        request,
        "entry.html",
        status=status,
        **{"done": None, "refused": None, **told},
        seen=seen,
        entry=seen.entry,
        state=seen.entry.state.name.lower(),
        moments=timeline(seen, history),
        differ=sorted({name for each in history for name in each.facts.get("differ", ())}),
        actions=actions_for(seen.entry.state),
        result=result,
        held=[_message(each) for each in seen.waiting],
    )


def _message(message: Any) -> str:
    options = message["options"]
    args = options.get("argsrepr") or repr(tuple(message["args"]))
    return f"{message['task']} {args} {options.get('kwargsrepr') or repr(message['kwargs'])}"


def _result(entry: Entry) -> str:
    if entry.result is None:
        return "None" if entry.result_kept else "not kept"
    return entry.result.partition(b"\n")[2].decode("utf-8", "backslashreplace")


def outbox_page(request: Request) -> HTMLResponse:
    """Messages that wait; their arguments are not shown."""
    (ledger, ledgers), name = _chosen(request), request.query_params.get("stage", "")
    stage = Stage[name.upper()] if name.upper() in Stage.__members__ else None
    found = ledger.outbox.waiting(stage=stage, limit=ROWS) if is_transactional(ledger) else []
    depth = ledger.outbox.depth() if is_transactional(ledger) else None
    told: dict[str, Any] = {
        "stage": name if stage else "",
        "stages": [each.name.lower() for each in Stage],
        "ledgers": ledgers,
    }
    number = request.query_params.get("ledger", "0")
    return page(request, "outbox.html", found=found, depth=depth, number=number, **told)


def ticks_page(request: Request) -> HTMLResponse:
    """Who leads, and what was sent and missed."""
    leases = desk_of(request).once.leases
    seats, recent = [], []
    if is_scheduling(leases):
        seats = list(leases.schedule.seats())
        recent = [row for row in leases.schedule.recent(limit=TICKS) if row.state is not TickState.SEEN]
    return page(request, "ticks.html", seats=seats, recent=recent[:ROWS])


def doctor_page(request: Request) -> HTMLResponse:
    """What can duplicate or lose work here. Workers are asked, so the findings come a moment after the page."""
    if request.headers.get("hx-request") != "true" and "now" not in request.query_params:
        return page(request, "doctor.html", found=None)
    found = examine(desk_of(request).once, wait=_WAIT)
    template = "doctor_part.html" if request.headers.get("hx-request") == "true" else "doctor.html"
    return page(request, template, found=found, severities=Severity)


def metrics_page(request: Request) -> Response:
    """Figures for Prometheus, where its library is installed."""
    try:
        return PlainTextResponse(text_of(desk_of(request).once), media_type="text/plain; version=0.0.4")
    except ImportError:
        return PlainTextResponse("install effectonce[metrics]\n", 404)


def not_found(request: Request, _error: Any = None) -> HTMLResponse:
    """There is no such page, or no such effect."""
    return page(request, "missing.html", status=404)
