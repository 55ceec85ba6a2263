"""System checks: what cannot work, told by ``manage.py check`` before a worker runs.

===================  ==========================================================================
``effectonce.E001``  a setting cannot be used
``effectonce.E002``  the ledger cannot be opened: no such alias, or a database that cannot hold one
``effectonce.E003``  a `Transactional` task, and autocommit is off for the ledger's alias
``effectonce.W004``  the ledger's tables are missing or too old (only with ``--database``)
===================  ==========================================================================
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004 - Django's own name

from effectonce.app.extension import EffectOnce
from effectonce.app.installed import installed, tasks_in_transactions
from effectonce.contrib.django.host import DjangoHost
from effectonce.errors import LedgerUnavailable, SchemaMissing, SettingsInvalid
from effectonce.stores.sql.hosted import HostedLedger


def register_all() -> None:
    """Register them."""
    register(check_settings, Tags.compatibility)
    register(check_tables, Tags.database)


def check_settings(app_configs: Any, **_: Any) -> list[CheckMessage]:  # noqa: ARG001 - Django's own form
    """Look at the settings of every guarded Celery app; connects to nothing."""
    return [message for once in installed() for message in _of_settings(once)]


def check_tables(
    app_configs: Any,  # noqa: ARG001 - Django's own form
    databases: Sequence[str] | None = None,
    **_: Any,
) -> list[CheckMessage]:
    """Look whether the tables are there, in the databases that are named."""
    named = [(ledger, host) for ledger, host in _ledgers(installed()) if host.alias in (databases or ())]
    return [message for ledger, host in named for message in _of_tables(ledger, host)]


def _of_settings(once: EffectOnce) -> Iterator[CheckMessage]:
    try:
        _ = once.settings
    except SettingsInvalid as error:
        yield from (Error(fault, obj=once.app.main, id="effectonce.E001") for fault in error.faults)
        return
    try:
        _ = once.stores
    except SettingsInvalid as error:
        yield from (Error(fault, obj=once.app.main, id="effectonce.E002") for fault in error.faults)
        return
    yield from _of_autocommit(once)


def _of_autocommit(once: EffectOnce) -> Iterator[CheckMessage]:
    ledger, tasks = once.ledger, tasks_in_transactions(once)
    reason = ledger.host.unsuitable() if isinstance(ledger, HostedLedger) else None
    if tasks and reason is not None:
        yield Error(
            f"{reason}; these tasks cannot run: {', '.join(tasks)}",
            hint="set AUTOCOMMIT to True for the alias, or keep the ledger in another one",
            obj=once.app.main,
            id="effectonce.E003",
        )


def _ledgers(found: Iterable[EffectOnce]) -> Iterator[tuple[HostedLedger, DjangoHost]]:
    for once in found:
        try:
            stores = once.stores
        except SettingsInvalid:
            continue  # check_settings says so
        for store in stores:
            if isinstance(store, HostedLedger) and isinstance(store.host, DjangoHost):
                yield store, store.host


def _of_tables(ledger: HostedLedger, host: DjangoHost) -> Iterator[CheckMessage]:
    try:
        ledger.ping()
    except SchemaMissing as error:
        yield Warning(f"{ledger.name} has no usable tables: {error.reason}", hint=host.hint, id="effectonce.W004")
    except LedgerUnavailable:
        return  # a database that is away is nothing that a check can mend
