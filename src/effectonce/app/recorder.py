"""Between Celery's publish and the outbox: a producer that records a message instead of sending it, and back again.

`Recorder` is kombu's own producer up to the point where it would hand the message to a channel: what is recorded is
what kombu prepared (serialized, compressed, routed), and not what we think it would. `publication` gives the arguments
back with which kombu's producer goes on from that same point.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from kombu.entity import Exchange, Queue, binding
from kombu.messaging import Producer
from kombu.utils import json

from effectonce.domain.outbox import Message

Keep = Callable[[Message], None]


class Recorder(Producer):
    """Takes the place of *producer* for one send, and gives what it would publish to *keep*."""

    def __init__(self, producer: Producer, keep: Keep, *, task: str, order: str | None, due: float | None) -> None:
        super().__init__(  # type: ignore[no-untyped-call]
            None,
            exchange=producer.exchange,
            routing_key=producer.routing_key,
            serializer=producer.serializer,
            compression=producer.compression,
            auto_declare=producer.auto_declare,
        )
        self.__connection__ = producer.connection
        self._keep = keep
        self._task = task
        self._order = order
        self._due = due

    def publish(self, body: Any, **options: Any) -> None:  # type: ignore[override]
        """Prepare as ever; there is nothing to be tried again, since nothing is sent."""
        super().publish(body, **{**options, "retry": False})  # type: ignore[no-untyped-call]

    def _publish(  # type: ignore[override]  # noqa: PLR0917 - kombu's own arguments
        self,
        body: Any,
        priority: int,
        content_type: str,
        content_encoding: str,
        headers: dict[str, Any],
        properties: dict[str, Any],
        routing_key: str,
        _mandatory: bool,  # noqa: FBT001 - kombu's own arguments
        _immediate: bool,  # noqa: FBT001 - kombu's own arguments
        exchange: str,
        declare: Sequence[Any],
        *_: Any,
        **__: Any,
    ) -> None:
        reply_to = properties.get("reply_to")
        if isinstance(reply_to, Queue):
            properties = {**properties, "reply_to": reply_to.name}
        self._keep(
            Message(
                task=self._task,
                task_id=str(headers.get("id") or ""),
                exchange=exchange or "",
                routing_key=routing_key or "",
                content_type=content_type,
                content_encoding=content_encoding,
                body=body.encode() if isinstance(body, str) else body,
                headers=json.dumps(headers),
                properties=json.dumps({**properties, "priority": priority}),
                declares=json.dumps([_described(entity) for entity in declare or ()]),
                due=self._due,
                order=self._order,
            )
        )


def publication(message: Message) -> tuple[Any, ...]:
    """The arguments with which a producer's ``_publish`` goes on."""
    properties = json.loads(message.properties)
    priority = properties.pop("priority")
    return (
        message.body,
        priority,
        message.content_type,
        message.content_encoding,
        json.loads(message.headers),
        properties,
        message.routing_key,
        False,
        False,
        message.exchange,
        entities(message.declares),
    )


@lru_cache(maxsize=256)
def entities(declares: str) -> list[Any]:
    """The queues and exchanges of a message, to be declared where they are not yet."""
    return [_made(dict(described)) for described in json.loads(declares)]


_KINDS: Final = {"queue": Queue, "exchange": Exchange}


def _described(entity: Any) -> dict[str, Any]:
    kind = "queue" if isinstance(entity, Queue) else "exchange"
    said = {name: value for name, value in entity.as_dict().items() if value is not None}
    if isinstance(said.get("exchange"), Exchange):
        said["exchange"] = _described(said["exchange"])
    if said.get("bindings"):
        said["bindings"] = [_described_binding(each) for each in said["bindings"]]
    return {"kind": kind, **said}


def _described_binding(bound: Any) -> dict[str, Any]:
    said = {name: value for name, value in bound.as_dict().items() if value is not None}
    if isinstance(said.get("exchange"), Exchange):
        said["exchange"] = _described(said["exchange"])
    return said


def _made(said: dict[str, Any]) -> Any:
    made = _KINDS[said.pop("kind")]
    if isinstance(said.get("exchange"), dict):
        said["exchange"] = _made(dict(said["exchange"]))
    if said.get("bindings"):
        said["bindings"] = [_made_binding(dict(each)) for each in said["bindings"]]
    return made(**said)


def _made_binding(said: dict[str, Any]) -> Any:
    if isinstance(said.get("exchange"), dict):
        said["exchange"] = _made(dict(said["exchange"]))
    return binding(**said)
