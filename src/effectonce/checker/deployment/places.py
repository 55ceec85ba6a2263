"""The facts of a deployment, of whatever format it is."""

import re
import shlex
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from effectonce.checker.deployment.documents import Node
from effectonce.checker.findings import Found, Span
from effectonce.checker.source import Source

_WITH_VALUE = {"-A", "--app", "-b", "--broker", "--config", "--workdir", "--result-backend", "--loader"}
_DEVELOPMENT = re.compile(r"(?:^|(?<=[._-]))(dev|devel|development|local|tests?|testing|ci|e2e|examples?)(?=[._-]|$)")


class Format(StrEnum):
    """What kind of file a deployment is."""

    COMPOSE = "compose"
    KUBERNETES = "kubernetes"
    PROCFILE = "procfile"
    SYSTEMD = "systemd"
    SUPERVISOR = "supervisor"
    DOCKERFILE = "dockerfile"
    SHELL = "shell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A value with the row where it stands."""

    row: int
    value: object


@dataclass(frozen=True, kw_only=True)
class Process:
    """One process of Celery: *name* is the service's, *replicas* how many run (None: not said)."""

    name: str
    row: int
    command: str
    replicas: Fact | None = None
    is_scaled: bool = False
    grace: Fact | None = None
    strategy: Fact | None = None
    kind: str = ""
    is_shell: bool = False

    @cached_property
    def words(self) -> list[str]:
        """The words of the command line."""
        try:
            return shlex.split(self.command, comments=False)
        except ValueError:
            return self.command.split()

    @cached_property
    def verb(self) -> str:
        """What Celery is told to be: worker, beat, or something else."""
        return celery_verb(self.words)

    @property
    def embeds_beat(self) -> bool:
        """Tell whether it is a worker with a beat inside."""
        if self.verb != "worker":
            return False
        return any(word == "--beat" or re.fullmatch(r"-[A-Zc]*B[A-Z]*", word) is not None for word in self.words)

    def option(self, *names: str) -> str | None:
        """The value of an option of the command line."""
        for number, word in enumerate(self.words):
            head, _, value = word.partition("=")
            if head in names:
                return value or (self.words[number + 1] if number + 1 < len(self.words) else None)
        return None


@dataclass(frozen=True, kw_only=True)
class Broker:
    """A Redis or a RabbitMQ of the deployment."""

    name: str
    row: int
    kind: str
    is_kept: bool
    eviction: Fact | None = None


@dataclass(kw_only=True)
class Deployment:
    """One file, or one document of it."""

    source: Source
    format: Format
    processes: list[Process] = field(default_factory=list)
    brokers: list[Broker] = field(default_factory=list)
    scaled: set[str] = field(default_factory=set)

    @property
    def path(self) -> Path:
        """The file."""
        return self.source.path

    @property
    def is_for_development(self) -> bool:
        """Tell whether its name says that it is no production deployment."""
        name, folder = self.path.name.lower(), self.path.absolute().parent.name.lower()
        return _DEVELOPMENT.search(name) is not None or _DEVELOPMENT.fullmatch(folder) is not None

    def found(self, row: int, message: str) -> Found:
        """Say *message* of line *row*."""
        return Found(path=self.path, span=Span.of_line(row, self.source.line(row)), message=message)


def broker_kind(image: str) -> str | None:
    """What an image is: redis, rabbitmq, or None for something else."""
    name = image.rpartition("/")[2].partition(":")[0].partition("@")[0]
    kinds = {
        "redis": "redis",
        "redis-stack": "redis",
        "redis-stack-server": "redis",
        "valkey": "redis",
        "rabbitmq": "rabbitmq",
    }
    return kinds.get(name)


def eviction_of(command: str, node: Node | None) -> Fact | None:
    """The policy by which a Redis of this command line throws keys away."""
    match = re.search(r"maxmemory-policy\s+(\S+)", command)
    return Fact(row=node.row, value=match[1]) if match is not None and node is not None else None


def celery_verb(words: list[str]) -> str:
    """The subcommand of a command line of Celery; empty where it is none."""
    seen = False
    before = ""
    for word in words:
        is_value, before = before in _WITH_VALUE, word
        if is_value:
            continue
        if word.rpartition("/")[2] == "celery":
            seen = True
        elif seen and word in {"worker", "beat", "flower", "multi", "inspect", "control", "events", "shell"}:
            return "worker" if word == "multi" else word
    return ""
