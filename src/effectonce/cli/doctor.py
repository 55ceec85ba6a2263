"""``celery -A proj once doctor``: ask the running system what can duplicate or lose work in it."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import click

from effectonce.app.doctor import CHECKS, Finding, Severity, examine
from effectonce.app.doctor.patient import WAIT
from effectonce.cli.plainly import as_json, plain_errors

_NEVER: Final = "never"
_COLOURS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_CODES: Final = sorted(check.code for check in CHECKS)


@click.command()
@click.option(
    "--fail-on",
    type=click.Choice([*(severity.name.lower() for severity in reversed(Severity)), _NEVER]),
    default="error",
    show_default=True,
    help="Exit with 1 when there is a finding of this severity or a worse one.",
)
@click.option("--only", type=click.Choice(_CODES), multiple=True, metavar="CODE", help="Only this check; repeatable.")
@click.option(
    "--wait", type=click.FloatRange(min=0), default=WAIT, show_default=True, help="Seconds to wait for workers."
)
@as_json
@click.pass_obj
@plain_errors
def doctor(extension: Any, *, fail_on: str, only: Sequence[str], wait: float, as_json: bool) -> None:
    """Ask broker, ledger and workers what can duplicate or lose work here. Nothing is changed."""
    found = examine(extension, wait=wait, only=only)
    click.echo(json.dumps([finding.as_json() for finding in found], indent=2) if as_json else page(found))
    if fail_on != _NEVER and any(finding.severity >= Severity[fail_on.upper()] for finding in found):
        sys.exit(1)


def page(found: Sequence[Finding]) -> str:
    """Findings as text, each with its facts, what to change, and where it is explained."""
    if not found:
        return click.style("nothing found", fg="green") + f": {len(CHECKS)} checks were asked"
    counts = Counter(finding.severity for finding in found)
    told = ", ".join(f"{counts[severity]} {severity.name.lower()}" for severity in sorted(counts, reverse=True))
    return "\n\n".join([*(_card(finding) for finding in found), told])


def _card(finding: Finding) -> str:
    name = click.style(finding.severity.name.lower(), fg=_COLOURS[finding.severity], bold=True)
    facts = ", ".join(f"{key}={_shown(value)}" for key, value in finding.facts.items())
    lines = [
        f"{name} {finding.code}: {finding.title}",
        f"  found:  {facts}",
        f"  change: {finding.setting}",
        f"  page:   {finding.page}",
    ]
    return "\n".join(lines)


def _shown(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
