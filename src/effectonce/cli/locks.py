"""``celery -A proj once locks``: what celery-once and celery-singleton still hold."""

import json
from typing import Any

import click

from effectonce.cli.plainly import as_json, plain_errors
from effectonce.compat.old_locks import keys_of_ones_own, old_locks, places_not_asked, places_of


@click.command()
@click.option("--redis", "url", help="The Redis that has them, instead of those that the settings name.")
@click.option("--pattern", "patterns", multiple=True, help="Keys of your own, as Redis matches them; may be repeated.")
@as_json
@click.pass_obj
@plain_errors
def locks(extension: Any, *, url: str | None, patterns: tuple[str, ...], as_json: bool) -> None:
    """List the locks that celery-once and celery-singleton have left; nothing is changed."""
    app = extension.app
    found = old_locks(app, places_of(app, url=url, patterns=patterns))
    if as_json:
        click.echo(json.dumps([lock.facts() for lock in found]))
    for lock in found if not as_json else ():
        ends = "no end" if lock.ends_in is None else f"{lock.ends_in:.0f} s"
        click.echo("  ".join(each for each in (lock.library, lock.key, ends, lock.task, lock.task_id) if each))
    if not found:
        click.echo("no old locks", err=True)
    for backend in places_not_asked(app):
        click.echo(f"not asked: {backend} keeps its locks elsewhere", err=True)
    for task in keys_of_ones_own(app):
        click.echo(f"{task} names its locks by itself: give --pattern to see those of the old library", err=True)
