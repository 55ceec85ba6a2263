"""``celery -A proj once relay`` and ``once outbox``: send what waits, and look at it."""

import json
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

import click

from effectonce.cli import tables
from effectonce.cli.plainly import as_json, plain_errors
from effectonce.domain.outbox import Depth, Stage
from effectonce.ports import TransactionalStore, is_transactional

_LOOK_EVERY: Final = 0.5


@click.command()
@click.option("--drain", is_flag=True, help="Send all there is, what is parked too, and end.")
@click.option("--timeout", type=click.FloatRange(min=0), help="Seconds after which --drain gives up.")
@click.option("--retry-stuck", is_flag=True, help="First make stuck messages due again.")
@as_json
@click.pass_obj
@plain_errors
def relay(extension: Any, *, drain: bool, timeout: float | None, retry_stuck: bool, as_json: bool) -> None:
    """Send what is in the outbox, until stopped; it needs no election and harms no other relay."""
    ledgers = _ledgers(extension)
    if retry_stuck:
        again = sum(ledger.outbox.unstick() for ledger in ledgers)
        click.echo(f"{again} stuck messages are due again", err=as_json)
    if not drain:
        _run(extension, ledgers)
        return
    drained = [_drained(ledger.outbox, extension.relay(ledger), timeout) for ledger in ledgers]
    left = sum(depth.ready + depth.parked for _, depth in drained)
    stuck = sum(depth.stuck for _, depth in drained)
    sent = sum(sent for sent, _ in drained)
    told = {"sent": sent, "left": left, "stuck": stuck}
    click.echo(json.dumps(told) if as_json else f"{sent} messages sent, {left} left, {stuck} stuck")
    if left or stuck:
        raise SystemExit(1)


def _ledgers(extension: Any) -> list[TransactionalStore]:
    """The ledgers that have an outbox; raises OutboxUnsuitable where none has."""
    found = [ledger for ledger in extension.ledgers if is_transactional(ledger)]
    if not found:
        extension.outbox_store()
    return found


def _run(extension: Any, ledgers: Sequence[TransactionalStore]) -> None:
    woken = threading.Event()
    url = extension.settings.direct_url if len(ledgers) == 1 else None
    deafens = [ledger.outbox.listen(woken.set, url=url) for ledger in ledgers]
    relays = [extension.relay(ledger) for ledger in ledgers]
    try:
        while True:
            if not sum(relay.relay() for relay in relays):
                woken.wait(_LOOK_EVERY)
                woken.clear()
    except KeyboardInterrupt:
        pass
    finally:
        for deafen in deafens:
            if deafen is not None:
                deafen()


def _drained(store: Any, relay: Any, timeout: float | None) -> tuple[int, Depth]:
    """Send until nothing is left but what is stuck; what another process is sending just now is waited for."""
    end = None if timeout is None else time.monotonic() + timeout
    before = store.depth()
    while True:
        taken = relay.relay(parked=True)
        depth: Depth = store.depth()
        left = depth.ready + depth.parked
        if not left or (end is not None and time.monotonic() > end):
            return max(before.ready + before.parked - left, 0), depth
        if not taken:
            time.sleep(_LOOK_EVERY)


@click.command()
@click.option(
    "--stage", type=click.Choice([stage.name.lower() for stage in Stage]), help="Only messages in this stage."
)
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many at most.")
@as_json
@click.pass_obj
@plain_errors
def outbox(extension: Any, *, stage: str | None, limit: int, as_json: bool) -> None:
    """List the messages that wait, those first that are due first. Their arguments are not shown."""
    wanted = Stage[stage.upper()] if stage else None
    found = [each for ledger in _ledgers(extension) for each in ledger.outbox.waiting(stage=wanted, limit=limit)]
    if as_json:
        click.echo(json.dumps([tables.message_facts(each) for each in found], indent=2))
    elif found:
        click.echo(tables.messages(found))
    else:
        click.echo("no messages")
