"""Which files are deployments, and which reader takes them."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from effectonce.checker.deployment.compose import read_compose
from effectonce.checker.deployment.documents import YamlBroken, YamlMissing, documents
from effectonce.checker.deployment.kubernetes import read_kubernetes
from effectonce.checker.deployment.places import Deployment
from effectonce.checker.deployment.units import read_procfile, read_script, read_supervisor, read_systemd
from effectonce.checker.findings import Found, Span
from effectonce.checker.source import Broken, Source, read

_YAML: Final = {".yml", ".yaml"}
_SCRIPTS: Final = {".sh", ".bash"}
_SUPERVISOR: Final = {".conf", ".ini"}
_CONCERNS: Final = ("celery", "redis", "rabbitmq", "valkey")
_IS_COMPOSE: Final = re.compile(r"^services:", re.MULTILINE)
_IS_KUBERNETES: Final = re.compile(r"^\s*apiVersion:", re.MULTILINE)


def may_be_deployment(path: Path) -> bool:
    """Tell by the name whether *path* may say what runs where."""
    return path.suffix in _YAML | _SCRIPTS | _SUPERVISOR | {".service"} or path.name.startswith(
        ("Procfile", "Dockerfile", "supervisord")
    )


def read_deployments(paths: Iterable[Path]) -> tuple[list[Deployment], list[Found]]:
    """Read what is a deployment among *paths*; what cannot be read is found."""
    deployments: list[Deployment] = []
    unread: list[Found] = []
    for path in paths:
        source = read(path)
        if isinstance(source, Broken):
            unread.append(_unread(path, source.row, "", source.reason))
        elif any(word in source.text for word in _CONCERNS):
            try:
                deployments.extend(each for each in [_read(source)] if each is not None)
            except YamlMissing:
                unread.append(_unread(path, 1, source.line(1), "needs PyYAML to be read: install effectonce[check]"))
            except YamlBroken as error:
                unread.append(_unread(path, error.row, source.line(error.row), f"is not YAML: {error.reason}"))
    return deployments, unread


def _unread(path: Path, row: int, line: str, reason: str) -> Found:
    return Found(path=path, span=Span.of_line(row, line), message=f"the file {reason}")


def _read(source: Source) -> Deployment | None:
    path = source.path
    if path.suffix in _YAML:
        return _read_yaml(source)
    if path.name.startswith("Procfile"):
        return read_procfile(source)
    if path.suffix == ".service":
        return read_systemd(source)
    if path.suffix in _SUPERVISOR or path.name.startswith("supervisord"):
        return read_supervisor(source)
    return read_script(source, is_dockerfile=path.name.startswith("Dockerfile"))


def _read_yaml(source: Source) -> Deployment | None:
    """Read a Compose file or objects of Kubernetes; other YAML is none of ours, also if it is broken."""
    if _IS_COMPOSE.search(source.text):
        whole = documents(source.text)
        return read_compose(source, whole[0]) if whole else None
    if _IS_KUBERNETES.search(source.text):
        return read_kubernetes(source, documents(source.text))
    return None
