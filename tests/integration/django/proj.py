"""The Celery app of the project, as Django projects have it."""

import os

from celery import Celery

from effectonce import EffectOnce

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.integration.django.settings")
app = Celery("proj")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
once = EffectOnce(app)
