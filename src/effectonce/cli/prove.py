"""``effectonce prove``: what the pytest fixture does, from the shell."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from effectonce.cli.asking import confirm, yes

if TYPE_CHECKING:
    from effectonce.testing.verdict import NotOnce, Proof


class JsonOf(click.ParamType[Any]):
    """JSON of one kind, as *kind* names it."""

    def __init__(self, kind: type, shown: str) -> None:
        self.kind, self.name = kind, shown

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        """Read it; what is no JSON, or another kind, is a bad parameter."""
        if isinstance(value, self.kind):
            return value
        try:
            read = json.loads(value)
        except ValueError as error:
            self.fail(f"it is no JSON: {error}", param, context)
        if not isinstance(read, self.kind):
            self.fail(f"it must be {self.name}", param, context)
        return read


@click.command()
@click.argument("task")
@click.option("-A", "--app", required=True, help="The Celery app, as celery -A names it.")
@click.option("--args", "arguments", type=JsonOf(list, "a JSON list"), default="[]", help="Its arguments: '[42, 100]'.")
@click.option("--kwargs", type=JsonOf(dict, "a JSON object"), default="{}", help="Those by name: '{\"amount\": 100}'.")
@click.option("--database", metavar="URL", help="The database to compare: a URL, or a Django alias.")
@click.option("--ignore", multiple=True, metavar="COLUMN", help="column or table.column that need not be the same.")
@click.option("--html", type=click.Path(dir_okay=False, writable=True, path_type=Path), help="Also write a page there.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@yes
def prove(
    *,
    task: str,
    app: str,
    arguments: list[Any],
    kwargs: dict[str, Any],
    database: str | None,
    ignore: tuple[str, ...],
    html: Path | None,
    as_json: bool,
    yes: bool,
) -> None:
    r"""Prove that TASK takes effect once: kill it at each point, deliver it again, compare.

    TASK is the task's name in the app. It is run many times, in this process: twice cleanly, then once for each point
    at which it touches a database, Redis, a broker, HTTP or a file, killed there, before and after, and delivered
    again; also twice, and twice at the same time. After each run the database is compared with that after one clean
    run, and put back as it was. Calls to the outside are made for real: name a database and services of tests.

    \b
    effectonce prove -A shop shop.charge --args '[42, 100]' --database postgresql+psycopg://localhost/shop_test

    Exit code: 0 if it takes effect once, 1 if not, or if it fails when nothing is done to it, 2 for a bad option.
    """
    from effectonce.testing.page import page_of  # noqa: PLC0415 - --help need not load Celery
    from effectonce.testing.verdict import NotOnce  # noqa: PLC0415

    proven = _task_of(app, task)
    compared = _database_of(database)
    where = f"on {_shown(database)}" if database else "and compares no database"
    question = f"prove runs {task} many times {where}; what it calls outside is called for real. Go on?"
    confirm(question, said_yes=yes, can_look=False)
    with _progress(quiet=as_json) as progress:
        found = _proof(proven, arguments, kwargs, database=compared, ignore=ignore, progress=progress)
    if html is not None:
        html.write_text(page_of(found), encoding="utf-8")
    click.echo(json.dumps(_told(found)) if as_json else str(found))
    sys.exit(1 if isinstance(found, NotOnce) else 0)


def _proof(task: Any, arguments: list[Any], kwargs: dict[str, Any], **options: Any) -> "Proof | NotOnce":
    from effectonce.testing.delivery import Call  # noqa: PLC0415
    from effectonce.testing.sweep import Sweep  # noqa: PLC0415
    from effectonce.testing.verdict import NotOnce  # noqa: PLC0415

    try:
        return Sweep(Call(task, arguments, kwargs), **options).prove()
    except NotOnce as fault:
        return fault
    except Exception as error:
        message = f"{task.name} fails when nothing is done to it: {type(error).__name__}: {error}"
        raise click.ClickException(message) from error


def _database_of(given: str | None) -> Any:
    from effectonce.testing.databases import database_of  # noqa: PLC0415

    try:
        return None if given is None else database_of(given)
    except (ImportError, TypeError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint="--database") from error


def _task_of(named: str, task: str) -> Any:
    from celery.app.utils import find_app  # noqa: PLC0415 - loads Celery

    try:
        app = find_app(named)
        app.loader.import_default_modules()
        app.finalize()
    except (ImportError, AttributeError) as error:
        message = f"-A {named}: there is no such app ({error})"
        raise click.UsageError(message) from error
    if task in app.tasks:
        return app.tasks[task]
    near = get_close_matches(task, [name for name in app.tasks if not name.startswith("celery.")], n=1, cutoff=0.4)
    message = f"the app has no task {task!r}" + (f"; did you mean {near[0]!r}?" if near else "")
    raise click.BadParameter(message, param_hint="TASK")


def _shown(given: str) -> str:
    """The database as it may be printed: without a password."""
    if "://" not in given:
        return f"the Django database {given}"
    parts = urlsplit(given)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _told(found: "Proof | NotOnce") -> dict[str, Any]:
    """The same as plain JSON values."""
    findings = [{"fault": each.fault, "differences": list(each.differences)} for each in getattr(found, "findings", ())]
    return {
        "task": found.task,
        "once": not findings,
        "points": list(found.points),
        "trials": getattr(found, "trials", None),
        "findings": findings,
        "left_out": list(found.left_out),
        "notes": list(found.notes),
    }


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Any]:
    """Say on a terminal which trial is going on; a pipe gets the report alone."""
    if quiet or not sys.stderr.isatty():
        yield lambda _done, _all: None
        return
    yield lambda done, all_: click.echo(f"\r  trial {done} of {all_}", nl=False, err=True)
    click.echo("\r" + " " * 40 + "\r", nl=False, err=True)
