"""Questions about the ledger: whether it is there, is quick, and still knows."""

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from kombu.serialization import registry

from effectonce.app.doctor.findings import Check, Facts, Severity
from effectonce.app.doctor.patient import Patient
from effectonce.errors import LedgerUnavailable
from effectonce.ports import LedgerStore, is_transactional, survey_of

_SKEW: Final = 5.0
"""Seconds of difference between clocks that begin to matter."""

_LATE: Final = 60.0
_DEFAULT_PORT: Final = 6379


def _unreachable(patient: Patient) -> Iterator[Facts]:
    for store in patient.once.stores:
        try:
            store.ping()
        except LedgerUnavailable as error:
            yield {"ledger": store.name, "why": error.code}


def _keep(patient: Patient) -> Iterator[Facts]:
    """Rule 16 holds back what was due too long ago, but a duplicate within its horizon must find its entry."""
    for task in patient.durable:
        keep = patient.keep_of(task)
        if keep is None:
            continue
        retries = (task.max_retries or 0) * _longest_delay(task)
        waiting = max((each["in"] for each in patient.scheduled if each["task"] == task.name), default=0.0)
        horizon = (patient.visibility or 0.0) + retries + max(waiting, 0.0)
        if keep < horizon:
            yield {"task": task.name, "keep_seconds": keep, "horizon_seconds": round(horizon)}


def _longest_delay(task: Any) -> float:
    backoff = getattr(task, "retry_backoff", False)
    longest = float(getattr(task, "retry_backoff_max", 600)) if backoff else 0.0
    return max(float(task.default_retry_delay or 0), longest)


def _serializer(patient: Patient) -> Iterator[Facts]:
    conf = patient.app.conf
    name = conf.result_serializer
    accepted = set(conf.result_accept_content or conf.accept_content)
    kind = registry.name_to_type.get(name)
    if kind is None:
        yield {"result_serializer": name, "why": "no such serializer is registered"}
    elif not accepted & {name, kind}:
        yield {"result_serializer": name, "why": "it is not accepted", "accept_content": sorted(accepted)}


def _indices(patient: Patient) -> Iterator[Facts]:
    for store in patient.once.stores:
        survey = survey_of(store)
        for name in survey.missing_indices() if survey is not None else ():
            yield {"ledger": store.name, "missing": name}


def _skew(patient: Patient) -> Iterator[Facts]:
    if patient.skew is None:
        return
    if abs(patient.skew) > _SKEW:
        yield {"where": "this machine", "ahead_of_the_ledger_seconds": round(patient.skew, 1)}
    replies = patient.workers
    for name, reply in replies.items():
        ahead = reply["now"] - patient.asked_workers_at + patient.skew if "now" in reply else 0.0
        if abs(ahead) > _SKEW:
            yield {"where": name, "ahead_of_the_ledger_seconds": round(ahead, 1)}


def _redis_stores(patient: Patient) -> list[LedgerStore]:
    return [store for store in patient.once.stores if hasattr(store, "server_facts")]


def _in_broker(patient: Patient) -> Iterator[Facts]:
    if patient.transport != "redis":
        return
    broker = urlsplit(patient.app.connection_for_read().as_uri())
    for store in _redis_stores(patient):
        theirs = urlsplit(store.name)
        same = (broker.hostname, broker.port or _DEFAULT_PORT) == (theirs.hostname, theirs.port or _DEFAULT_PORT)
        if same:
            yield {"ledger": store.name, "broker": f"{broker.hostname}:{broker.port or _DEFAULT_PORT}{broker.path}"}


def _eviction(patient: Patient) -> Iterator[Facts]:
    for store in _redis_stores(patient):
        told = store.server_facts()  # type: ignore[attr-defined]
        if told.get("maxmemory", 0) and told.get("maxmemory-policy", "noeviction") != "noeviction":
            yield {"ledger": store.name, **told}


def _persistence(patient: Patient) -> Iterator[Facts]:
    for store in _redis_stores(patient):
        told = store.server_facts()  # type: ignore[attr-defined]
        if told.get("appendonly") == "no" and not told.get("save"):
            yield {"ledger": store.name, **told}


def _pooler(patient: Patient) -> Iterator[Facts]:
    for store in patient.once.stores:
        survey = survey_of(store)
        told = survey.pooling() if survey is not None else None
        if told is not None and told.pooled and told.prepares:
            yield {"ledger": store.name, "prepare_threshold": told.threshold}


def _listening(patient: Patient) -> Iterator[Facts]:
    ledger = patient.once.ledger
    survey = survey_of(ledger)
    told = survey.pooling() if survey is not None and is_transactional(ledger) else None
    if told is not None and told.pooled and not patient.settings.direct_url and patient.settings.relay:
        yield {"ledger": ledger.name}


CHECKS: Final = (
    Check(
        code="keep-below-horizon",
        severity=Severity.ERROR,
        title="Entries are forgotten before the last duplicate can have come",
        setting="effectonce_keep_seconds, or keep= of the task, above the horizon",
        look=_keep,
    ),
    Check(
        code="no-result-serializer",
        severity=Severity.ERROR,
        title="Results cannot be stored with an entry, so a duplicate cannot be answered",
        setting="result_serializer, and result_accept_content with it",
        look=_serializer,
    ),
    Check(
        code="missing-index",
        severity=Severity.WARNING,
        title="A table of the ledger lacks an index, and gets slow as it grows",
        setting="celery -A proj once schema upgrade",
        look=_indices,
    ),
    Check(
        code="clock-skew",
        severity=Severity.WARNING,
        title="A clock differs from the ledger's: etas, ticks and what is shown are off by as much",
        setting="NTP on that machine",
        look=_skew,
    ),
    Check(
        code="ledger-in-broker",
        severity=Severity.WARNING,
        title="The ledger lives in the broker's own Redis: one loss takes messages and memory of them",
        setting="effectonce_ledger (or effectonce_leases) at another server",
        look=_in_broker,
    ),
    Check(
        code="ledger-evicts",
        severity=Severity.ERROR,
        title="The ledger's Redis throws entries away when memory is short",
        setting="maxmemory-policy noeviction on that server",
        look=_eviction,
    ),
    Check(
        code="ledger-not-persistent",
        severity=Severity.WARNING,
        title="The ledger's Redis keeps nothing over a restart",
        setting="appendonly yes on that server",
        look=_persistence,
    ),
    Check(
        code="pooler-breaks-prepared-statements",
        severity=Severity.ERROR,
        title="Statements are prepared on sessions that a pooler gives to others",
        setting="connect_args={'prepare_threshold': None} of the engine, or give effectonce_ledger a URL",
        look=_pooler,
    ),
    Check(
        code="pooler-cannot-listen",
        severity=Severity.WARNING,
        title="Relays cannot be woken through a pooler, and look every half second instead",
        setting="effectonce_direct_url, past the pooler",
        look=_listening,
    ),
)

UNREACHABLE: Final = Check(
    code="ledger-unreachable",
    severity=Severity.ERROR,
    title="The ledger does not answer, or its tables are missing",
    setting="effectonce_ledger; celery -A proj once schema create makes the tables",
    look=_unreachable,
)
