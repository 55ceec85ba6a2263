"""The app."""

from django.apps import AppConfig


class BooksConfig(AppConfig):
    """Its models are created without migrations."""

    name = "tests.integration.django.books"
    label = "books"
    default_auto_field = "django.db.models.BigAutoField"
