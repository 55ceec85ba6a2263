"""The ledger's tables as models; read them, and let the ledger write them."""

from typing import Final

from django.db import models

from effectonce.contrib.django.tables import LABEL, class_name, fields, modelled, options

MODELS: Final = tuple(
    type(
        class_name(table),
        (models.Model,),
        {
            "__module__": __name__,
            "__doc__": f"A row of {table.name}.",
            "Meta": type("Meta", (), {**options(table), "app_label": LABEL}),
            **dict(fields(table)),
        },
    )
    for table in modelled()
)
