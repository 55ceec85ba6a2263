"""``effectonce -A proj ...``: the same commands as ``celery -A proj once ...``.

What they are called is written here, so that the program's own help loads nothing of Celery; a test holds it to what
there is.
"""

from collections.abc import Iterable
from typing import Any, Final

import click

COMMANDS: Final = {
    "beat": "Say which beat leads, and show ticks.",
    "doctor": "Ask what can duplicate or lose work here.",
    "list": "List entries.",
    "locks": "List what celery-once and celery-singleton have left.",
    "outbox": "List messages that wait.",
    "prune": "Remove entries whose time is over.",
    "redact": "Take key, arguments and result of a finished effect away.",
    "relay": "Send what is in the outbox.",
    "reopen": "Let a finished effect run once more.",
    "rerun": "Run an effect again that is held.",
    "schema": "Create and check the ledger's tables.",
    "settle": "End an effect that is held.",
    "show": "Show one effect and its timeline.",
    "status": "Say how the ledger stands.",
    "web": "Serve the dashboard.",
}


class Program(click.Group):
    """A group that has the commands of an app too, loaded when one is called."""

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """One of our own, or one on an app."""
        own = super().get_command(context, name)
        if own is not None or name not in _names():
            return own
        from effectonce.cli.once import once  # noqa: PLC0415 - loads Celery

        return once.get_command(context, name)

    def list_commands(self, context: click.Context) -> list[str]:
        """All names, for completion."""
        return sorted({*super().list_commands(context), *_names()})

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        """Two lists: what needs no app, and what does."""
        own = [(name, self.commands[name].get_short_help_str()) for name in sorted(self.commands)]
        for title, rows in (("Commands", own), ("On an app: effectonce -A proj ...", sorted(COMMANDS.items()))):
            with formatter.section(title):
                formatter.write_dl(rows)


def _names() -> Iterable[str]:
    return COMMANDS


def open_app(context: click.Context, _option: click.Parameter, named: str | None) -> None:
    """Find the app that ``-A`` names, and its EffectOnce; a usage error says what is missing."""
    if named is None or context.resilient_parsing:
        return
    from celery.app.utils import find_app  # noqa: PLC0415 - loads Celery

    from effectonce.cli.once import extension_of  # noqa: PLC0415 - loads Celery

    try:
        app: Any = find_app(named)
    except (ImportError, AttributeError) as error:
        message = f"-A {named}: there is no such app ({error})"
        raise click.UsageError(message) from error
    context.obj = extension_of(app)
