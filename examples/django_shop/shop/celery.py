"""The Celery app, as Celery's documentation has it, and one line more."""

import os

from celery import Celery

from effectonce import EffectOnce

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")

app = Celery("shop")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
once = EffectOnce(app)
