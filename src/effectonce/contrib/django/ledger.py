"""Opening the ledger that ``"django"`` or ``"django://alias"`` names."""

from urllib.parse import urlsplit

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS

from effectonce.contrib.django.host import DjangoHost
from effectonce.ports import LedgerStore
from effectonce.stores.sql.dialects import dialect_of
from effectonce.stores.sql.hosted import HostedLedger


def open_ledger(source: str, *, schema: str | None, create_schema: bool | None) -> LedgerStore:
    """Make a ledger of an alias of ``DATABASES``; connects to nothing.

    Raises ValueError for an alias that is not there or cannot hold a ledger, and where Django is not configured.
    """
    if not settings.configured and not _is_configurable():
        message = "Django has no settings here; set DJANGO_SETTINGS_MODULE beside the Celery app"
        raise ValueError(message)
    if schema is not None:
        message = "effectonce_schema is not for Django: set the search_path in OPTIONS of the alias"
        raise ValueError(message)
    host = DjangoHost(urlsplit(source).netloc or DEFAULT_DB_ALIAS)
    dialect_of(host.drivername.partition("+")[0])
    return HostedLedger(host, create=bool(create_schema))


def _is_configurable() -> bool:
    try:
        return bool(settings.DATABASES is not None)
    except ImportError:
        return False
    except Exception:  # noqa: BLE001 - whatever its settings module does
        return False
