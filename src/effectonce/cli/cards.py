"""One effect on a page: what is known of it, and what a person can do about it."""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from effectonce.app.entries import Seen
from effectonce.cli import tables
from effectonce.cli.tables import instant
from effectonce.domain.claims import Entry, State
from effectonce.domain.keys import idempotency_key
from effectonce.domain.steps import Step
from effectonce.ports.history import Happened

_TO_DO: Final[Mapping[State, tuple[str, ...]]] = {
    State.UNKNOWN: ("settle {key} --done --result JSON", "settle {key} --failed MESSAGE", "rerun {key}"),
    State.POISONED: ("settle {key} --done --result JSON", "settle {key} --failed MESSAGE", "rerun {key}"),
    State.COMPLETED: ("reopen {key}", "redact {key}", "list --state completed"),
    State.FAILED: ("reopen {key}", "redact {key}", "list --state failed"),
}
"""The commands to paste; what is claimed or released goes on by itself."""


def card(seen: Seen, *, project: str, history: Sequence[Happened] = ()) -> str:
    """One effect as lines; results stay hidden, only their size is shown."""
    return "\n".join(_lines(seen, project, history))


def facts(seen: Seen, history: Sequence[Happened] = ()) -> dict[str, Any]:
    """One effect as plain JSON values."""
    entry = seen.entry
    return {
        **tables.facts(entry),
        "ledger": seen.store.name,
        "steps": [_step_facts(entry, step) for step in seen.steps],
        "waiting": [_message(message) for message in seen.waiting],
        "history": [happened_facts(each) for each in history],
    }


def project() -> str:
    """The project as the user named it on the command line."""
    words = sys.argv[1:]
    for at, word in enumerate(words):
        if word in {"-A", "--app"} and at + 1 < len(words):
            return shlex.quote(words[at + 1])
        if word.startswith("--app="):
            return shlex.quote(word.removeprefix("--app="))
    return "proj"


def _lines(seen: Seen, project: str, history: Sequence[Happened]) -> Iterator[str]:
    entry = seen.entry
    yield f"effect {entry.key or '(redacted)'}"
    yield _line("state", f"{entry.state.name.lower()} since {instant(entry.since)}{_lease(entry)}")
    yield _line("digest", entry.digest.hex())
    yield _line("ledger", seen.store.name)
    yield _line("last holder", f"attempt {entry.attempt.hex()}, fence {entry.fence}")
    yield _line("message", entry.task_id or "none: a direct call")
    yield _line("attempts", f"{entry.attempts}, of which died {entry.deaths}; retries {entry.retries}")
    yield _line("arguments", _arguments(seen))
    yield _line("result", _result(entry))
    yield from _steps(seen)
    yield from _waiting(seen)
    yield from _history(history)
    yield from _to_do(seen, project)


def _line(name: str, value: str) -> str:
    return f"  {name:<12} {value}"


def _lease(entry: Entry) -> str:
    if entry.state is not State.CLAIMED:
        return ""
    if entry.lease_left > 0:
        return f"; the lease has {entry.lease_left:.0f} s left"
    return f"; the lease ended {-entry.lease_left:.0f} s ago"


def _arguments(seen: Seen) -> str:
    if seen.waiting:
        return _message(seen.waiting[0])["arguments"]
    if seen.entry.fingerprint:
        return f"not kept; their fingerprint is {seen.entry.fingerprint[:12].hex()}"
    return "not kept, and not compared"


def _result(entry: Entry) -> str:
    if entry.state not in {State.COMPLETED, State.FAILED}:
        return "none yet"
    if not entry.result_kept:
        return "not kept here"
    return "None" if entry.result is None else f"{len(entry.result)} bytes"


def _steps(seen: Seen) -> Iterator[str]:
    for at, step in enumerate(seen.steps):
        yield _line("" if at else "steps", f"{step.name}: {_times(step)}")
        yield _line("", f"    idempotency key {idempotency_key(seen.entry.digest, step.name)}")
    if not seen.steps:
        yield _line("steps", "none recorded")


def _times(step: Step) -> str:
    began = f"began {instant(step.began)}"
    if step.ended is None:
        return f"{began}, NO END IS KNOWN"
    how = ", skipped: nobody saw its end" if step.skipped else ""
    return f"{began}, ended {instant(step.ended)}{how}"


def _waiting(seen: Seen) -> Iterator[str]:
    if not seen.waiting:
        yield _line("waits", "no message")
    for at, message in enumerate(seen.waiting):
        told = _message(message)
        yield _line("" if at else "waits", f"{told['task']} {told['id']} {told['arguments']}{told['goes_on']}")


def _history(history: Sequence[Happened]) -> Iterator[str]:
    for at, each in enumerate(history):
        cause = f" ({each.cause})" if each.cause else ""
        times = f" x{each.times}" if each.times > 1 else ""
        facts = "".join(f" {name}={value}" for name, value in each.facts.items() if value != "")
        yield _line("" if at else "history", f"{instant(each.at)} {each.name}{cause}{times}{facts}")


def happened_facts(each: Happened) -> dict[str, Any]:
    """One row of the history as plain JSON values."""
    return {
        "at": instant(each.at),
        "event": each.name,
        "cause": each.cause or None,
        "times": each.times,
        "task_id": each.task_id,
        "attempt": each.attempt,
        "fence": each.fence,
        **{f"fact_{name}": value for name, value in each.facts.items()},
    }


def _to_do(seen: Seen, project: str) -> Iterator[str]:
    commands = _TO_DO.get(seen.entry.state, ())
    yield _line("to do", "" if commands else "nothing: it goes on by itself").rstrip()
    for command in commands:
        yield f"    celery -A {project} once {command.format(key=seen.entry.digest.hex())}"


def _step_facts(entry: Entry, step: Step) -> dict[str, Any]:
    return {
        "name": step.name,
        "began": instant(step.began),
        "ended": None if step.ended is None else instant(step.ended),
        "skipped": step.skipped,
        "idempotency_key": str(idempotency_key(entry.digest, step.name)),
        "attempt": step.attempt.hex(),
        "fence": step.fence,
        "result_bytes": None if step.result is None else len(step.result),
    }


def _message(message: Mapping[str, Any]) -> dict[str, str]:
    """A message as far as it is shown; its arguments as Celery shows them, which a task may have masked."""
    options = message["options"]
    args = options.get("argsrepr") or repr(tuple(message["args"]))
    kwargs = options.get("kwargsrepr") or repr(message["kwargs"])
    goes_on = [name for name in ("link", "link_error", "chain", "chord") if options.get(name)]
    return {
        "task": str(message["task"]),
        "id": str(options.get("task_id") or "without id"),
        "arguments": f"{args} {kwargs}",
        "goes_on": f", then {', '.join(goes_on)}" if goes_on else "",
    }
