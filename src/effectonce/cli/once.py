"""``celery -A proj once``: look at the ledger of a project and create its tables."""

import json
import time
from collections.abc import Sequence
from typing import Any, Final

import click

from effectonce.app.beat.scheduler import store_of
from effectonce.cli import beats, cards, observations, standings, tables
from effectonce.cli.actions import ACTIONS
from effectonce.cli.cards import project
from effectonce.cli.doctor import doctor
from effectonce.cli.locks import locks
from effectonce.cli.outbox import outbox, relay
from effectonce.cli.plainly import as_json, plain_errors
from effectonce.cli.schema import schema
from effectonce.cli.web import web
from effectonce.domain.claims import Entry, State
from effectonce.errors import EffectNotFound

RECENT: Final = 10_000
"""Ticks that ``beat`` looks at."""


@click.group(name="once", help=__doc__)
@click.pass_context
def once(context: click.Context) -> None:
    """Find the app's EffectOnce; without one there is nothing to command."""
    context.obj = extension_of(context.obj.app)


def extension_of(app: Any) -> Any:
    """The EffectOnce of an app whose tasks are loaded; a usage error where there is none."""
    extension = getattr(app, "effectonce", None)
    if extension is None:
        message = (
            "this app has no EffectOnce. Name the project with `celery -A proj once ...`, and write "
            "`once = EffectOnce(app, ledger=...)` beside its app."
        )
        raise click.UsageError(message)
    app.loader.import_default_modules()
    return extension


once.add_command(doctor)
once.add_command(locks)
once.add_command(relay)
once.add_command(web)
once.add_command(outbox)
once.add_command(schema)


@once.command()
@click.option("--ready", is_flag=True, help="Only probe: exit with 0 when the ledger answers, else with 1.")
@click.option("--observed", is_flag=True, help="What the mode 'observe' has seen: what policies would have done.")
@as_json
@click.pass_obj
@plain_errors
def status(extension: Any, *, ready: bool, observed: bool, as_json: bool) -> None:
    """Say where the ledger is, whether it answers, and how many entries stand in which state."""
    if observed:
        click.echo(observations.told(extension, in_json=as_json))
        return
    told = [standings.of(store, ready=ready, as_json=as_json) for store in extension.stores or (extension.ledger,)]
    if as_json:
        first, *others = told
        click.echo(json.dumps({**first, "others": others} if others else first))
    elif ready:
        click.echo("ready")
    else:
        click.echo("\n\n".join(map(standings.page, told)))


@once.command("list")
@click.option("--state", type=click.Choice([state.name.lower() for state in State]), help="Only entries in this state.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many at most.")
@as_json
@click.pass_obj
@plain_errors
def list_(extension: Any, *, state: str | None, limit: int, as_json: bool) -> None:
    """List entries, in the order of their digests."""
    wanted = State[state.upper()] if state else None
    entries = [entry for store in extension.stores for entry in store.entries(state=wanted, limit=limit + 1)]
    _print(entries[:limit], as_json=as_json)
    if len(entries) > limit and not as_json:
        click.echo(f"... and more; this shows {limit} (--limit)", err=True)


@once.command()
@click.argument("key")
@as_json
@click.pass_obj
@plain_errors
def show(extension: Any, *, key: str, as_json: bool) -> None:
    """Show the effect KEY: its readable key, or the hex digest of its entry; with its steps, and what to do."""
    entries = extension.entries
    found = entries.find(key)
    if not found:
        raise EffectNotFound(key=key, ledgers=", ".join(store.name for store in extension.stores))
    if as_json:
        click.echo(json.dumps([cards.facts(seen, entries.history(seen)) for seen in found], indent=2))
    else:
        click.echo("\n\n".join(cards.card(seen, project=project(), history=entries.history(seen)) for seen in found))


@once.command()
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many ticks at most.")
@as_json
@click.pass_obj
@plain_errors
def beat(extension: Any, *, limit: int, as_json: bool) -> None:
    """Say which beat leads and since when, and show the next, the last and the missed ticks."""
    schedule = store_of(extension)
    recent, coming = schedule.recent(limit=RECENT), schedule.coming(limit=RECENT)
    told = beats.facts(schedule.seats(), recent, coming, limit=limit, now=time.time())
    click.echo(json.dumps(told, indent=2) if as_json else beats.page(told))


def _print(entries: Sequence[Entry], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([tables.facts(entry) for entry in entries], indent=2))
    elif entries:
        click.echo(tables.table(entries))
    else:
        click.echo("no entries")


for _action in ACTIONS:
    once.add_command(_action)
