"""Settings; what is special stands at the end."""

import os
import sys
from pathlib import Path

BASE_DIR = Path(__file__).parent.parent

SECRET_KEY = "of an example"  # noqa: S105 - it guards nothing
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "shop.urls"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["effectonce.contrib.django", "orders", "receipts"]
MIDDLEWARE = ["effectonce.http.django.IdempotencyMiddleware"]
EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("SHOP_DATABASE", BASE_DIR / "shop.sqlite"),
        "ATOMIC_REQUESTS": True,
        "OPTIONS": {"init_command": "PRAGMA journal_mode=WAL"},
    }
}

CELERY_BROKER_URL = os.environ.get("SHOP_BROKER", "redis://localhost")
CELERY_RESULT_BACKEND = CELERY_BROKER_URL
if "test" in sys.argv:
    CELERY_BROKER_URL, CELERY_RESULT_BACKEND = "memory://", "cache+memory://"
CELERY_EFFECTONCE_LEDGER = "django"
