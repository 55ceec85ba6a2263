"""The tables of version 1."""

from typing import ClassVar

from django.db import migrations

from effectonce.contrib.django.tables import operations


class Migration(migrations.Migration):
    """Creates them; those that ``once schema create`` has made stay as they are."""

    initial = True
    dependencies: ClassVar[list[tuple[str, str]]] = []
    operations = operations(1)
