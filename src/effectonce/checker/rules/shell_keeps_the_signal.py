"""EO705: the shell gets the signal to stop, and the worker does not."""

import re
from collections.abc import Iterator
from typing import Final

from effectonce.checker.deployment.places import Format
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey

_ENTRY: Final = re.compile(r"entry|start|run|docker|worker|celery|launch|command", re.IGNORECASE)
_DETACHED: Final = re.compile(r"(?<!&)&\s*$|--detach|-D\b|\bmulti\b|nohup")


def check(survey: Survey) -> Iterator[Found]:
    """Look for scripts that start a worker as their child."""
    for deployment, process in survey.processes:
        if deployment.format is not Format.SHELL or process.verb != "worker" or deployment.is_for_development:
            continue
        if not _ENTRY.search(deployment.path.name) or "exec " in process.command or _DETACHED.search(process.command):
            continue
        yield deployment.found(
            process.row,
            "the shell stays in front of the worker and does not pass SIGTERM on: the worker is killed in the middle "
            "of its tasks; start it with exec",
        )


RULE = Rule(
    code="EO705",
    name="shell-keeps-the-signal",
    severity=Severity.ADVICE,
    family=Family.DEPLOYMENT,
    summary="A script starts the worker without exec",
    check=check,
)
