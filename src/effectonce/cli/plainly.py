"""How every command of ``once`` ends and prints."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import click

from effectonce.errors import EffectOnceError

as_json: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def plain_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let an error of ours end a command with its own text and code 1, not with a traceback."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except EffectOnceError as error:
            raise click.ClickException(str(error)) from error

    return run
