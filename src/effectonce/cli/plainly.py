"""How every command of ``once`` ends and prints."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final

import click

from effectonce.errors import EffectNotFound, EffectOnceError, EntryRefused

NOT_FOUND: Final = 3
"""Exit code: there is no such effect."""

REFUSED: Final = 4
"""Exit code: the effect's state does not allow it, or the key means several; nothing was changed."""

as_json: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


class _NotFound(click.ClickException):
    exit_code = NOT_FOUND


class _Refused(click.ClickException):
    exit_code = REFUSED


_ENDINGS: Final[Mapping[type[EffectOnceError], type[click.ClickException]]] = {
    EffectNotFound: _NotFound,
    EntryRefused: _Refused,
}


def _need_app(context: click.Context) -> None:
    """``effectonce status`` without ``-A`` names no app."""
    if context.obj is None:
        message = f"name the app: effectonce -A proj {context.info_name}"
        raise click.UsageError(message)


def plain_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let an error of ours end a command with its own text and exit code, not with a traceback."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        _need_app(click.get_current_context())
        try:
            return command(*args, **kwargs)
        except EffectOnceError as error:
            raise _ENDINGS.get(type(error), click.ClickException)(str(error)) from error

    return run
