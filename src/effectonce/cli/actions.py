"""The commands that change something: settle, rerun, reopen, redact, prune."""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from effectonce.app.entries import Changed
from effectonce.cli.asking import confirm, dry_run, tell, yes
from effectonce.cli.plainly import as_json, plain_errors
from effectonce.domain.steps import Done, Failed


def _about_one_effect(change: Callable[..., None]) -> click.Command:
    """A command about the effect KEY, which can be tried with ``--dry-run`` and asks unless told ``--yes``."""
    command = click.pass_obj(plain_errors(change))
    for option in (as_json, yes, dry_run):
        command = option(command)
    return click.command()(click.argument("key")(command))


@_about_one_effect
@click.option("--done", is_flag=True, help="It took place.")
@click.option("--result", help="With --done: its result, as JSON.")
@click.option("--failed", metavar="MESSAGE", help="It failed for good; MESSAGE says how.")
def settle(extension: Any, *, key: str, done: bool, result: str | None, failed: str | None, **how: bool) -> None:
    """End the effect KEY, which is held, as done or as failed; what waits for it goes on with that."""
    if done == (failed is not None):
        message = "say either --done, with --result JSON if it has one, or --failed MESSAGE"
        raise click.UsageError(message)
    if result is not None and not done:
        message = "--result goes with --done"
        raise click.UsageError(message)
    outcome = Done(_read(result)) if done else Failed(failed or "")
    word = "done" if done else "failed"
    _change(extension, key, f"settle as {word}", lambda: extension.entries.settle(key, outcome), **how)


@_about_one_effect
def rerun(extension: Any, *, key: str, **how: bool) -> None:
    """Run the effect KEY again, which is held; steps that ended are not run again."""
    _change(extension, key, "run again", lambda: extension.entries.rerun(key), **how)


@_about_one_effect
def reopen(extension: Any, *, key: str, **how: bool) -> None:
    """Let the effect KEY, which has finished, run once more at its next call."""
    _change(extension, key, "reopen", lambda: extension.entries.reopen(key), **how)


@_about_one_effect
def redact(extension: Any, *, key: str, **how: bool) -> None:
    """Take key, arguments and result of the effect KEY away, which has finished; no late duplicate runs."""
    _change(extension, key, "redact", lambda: extension.entries.redact(key), **how)


@click.command()
@dry_run
@as_json
@click.pass_obj
@plain_errors
def prune(extension: Any, *, dry_run: bool, as_json: bool) -> None:
    """Remove entries whose time is over, in small batches; workers do it by themselves."""
    shows = sys.stderr.isatty()
    word = "would be removed" if dry_run else "removed"

    def progress(looked: int, removed: int, share: float) -> None:
        if shows:
            click.echo(f"\r{share:4.0%}: {looked} looked at, {removed} {word}", nl=False, err=True)
            if share == 1:
                click.echo("", err=True)

    go = extension.entries.over if dry_run else extension.entries.prune
    removed: Mapping[str, int | None] = go(progress)
    lines = [
        f"{ledger}: " + ("another process is pruning" if number is None else f"{number} entries {word}")
        for ledger, number in removed.items()
    ]
    click.echo(json.dumps(removed) if as_json else "\n".join(lines))


ACTIONS: Final = (settle, rerun, reopen, redact, prune)


def _change(
    extension: Any,
    key: str,
    action: str,
    change: Callable[[], Changed],
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    seen = extension.entries.one(key)
    shown = seen.entry.key or seen.entry.digest.hex()
    told = {"key": shown, "digest": seen.entry.digest.hex(), "action": action, "was": seen.entry.state.name.lower()}
    if dry_run:
        waiting = len(seen.waiting)
        line = f"would {action}: {shown} ({told['was']}), and send {waiting} message(s) that wait"
        tell({**told, "dry_run": True, "waiting": waiting}, line, in_json=as_json)
        return
    confirm(f"{action.capitalize()}: {shown} ({told['was']})?", said_yes=yes)
    changed = change()
    told |= {"state": changed.state.name.lower()}
    line = f"{shown} is {told['state']}; {changed.sent} message(s) sent again{_hint(changed, action)}"
    tell({**told, "sent": changed.sent}, line, in_json=as_json)


def _hint(changed: Changed, action: str) -> str:
    if action in {"run again", "reopen"} and not changed.sent:
        return "; call the task again, its key is free"
    return ""


def _read(result: str | None) -> Any:
    if result is None:
        return None
    try:
        return json.loads(result)
    except ValueError as error:
        message = f"--result is not JSON: {error}"
        raise click.UsageError(message) from error
