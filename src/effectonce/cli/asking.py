"""How the commands that change something ask, and how they say what they did."""

import json
import sys
from typing import Any

import click

dry_run = click.option("--dry-run", is_flag=True, help="Only say what would be done.")
yes = click.option("--yes", is_flag=True, help="Do not ask.")


def confirm(question: str, *, said_yes: bool, can_look: bool = True) -> None:
    """Ask, unless told not to; one who is not there to answer is told about ``--yes`` (exit code 2)."""
    if said_yes:
        return
    if not sys.stdin.isatty():
        look = ", or look first with --dry-run" if can_look else ""
        message = f"{question} Nobody is there to answer: say --yes{look}."
        raise click.UsageError(message)
    click.confirm(question, abort=True)


def tell(told: dict[str, Any], line: str, *, in_json: bool) -> None:
    """Print what was done."""
    click.echo(json.dumps(told) if in_json else line)
