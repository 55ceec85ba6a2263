"""Sending a message once more: the copy of a delivery that is put off, and the retry that a body asked for.

A copy has the same id, name, nesting, retries, canvas and headers, and no ``expires``: it was accepted, so it may
not expire while it waits (hole H20). It is published *with confirmation* before its delivery is acknowledged:
Celery sets none on RabbitMQ, where the copy and the acknowledgement travel on two connections (hole H18). After a
crash in between there are two messages of one identity, and the ledger lets one of them act.
"""

import inspect
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from kombu.messaging import Producer
from kombu.pools import producers
from kombu.serialization import dumps, loads, prepare_accept_content, registry

from effectonce import crashpoints
from effectonce.app import requests
from effectonce.app.broadcasts import to_one_worker
from effectonce.app.sending import sending_now

_LEAKED: Final = (
    "redelivered",
    "x-delivery-count",
    "x-first-death-queue",
    "x-first-death-reason",
    "x-first-death-exchange",
)


PATIENCE: float = 30.0
"""Seconds to wait for the broker's word that it has a message; then it is taken for away."""


class Confirmed:
    """Producers whose publish returns when the broker has the message, or fails in time; one pool a process."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._pid = 0
        self._connection: Any = None

    @contextmanager
    def acquire(self) -> Iterator[Any]:
        """A producer that confirms.

        After an error its connection is given up: a confirmation that comes late would pass for that of the next
        message.
        """
        with producers[self._conn()].acquire(block=True) as producer:
            try:
                yield producer
            except Exception:
                with suppress(Exception):
                    producer.connection.collect()
                raise

    @property
    def connection_errors(self) -> tuple[type[BaseException], ...]:
        """What a connection that is lost raises."""
        return (OSError, *self._conn().connection_errors)

    def ask(self) -> None:
        """Return if the broker takes a connection now; else raise what it raises."""
        with self._app.connection_for_write(connect_timeout=2) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=2)
            connection.channel().close()

    @property
    def options(self) -> dict[str, Any]:
        """What a publish is given so that it does not wait for ever (RabbitMQ, where kombu knows it)."""
        return {"confirm_timeout": PATIENCE} if _knows_timeout() else {}

    def _conn(self) -> Any:
        if self._pid != os.getpid():
            with self._lock:
                connection = self._app.connection_for_write()
                given, driver = connection.transport_options or {}, connection.transport.driver_type
                if driver == "amqp":
                    connection.transport_options = {**given, "confirm_publish": True}
                elif driver == "redis":
                    connection.transport_options = {**_impatient(), **given}
                self._connection, self._pid = connection, os.getpid()
        return self._connection


def _impatient() -> dict[str, Any]:
    """Options of the Redis transport, whose publish is confirmed by its reply; by itself it waits for ever."""
    return {"socket_timeout": PATIENCE, "socket_connect_timeout": PATIENCE, "socket_keepalive": True}


def _knows_timeout() -> bool:
    return "confirm_timeout" in inspect.signature(Producer.publish).parameters


def put_off(confirmed: Confirmed, task: Any, request: Any, *, delay: float, cause: str = "") -> None:
    """Publish a copy of this delivery that is due in *delay* seconds; returns once the broker has it.

    *cause*: why this delivery came, for people; the copy carries it along.

    Raises what kombu raises when the broker cannot be reached; then no copy may exist, and the delivery must not
    be acknowledged.
    """
    changed: dict[str, Any] = {requests.CAUSE: cause} if cause else {}
    changed[requests.DEFERRALS] = int((request.headers or {}).get(requests.DEFERRALS) or 0) + 1
    crashpoints.crash_point("defer.before")
    _send_again(confirmed, task, request, countdown=delay, changed=changed)
    crashpoints.crash_point("defer.after")


def held_message(task: Any, request: Any) -> bytes:
    """This delivery as bytes that can be sent again: name, arguments and options, serialized as it came."""
    args, kwargs, options = _message(task, request)
    body = {"task": task.name, "args": args, "kwargs": kwargs, "options": options}
    content_type, encoding, payload = dumps(body, serializer=options.get("serializer") or task.app.conf.task_serializer)
    text = payload if isinstance(payload, bytes) else payload.encode("utf-8")
    return f"{content_type};{encoding}\n".encode() + text


def read_held(app: Any, message: bytes) -> dict[str, Any]:
    """What `held_message` wrote: task, args, kwargs, options."""
    head, _, payload = message.partition(b"\n")
    content_type, _, encoding = head.decode().partition(";")
    accept = prepare_accept_content([*app.conf.accept_content, app.conf.task_serializer])
    found: dict[str, Any] = loads(payload, content_type, encoding, accept=accept)
    return found


def send_held(confirmed: Confirmed, app: Any, message: bytes) -> None:
    """Publish a message that was kept with its entry; returns once the broker has it. Raises what kombu raises."""
    found = read_held(app, message)
    options = {name: value for name, value in found["options"].items() if value is not None}
    with confirmed.acquire() as producer:
        options |= confirmed.options
        app.send_task(found["task"], found["args"], found["kwargs"], producer=producer, add_to_parent=False, **options)


def _send_again(confirmed: Confirmed, task: Any, request: Any, *, countdown: float, changed: dict[str, Any]) -> None:
    args, kwargs, options = _message(task, request)
    options["headers"] = {**options.get("headers", {}), **changed}
    options = to_one_worker(task.app, options)
    with sending_now(task.app.effectonce), confirmed.acquire() as producer:
        task.app.send_task(
            task.name,
            args,
            kwargs,
            producer=producer,
            countdown=countdown,
            add_to_parent=False,
            **{**options, **confirmed.options},
        )


def _message(task: Any, request: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Arguments and options that send this delivery again as it came, without what a broker wrote on it."""
    signature = task.signature_from_request(request, retries=request.retries, expires=None)
    options = {name: value for name, value in signature.options.items() if name not in _LEAKED}
    headers = {name: value for name, value in (request.headers or {}).items() if name not in _LEAKED}
    return signature.args, signature.kwargs, {**options, **_unsigned(request), "headers": headers}


def _unsigned(request: Any) -> dict[str, Any]:
    """What Celery's own signature of a request leaves out (celery 5.7): how it is shown, written, packed and stored."""
    told = {name: request.get(name) for name in ("argsrepr", "kwargsrepr", "compression")}
    properties = request.properties or {}
    told["delivery_mode"] = properties.get("delivery_mode")
    told["serializer"] = registry.type_to_name.get(properties.get("content_type"))
    if request.correlation_id != request.id:
        told["correlation_id"] = request.correlation_id
    return {name: value for name, value in told.items() if value is not None}


def kept_back(
    confirmed: Confirmed, send: Callable[..., Any], name: str, message: Any, options: dict[str, Any]
) -> Callable[[], None]:
    """A retry that is published later, with confirmation; the argument order is that of the seam."""

    def publish() -> None:
        crashpoints.crash_point("retry.before_publish")
        with confirmed.acquire() as producer:
            send(producer, name, message, **{**options, **confirmed.options})
        crashpoints.crash_point("retry.after_publish")

    return publish
