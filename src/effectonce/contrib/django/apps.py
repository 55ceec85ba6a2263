"""The Django app."""

from typing import Any

from django.apps import AppConfig, apps
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
        post_migrate.connect(_make_permissions, sender=self)


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


def _make_permissions(*, using: str, **_: Any) -> None:
    """Permissions of the admin's pages; the tables themselves are nobody's to change by hand."""
    if not (apps.is_installed("django.contrib.auth") and apps.is_installed("django.contrib.contenttypes")):
        return
    from django.contrib.auth.models import Permission  # noqa: PLC0415 - apps must be loaded first
    from django.contrib.contenttypes.models import ContentType  # noqa: PLC0415 - apps must be loaded first

    tables = connections[using].introspection.table_names()
    if not {Permission._meta.db_table, ContentType._meta.db_table} <= set(tables):  # noqa: SLF001 - Django's own way
        return
    kind, _made = ContentType.objects.using(using).get_or_create(app_label="effectonce", model="entries")
    for code, name in (("view_entries", "Can view effects"), ("change_entries", "Can settle and rerun effects")):
        Permission.objects.using(using).get_or_create(codename=code, content_type=kind, defaults={"name": name})
