"""Procfile, systemd, supervisord, Dockerfile and shell scripts: files of lines."""

import re
from collections.abc import Iterator
from typing import Final

from effectonce.checker.deployment.durations import seconds_of
from effectonce.checker.deployment.places import Deployment, Fact, Format, Process
from effectonce.checker.source import Source

_PROCFILE: Final = re.compile(r"^([\w-]+):\s*(.+)$")
_SECTION: Final = re.compile(r"^\[(.+)\]\s*$")
_PAIR: Final = re.compile(r"^\s*([\w-]+)\s*=\s*(.*)$")
_CONTINUED: Final = re.compile(r"\\\s*$")
_COMMAND: Final = re.compile(r"(^|[\s;&|(])(exec\s+)?(?:\S*/)?celery\s.*\b(worker|beat|multi)\b")


def joined(source: Source) -> Iterator[tuple[int, str]]:
    """The lines with what a backslash continues; a line has the number of its first part."""
    start, parts = 0, list[str]()
    for number, line in enumerate(source.lines, 1):
        start = start or number
        parts.append(_CONTINUED.sub("", line))
        if not _CONTINUED.search(line):
            yield start, " ".join(part.strip() if at else part for at, part in enumerate(parts))
            start, parts = 0, []
    if parts:
        yield start, " ".join(parts)


def read_procfile(source: Source) -> Deployment:
    """A line a process."""
    deployment = Deployment(source=source, format=Format.PROCFILE)
    for row, line in joined(source):
        match = _PROCFILE.match(line)
        if match is not None and "celery" in match[2]:
            deployment.processes.append(Process(name=match[1], row=row, command=match[2], kind="process"))
    return deployment


def read_systemd(source: Source) -> Deployment:
    """One unit a file."""
    deployment = Deployment(source=source, format=Format.SYSTEMD)
    facts = {match[1]: (row, match[2]) for row, line in joined(source) if (match := _PAIR.match(line)) is not None}
    start = facts.get("ExecStart")
    if start is not None and "celery" in start[1].lower():
        stop = facts.get("TimeoutStopSec") or facts.get("TimeoutSec")
        deployment.processes.append(
            Process(
                name=source.path.stem,
                row=start[0],
                command=start[1],
                is_scaled=source.path.stem.endswith("@"),
                grace=Fact(row=stop[0], value=seconds_of(stop[1])) if stop is not None else None,
                kind="unit",
            )
        )
    return deployment


def read_supervisor(source: Source) -> Deployment:
    """One program a section."""
    deployment = Deployment(source=source, format=Format.SUPERVISOR)
    for name, facts in _sections(source):
        command = facts.get("command")
        if not name.startswith("program:") or command is None or "celery" not in command[1]:
            continue
        count, wait = facts.get("numprocs"), facts.get("stopwaitsecs")
        deployment.processes.append(
            Process(
                name=name.removeprefix("program:"),
                row=command[0],
                command=command[1],
                replicas=Fact(row=count[0], value=seconds_of(count[1])) if count is not None else None,
                grace=Fact(row=wait[0], value=seconds_of(wait[1])) if wait is not None else None,
                kind="program",
            )
        )
    return deployment


def _sections(source: Source) -> Iterator[tuple[str, dict[str, tuple[int, str]]]]:
    name, facts = "", dict[str, tuple[int, str]]()
    for row, line in joined(source):
        section, pair = _SECTION.match(line), _PAIR.match(line)
        if section is not None:
            yield name, facts
            name, facts = section[1].strip(), {}
        elif pair is not None and not line.lstrip().startswith((";", "#")):
            facts[pair[1]] = (row, pair[2].split(" ;")[0].strip())
    yield name, facts


def read_script(source: Source, *, is_dockerfile: bool) -> Deployment:
    """The lines of a script, or of a Dockerfile's CMD and ENTRYPOINT, that start Celery."""
    deployment = Deployment(source=source, format=Format.DOCKERFILE if is_dockerfile else Format.SHELL)
    for row, line in joined(source):
        text = line.strip()
        if text.startswith("#") or (is_dockerfile and not text.upper().startswith(("CMD", "ENTRYPOINT"))):
            continue
        if is_dockerfile:
            text = re.sub(r"[\[\]\",]+", " ", text.partition(" ")[2])
        if _COMMAND.search(text) is not None:
            name = source.path.name
            deployment.processes.append(Process(name=name, row=row, command=text, kind="line", is_shell=True))
    return deployment
