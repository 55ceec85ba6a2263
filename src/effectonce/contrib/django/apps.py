"""The Django app."""

from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate


class EffectOnceConfig(AppConfig):
    """Brings the tables of the ledger, and system checks."""

    name = "effectonce.contrib.django"
    label = "effectonce"
    verbose_name = "effectonce"

    def ready(self) -> None:
        """Register the checks, and what a run without migrations needs."""
        from effectonce.contrib.django import checks  # noqa: PLC0415 - apps must be loaded first

        checks.register_all()
        post_migrate.connect(_note_version, sender=self)


def _note_version(*, using: str, **_: Any) -> None:
    """Create the table that tells the version, where the others were made without migrations."""
    from effectonce.contrib.django.host import DjangoHost  # noqa: PLC0415 - apps must be loaded first
    from effectonce.stores.sql.ddl import META, creating  # noqa: PLC0415 - only where it is needed

    connection = connections[using]
    present = connection.introspection.table_names()
    if "effectonce_entries" not in present or META in present:
        return
    with connection.schema_editor() as editor:
        for statement in creating(DjangoHost(using).drivername, [META]):
            editor.execute(statement, params=None)
