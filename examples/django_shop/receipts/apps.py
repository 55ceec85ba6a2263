"""The app."""

from django.apps import AppConfig


class ReceiptsConfig(AppConfig):
    """Receipts."""

    name = "receipts"
