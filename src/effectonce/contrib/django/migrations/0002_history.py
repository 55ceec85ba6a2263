"""The tables of version 2: what was not ordinary."""

from typing import ClassVar

from django.db import migrations

from effectonce.contrib.django.tables import operations


class Migration(migrations.Migration):
    """Creates them; those that ``once schema create`` has made stay as they are."""

    dependencies: ClassVar[list[tuple[str, str]]] = [("effectonce", "0001_initial")]
    operations = operations(2)
