"""Questions about workers, beats, and what waits."""

from collections.abc import Iterator
from typing import Any, Final

from effectonce.app.doctor.findings import Check, Facts, Severity
from effectonce.app.doctor.patient import Patient
from effectonce.app.overview import LATE, overview
from effectonce.domain.causes import Cause

_HOUR: Final = 60


def _early_ack(patient: Patient) -> Iterator[Facts]:
    for task in patient.durable:
        wrong = {
            name: getattr(task, name)
            for name in ("acks_late", "reject_on_worker_lost")
            if not getattr(task, name) and not getattr(task, "ignored", False)
        }
        if wrong:
            yield {"task": task.name, **wrong}


def _differ(patient: Patient) -> Iterator[Facts]:
    said: dict[str, dict[str, list[str]]] = {}
    for name, reply in patient.workers.items():
        for setting, value in reply.get("setup", {}).items():
            said.setdefault(setting, {}).setdefault(str(value), []).append(name)
    for setting, values in said.items():
        if len(values) > 1:
            yield {"setting": setting, **{value: sorted(names) for value, names in values.items()}}


def _unguarded(patient: Patient) -> Iterator[Facts]:
    for name, reply in patient.workers.items():
        if not reply.get("guarded", True):
            yield {"worker": name}


def _no_workers(patient: Patient) -> Iterator[Facts]:
    if not patient.workers:
        yield {"waited_seconds": patient.waited}


def _beats(patient: Patient) -> Iterator[Facts]:
    """A second beat is seen by what it does: the same tick comes twice."""
    tallies = overview(patient.once, minutes=_HOUR).tallies
    number = sum(each.number for each in tallies if each.cause == Cause.BEAT.value)
    if number:
        yield {"duplicates_in_the_last_hour": number}


def _outbox(patient: Patient) -> Iterator[Facts]:
    depth = overview(patient.once, minutes=1).outbox
    if depth.stuck:
        yield {"stuck": depth.stuck}
    if depth.oldest > LATE:
        yield {"ready": depth.ready, "oldest_seconds": round(depth.oldest)}


def _held(patient: Patient) -> Iterator[Facts]:
    seen = overview(patient.once, minutes=1)
    if seen.unknown or seen.poisoned:
        yield {"unknown": seen.unknown, "poisoned": seen.poisoned}


def _late(patient: Patient) -> Iterator[Facts]:
    seen: Any = overview(patient.once, minutes=1)
    for row in seen.overdue[:20]:
        yield {"entry": row.tick.name, "schedule": row.tick.group, "last": row.tick.text}


CHECKS: Final = (
    Check(
        code="early-ack",
        severity=Severity.ERROR,
        title="A guarded task is acknowledged before it is done: a worker that dies loses it",
        setting="acks_late=True and reject_on_worker_lost=True of the task (its default when nothing is said)",
        look=_early_ack,
    ),
    Check(
        code="workers-differ",
        severity=Severity.WARNING,
        title="Workers of one app are set up differently",
        setting="the same version and settings everywhere",
        look=_differ,
    ),
    Check(
        code="worker-unguarded",
        severity=Severity.ERROR,
        title="A worker runs this app without EffectOnce",
        setting="import the module that makes EffectOnce(app, ...) where the worker starts",
        look=_unguarded,
    ),
    Check(
        code="no-worker-answers",
        severity=Severity.INFO,
        title="No worker answered, so their settings, clocks and etas were not looked at",
        setting="start a worker, or allow remote control (worker_enable_remote_control)",
        look=_no_workers,
    ),
    Check(
        code="two-beats",
        severity=Severity.ERROR,
        title="More than one beat sends the same ticks",
        setting="celery -A proj beat -S once for all of them; of plain beats run one",
        look=_beats,
    ),
    Check(
        code="ticks-late",
        severity=Severity.ERROR,
        title="A tick is due and nobody has sent it",
        setting="celery -A proj beat -S once, where it runs",
        look=_late,
    ),
    Check(
        code="outbox-late",
        severity=Severity.ERROR,
        title="Messages of the outbox do not go out",
        setting="effectonce_relay = True in a worker, or celery -A proj once relay; for stuck ones --retry-stuck",
        look=_outbox,
    ),
    Check(
        code="effects-held",
        severity=Severity.ERROR,
        title="Effects wait for a person",
        setting="celery -A proj once list --state unknown (or poisoned), then settle or rerun",
        look=_held,
    ),
)
