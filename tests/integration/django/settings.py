"""Settings of a project that runs in processes of its own; its addresses come from the environment."""

import os
from typing import Any

import pymysql
import sqlalchemy as sa

_URL = sa.make_url(os.environ["PROJECT_DATABASE"])

if _URL.get_backend_name() == "sqlite":
    _DEFAULT: dict[str, Any] = {"ENGINE": "django.db.backends.sqlite3", "NAME": _URL.database}
else:
    _KIND = "mysql" if _URL.get_backend_name() == "mariadb" else "postgresql"
    if _KIND == "mysql":
        pymysql.install_as_MySQLdb()
    _DEFAULT = {
        "ENGINE": f"django.db.backends.{_KIND}",
        "NAME": _URL.database,
        "USER": _URL.username or "",
        "PASSWORD": _URL.password or "",
        "HOST": _URL.host or _URL.query.get("host", ""),
        "PORT": str(_URL.port or ""),
        "CONN_MAX_AGE": None,
    }

DATABASES = {"default": _DEFAULT}
INSTALLED_APPS = ["effectonce.contrib.django", "tests.integration.django.books"]
ROOT_URLCONF = "tests.integration.django.books.urls"
SECRET_KEY = "of a test"
USE_TZ = True
ALLOWED_HOSTS = ["*"]

CELERY_BROKER_URL = os.environ.get("PROJECT_BROKER", "memory://")
CELERY_RESULT_BACKEND = os.environ.get("PROJECT_RESULTS", "cache+memory://")
CELERY_EFFECTONCE_LEDGER = "django"
CELERY_EFFECTONCE_LEASE_SECONDS = 2
CELERY_TASK_DEFAULT_QUEUE = "books"
CELERY_BROKER_TRANSPORT_OPTIONS = (
    {
        "visibility_timeout": 3,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
        "unacked_mutex_expire": 3,
    }
    if CELERY_BROKER_URL.startswith("redis")
    else {}
)
