"""``celery -A proj once relay`` and ``once outbox``: send what waits, and look at it."""

import json
import threading
import time
from typing import Any, Final

import click

from effectonce.cli import tables
from effectonce.cli.plainly import as_json, plain_errors
from effectonce.domain.outbox import Depth, Stage

_LOOK_EVERY: Final = 0.5


@click.command()
@click.option("--drain", is_flag=True, help="Send all there is, what is parked too, and end.")
@click.option("--timeout", type=click.FloatRange(min=0), help="Seconds after which --drain gives up.")
@click.option("--retry-stuck", is_flag=True, help="First make stuck messages due again.")
@click.pass_obj
@plain_errors
def relay(extension: Any, *, drain: bool, timeout: float | None, retry_stuck: bool) -> None:
    """Send what is in the outbox, until stopped; it needs no election and harms no other relay."""
    store = extension.outbox_store()
    if retry_stuck:
        click.echo(f"{store.unstick()} stuck messages are due again")
    relay = extension.relay()
    if not drain:
        _run(extension, relay)
        return
    sent, depth = _drained(store, relay, timeout)
    click.echo(f"{sent} messages sent, {depth.ready + depth.parked} left, {depth.stuck} stuck")
    if depth.ready or depth.parked or depth.stuck:
        raise SystemExit(1)


def _run(extension: Any, relay: Any) -> None:
    woken = threading.Event()
    deafen = extension.outbox_store().listen(woken.set, url=extension.settings.direct_url)
    try:
        while True:
            if not relay.relay():
                woken.wait(_LOOK_EVERY)
                woken.clear()
    except KeyboardInterrupt:
        pass
    finally:
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
    found = extension.outbox_store().waiting(stage=wanted, limit=limit)
    if as_json:
        click.echo(json.dumps([tables.message_facts(each) for each in found], indent=2))
    elif found:
        click.echo(tables.messages(found))
    else:
        click.echo("no messages")
