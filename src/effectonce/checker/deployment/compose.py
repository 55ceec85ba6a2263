"""Docker Compose, Swarm included."""

import re
from typing import Final

from effectonce.checker.deployment.documents import Node
from effectonce.checker.deployment.durations import seconds_of
from effectonce.checker.deployment.places import Broker, Deployment, Fact, Format, Process, broker_kind, eviction_of
from effectonce.checker.source import Source

DEFAULT_GRACE: Final = 10.0
_SHELL: Final = re.compile(r"^(/usr)?(/bin/)?(ba|da|a)?sh\s+-\w*c\s+", re.IGNORECASE)


def read_compose(source: Source, document: Node) -> Deployment | None:
    """What *document* starts, if it is a Compose file."""
    services = document.get("services")
    if services is None or not services.pairs:
        return None
    deployment = Deployment(source=source, format=Format.COMPOSE)
    for name, service in services.entries():
        process = _process(name, service)
        if process is not None:
            deployment.processes.append(process)
        broker = _broker(name, service)
        if broker is not None:
            deployment.brokers.append(broker)
    return deployment


def _process(name: str, service: Node) -> Process | None:
    command = service.get("command")
    entry = service.get("entrypoint")
    given = [each for each in (entry, command) if each is not None]
    text = " ".join(each.words() for each in given)
    if "celery" not in text:
        return None
    node = command if command is not None and "celery" in command.words() else given[0]
    replicas = service.get("deploy", "replicas") or service.get("scale")
    grace = service.get("stop_grace_period")
    mode = service.get("deploy", "mode")
    return Process(
        name=name,
        row=node.row,
        command=_SHELL.sub("", text).strip("'\""),
        replicas=Fact(row=replicas.row, value=replicas.number()) if replicas is not None else None,
        is_scaled=mode is not None and mode.text == "global",
        grace=Fact(row=grace.row, value=seconds_of(grace.words())) if grace is not None else None,
        kind="service",
    )


def _broker(name: str, service: Node) -> Broker | None:
    image = service.get("image")
    kind = broker_kind(image.words()) if image is not None else None
    if kind is None:
        return None
    command = service.get("command")
    text = command.words() if command is not None else ""
    tmpfs = service.get("tmpfs")
    volumes = service.get("volumes")
    is_kept = volumes is not None and bool(volumes.items) and tmpfs is None
    return Broker(name=name, row=service.row, kind=kind, is_kept=is_kept, eviction=eviction_of(text, command))
