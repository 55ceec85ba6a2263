"""The index of what waits for a person."""

from typing import ClassVar

from django.db import migrations

from effectonce.contrib.django.tables import operations


class Migration(migrations.Migration):
    """Creates it; one that ``once schema create`` has made stays as it is."""

    dependencies: ClassVar[list[tuple[str, str]]] = [("effectonce", "0002_history")]
    operations = operations(3)
