"""Questions about the broker: what it gives to somebody else, and what it drops."""

import time
from collections.abc import Iterator
from typing import Any, Final

from effectonce.app.brokers import why_not_renewed
from effectonce.app.doctor.findings import Check, Facts, Severity
from effectonce.app.doctor.patient import Patient

_CONSUMER_TIMEOUT: Final = 1800.0
"""Seconds: RabbitMQ's own default; AMQP has no way to ask for the server's."""

_DELIVERY_LIMIT: Final = 20
"""RabbitMQ 4's own default for quorum queues."""


def _renews(patient: Patient) -> bool:
    return patient.settings.renew_visibility and why_not_renewed(patient.app) is None


def _visibility(patient: Patient) -> Iterator[Facts]:
    timeout = patient.visibility
    if timeout is None or _renews(patient):
        return
    for task in patient.durable:
        limit = patient.limit_of(task)
        if limit is None or limit >= timeout:
            yield {"task": task.name, "visibility_timeout": timeout, "time_limit": limit or "none", "renewed": False}


def _etas(patient: Patient) -> Iterator[Facts]:
    timeout = patient.visibility
    if timeout is None or _renews(patient):
        return
    for each in patient.scheduled:
        if each["in"] > timeout:
            yield {"task": each["task"], "id": each["id"], "due_in": round(each["in"]), "visibility_timeout": timeout}


def _unacked(patient: Patient) -> Iterator[Facts]:
    """Redis: kombu notes when each message was taken; what is older than the timeout has nobody who renews it."""
    if patient.transport != "redis" or patient.visibility is None:
        return
    with patient.channel() as channel:
        client, index = getattr(channel, "client", None), getattr(channel, "unacked_index_key", "")
        if client is None:
            return
        until = time.time() - patient.visibility
        number = client.zcount(index, "-inf", until)
        if number:
            ((_, oldest),) = client.zrange(index, 0, 0, withscores=True)
            yield {"messages": number, "oldest_seconds": round(time.time() - oldest), "timeout": patient.visibility}


def _consumer_timeout(patient: Patient) -> Iterator[Facts]:
    if patient.transport != "amqp":
        return
    told = [_argument(queue, "x-consumer-timeout") for queue in patient.queues.values()]
    known = [value / 1000 for value in told if value]
    timeout = min(known) if known else _CONSUMER_TIMEOUT
    for task in patient.durable:
        limit = patient.limit_of(task)
        if limit is None or limit >= timeout:
            where = "queue argument" if known else "the server's default"
            yield {"task": task.name, "consumer_timeout": timeout, "from": where, "time_limit": limit or "none"}


def _delivery_limit(patient: Patient) -> Iterator[Facts]:
    if patient.transport != "amqp":
        return
    wanted = patient.settings.max_takeovers
    default_kind = patient.app.conf.get("task_default_queue_type", "classic")
    for name, queue in patient.queues.items():
        kind = _argument(queue, "x-queue-type") or default_kind
        limit = _argument(queue, "x-delivery-limit") or _DELIVERY_LIMIT
        if kind == "quorum" and 0 < limit <= wanted and not _argument(queue, "x-dead-letter-exchange"):
            yield {"queue": name, "delivery_limit": limit, "max_takeovers": wanted, "dead_letters": "dropped"}


def _argument(queue: Any, name: str) -> Any:
    return (queue.queue_arguments or {}).get(name)


CHECKS: Final = (
    Check(
        code="visibility-shorter-than-task",
        severity=Severity.ERROR,
        title="The broker gives a message to another worker while the first one still runs it",
        setting="effectonce_renew_visibility = True, or a task_time_limit below the visibility timeout",
        look=_visibility,
    ),
    Check(
        code="eta-beyond-visibility",
        severity=Severity.ERROR,
        title="A message waits in a worker for an eta that is later than the visibility timeout",
        setting="effectonce_renew_visibility = True, or effectonce_far_eta = 'park'",
        look=_etas,
    ),
    Check(
        code="unacked-without-holder",
        severity=Severity.WARNING,
        title="Messages were taken and nobody holds them any more",
        setting="run a worker with effectonce_renew_visibility = True: it sweeps them back into their queues",
        look=_unacked,
    ),
    Check(
        code="beyond-consumer-timeout",
        severity=Severity.WARNING,
        title="RabbitMQ closes the channel of a worker that holds a message for so long",
        setting="a task_time_limit below consumer_timeout, or a larger consumer_timeout on the server or the queue",
        look=_consumer_timeout,
    ),
    Check(
        code="delivery-limit-too-low",
        severity=Severity.ERROR,
        title="A quorum queue drops a message before its effect would be held for a person",
        setting="x-delivery-limit above effectonce_max_takeovers, or a dead letter exchange",
        look=_delivery_limit,
    ),
)
