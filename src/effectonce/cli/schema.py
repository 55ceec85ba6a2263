"""``celery -A proj once schema``: make the ledger's tables, take them to this release, look at them."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import click

from effectonce.cli.asking import dry_run
from effectonce.cli.plainly import as_json, plain_errors
from effectonce.ports import LedgerStore, is_transactional

DIFFERS: Final = 1


@click.group()
def schema() -> None:
    """Make the ledger's tables, take them to this release's version, and check them."""


@schema.command("create")
@as_json
@click.pass_obj
@plain_errors
def create(extension: Any, *, as_json: bool) -> None:
    """Create what is missing; what is there stays."""
    ready = []
    for store in _stores(extension):
        store.create_schema()
        store.ping()
        ready.append(store.name)
    click.echo(
        json.dumps({"ready": ready}) if as_json else "\n".join(f"the ledger at {name} is ready" for name in ready)
    )


@schema.command("upgrade")
@click.option("--post", is_flag=True, help="Also the steps that old code must not see: when all of it is gone.")
@dry_run
@as_json
@click.pass_obj
@plain_errors
def upgrade(extension: Any, *, post: bool, dry_run: bool, as_json: bool) -> None:
    """Make the steps to this release's version that are missing; before its code is deployed."""
    phase = "post" if post else "pre"
    made = {
        store.name: list(_with_alembic(partial(store.missing_steps if dry_run else store.upgrade_schema, phase=phase)))
        for store in _sql_stores(extension)
    }
    would, nothing = ("would make ", "nothing is missing") if dry_run else ("", "nothing was missing")
    lines = [f"{name}: {would + ', '.join(steps) if steps else nothing}" for name, steps in made.items()]
    click.echo(json.dumps(made) if as_json else "\n".join(lines))


@schema.command("check")
@as_json
@click.pass_obj
@plain_errors
def check(extension: Any, *, as_json: bool) -> None:
    """Compare the tables with what this release expects; exit with 1 when they differ."""
    found = {store.name: _with_alembic(store.check_schema) for store in _sql_stores(extension)}
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        for name, differences in found.items():
            click.echo("\n  ".join([f"{name}: {'differs' if differences else 'as expected'}", *differences]))
    if any(found.values()):
        raise SystemExit(DIFFERS)


@schema.command("sql")
@as_json
@click.pass_obj
@plain_errors
def sql(extension: Any, *, as_json: bool) -> None:
    """Print the statements that make the tables; the database is not asked."""
    found = {store.name: list(store.schema_sql()) for store in _sql_stores(extension)}
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for name, statements in found.items():
        click.echo("\n".join([f"-- {name}", *(f"{statement};" for statement in statements)]))


def _stores(extension: Any) -> tuple[LedgerStore, ...]:
    return tuple(extension.stores) or (extension.ledger,)


def _sql_stores(extension: Any) -> list[Any]:
    """Those that have tables; others need none."""
    found = [store for store in _stores(extension) if is_transactional(store)]
    if not found:
        click.echo("no ledger here has tables", err=True)
    return found


def _with_alembic(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except ImportError as error:
        raise click.ClickException(str(error)) from error
