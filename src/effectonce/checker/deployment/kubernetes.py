"""Kubernetes: Deployments and their kin, autoscalers, Redis and RabbitMQ that run beside them."""

import re
from collections.abc import Iterator
from typing import Final

from effectonce.checker.deployment.documents import Node
from effectonce.checker.deployment.places import Broker, Deployment, Fact, Format, Process, broker_kind, eviction_of
from effectonce.checker.source import Source

DEFAULT_GRACE: Final = 30.0
_RUNNING: Final = {"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Pod", "Rollout"}
_SCALING: Final = {"HorizontalPodAutoscaler", "ScaledObject"}
_SHELL: Final = re.compile(r"^(/usr)?(/bin/)?(ba|da|a)?sh\s+-\w*c\s+", re.IGNORECASE)


def read_kubernetes(source: Source, documents: list[Node]) -> Deployment | None:
    """What *documents* start, if they are objects of Kubernetes."""
    objects = [
        each for each in _objects(documents) if each.get("kind") is not None and each.get("apiVersion") is not None
    ]
    if not objects:
        return None
    deployment = Deployment(source=source, format=Format.KUBERNETES)
    for each in objects:
        kind = (each.get("kind") or each).text or ""
        if kind in _SCALING:
            target = each.get("spec", "scaleTargetRef", "name")
            if target is not None:
                deployment.scaled.add(target.words())
        elif kind in _RUNNING:
            _running(each, kind, deployment)
    return deployment


def _objects(documents: list[Node]) -> Iterator[Node]:
    for each in documents:
        items = each.get("items")
        if items is not None and items.items:
            yield from items.items
        else:
            yield each


def _running(each: Node, kind: str, deployment: Deployment) -> None:
    name = each.get("metadata", "name")
    spec = each.get("spec") if kind == "Pod" else each.get("spec", "template", "spec")
    containers = spec.get("containers") if spec is not None else None
    if spec is None or containers is None:
        return
    for container in containers.items:
        process = _process(name.words() if name is not None else "", each, kind, spec=spec, container=container)
        if process is not None:
            deployment.processes.append(process)
        broker = _broker(name.words() if name is not None else "", each, spec, container)
        if broker is not None:
            deployment.brokers.append(broker)


def _process(name: str, each: Node, kind: str, *, spec: Node, container: Node) -> Process | None:
    given = [node for node in (container.get("command"), container.get("args")) if node is not None]
    text = " ".join(node.words() for node in given)
    if "celery" not in text:
        return None
    replicas = each.get("spec", "replicas")
    grace = spec.get("terminationGracePeriodSeconds")
    strategy = each.get("spec", "strategy", "type")
    return Process(
        name=name,
        row=next((node.row for node in given if "celery" in node.words()), given[0].row),
        command=_SHELL.sub("", text).strip("'\""),
        replicas=Fact(row=replicas.row, value=replicas.number()) if replicas is not None else None,
        is_scaled=kind == "DaemonSet",
        grace=Fact(row=grace.row, value=grace.number()) if grace is not None else None,
        strategy=Fact(row=strategy.row, value=strategy.words()) if strategy is not None else None,
        kind=kind,
    )


def _broker(name: str, each: Node, spec: Node, container: Node) -> Broker | None:
    image = container.get("image")
    kind = broker_kind(image.words()) if image is not None else None
    if kind is None:
        return None
    given = [node for node in (container.get("command"), container.get("args")) if node is not None]
    text = " ".join(node.words() for node in given)
    volumes = spec.get("volumes")
    lasting = [volume for volume in (volumes.items if volumes is not None else []) if _lasts(volume)]
    is_kept = each.get("spec", "volumeClaimTemplates") is not None or bool(lasting)
    return Broker(
        name=name,
        row=container.row,
        kind=kind,
        is_kept=is_kept,
        eviction=eviction_of(text, given[0] if given else None),
    )


def _lasts(volume: Node) -> bool:
    return not any(key in {"emptyDir", "configMap", "secret", "downwardAPI"} for key, _ in volume.entries())
