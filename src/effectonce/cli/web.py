"""``celery -A proj once web``: serve the dashboard."""

import os
from typing import Any, Final

import click

from effectonce.cli.plainly import plain_errors

PASSWORD: Final = "EFFECTONCE_WEB_PASSWORD"  # noqa: S105 - the name of a variable
TOKEN: Final = "EFFECTONCE_WEB_TOKEN"  # noqa: S105 - the name of a variable
_LOCAL: Final = frozenset({"127.0.0.1", "::1", "localhost"})


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=5580, show_default=True, help="Port; 0 takes a free one."
)
@click.option("--read-only", is_flag=True, help="Show everything, change nothing.")
@click.pass_obj
@plain_errors
def web(extension: Any, *, host: str, port: int, read_only: bool) -> None:
    """Serve the dashboard. EFFECTONCE_WEB_PASSWORD opens it to people, EFFECTONCE_WEB_TOKEN to programs.

    Without either it listens on this machine only; another address is refused with exit code 2.
    """
    try:
        import uvicorn  # noqa: PLC0415 - an extra

        from effectonce.web import dashboard  # noqa: PLC0415 - an extra
    except ImportError as error:
        message = f"the dashboard needs more: pip install 'effectonce[web]' ({error})"
        raise click.ClickException(message) from error
    password, token = os.environ.get(PASSWORD, ""), os.environ.get(TOKEN, "")
    if host not in _LOCAL and not (password or token):
        message = f"{host} can be reached from elsewhere: set {PASSWORD} (or {TOKEN}), or stay on 127.0.0.1"
        raise click.UsageError(message)
    app = dashboard(extension, password=password, token=token, read_only=read_only)
    shown = f"[{host}]" if ":" in host else host
    click.echo(f"the dashboard is at http://{shown}:{port}/ ; Ctrl-C ends it", err=True)
    uvicorn.run(app, host=host, port=port, log_level="warning", proxy_headers=False, server_header=False)
