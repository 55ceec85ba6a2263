"""The project; its Celery app is loaded with it, so that shared tasks find it."""

from shop.celery import app as celery_app

__all__ = ["celery_app"]
