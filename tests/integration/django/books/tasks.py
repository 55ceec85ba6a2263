"""Tasks of a reusable app: they know no Celery app and no EffectOnce."""

import os
import time
from pathlib import Path

from celery import shared_task
from django.db import close_old_connections, connection, transaction

from effectonce import Leased, Transactional, effect
from tests.integration.django.books.models import Charge


@shared_task(once=Transactional("charge:{order}"))
def charge(order: int) -> str:
    """Charge an order, slowly if a test has shut the gate."""
    note("bodies", f"charge {order}")
    Charge.objects.create(order=order)
    transaction.on_commit(lambda: note("hooks", f"charge {order}"))
    mail.delay(order)
    wait_at_gate(order)
    return f"charged {order}"


@shared_task(once=Leased("mail:{order}"))
def mail(order: int) -> bool:
    """Tell somebody; says whether it was inside a transaction."""
    note("outside", f"mail {order} {effect.idempotency_key('mail')}")
    return bool(connection.in_atomic_block)


@shared_task(once=Transactional("closes:{order}"))
def closes(order: int) -> None:
    """What many tasks do by habit."""
    Charge.objects.create(order=order)
    close_old_connections()


def note(book: str, line: str) -> None:
    """Write a line in a book apart from every transaction."""
    folder = os.environ.get("PROJECT_FOLDER")
    if folder:
        with (Path(folder) / book).open("a") as file:
            file.write(f"{line}\n")


def wait_at_gate(order: int) -> None:
    """Wait until the test opens the gate of this order, if it is shut."""
    folder = Path(os.environ.get("PROJECT_FOLDER", "/nowhere"))
    if (folder / f"shut-{order}").exists():
        (folder / f"at-{order}").touch()
        end = time.monotonic() + 60
        while not (folder / f"open-{order}").exists() and time.monotonic() < end:
            time.sleep(0.01)
