"""Opening the ledger that a setting names."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlsplit

import effectonce.stores  # noqa: F401 - notes which process loads the application
from effectonce.errors import SettingsInvalid
from effectonce.ports import LedgerStore

_FRAMEWORKS: Final[Mapping[str, str]] = {"django": "effectonce.contrib.django.ledger"}
"""Who opens a ledger in a framework's database: plug-ins above this layer, loaded by name when they are asked for."""

_REDIS: Final = frozenset({"redis", "rediss", "unix", "valkey", "valkeys"})


def open_ledger(
    source: Any,
    *,
    setting: str = "ledger",
    schema: str | None,
    create_schema: bool | None,
    context: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> LedgerStore:
    """Make a store of a URL, an Engine, a sessionmaker or a scoped_session; connects to nothing yet.

    Raises SettingsInvalid, without the URL's password, when nothing can be made of it.
    """
    scheme = urlsplit(source).scheme.partition("+")[0] if isinstance(source, str) else ""
    if scheme == "memory":
        from effectonce.stores.memory import MemoryLedger  # noqa: PLC0415 - only the store in use is loaded

        return MemoryLedger.named(urlsplit(source).netloc or "default")
    if scheme in _REDIS:
        from effectonce.stores.redis.ledger import RedisLedger  # noqa: PLC0415 - only the store in use is loaded

        return RedisLedger.open(source)
    framework = _FRAMEWORKS.get(scheme or source) if isinstance(source, str) else None
    if framework is not None:
        told = {"schema": schema, "create_schema": create_schema}
        return _opened(setting, lambda: import_module(framework).open_ledger(source, **told))
    return _open_sql(source, setting, schema=schema, create_schema=create_schema, context=context)


def _open_sql(source: Any, setting: str, **options: Any) -> LedgerStore:
    from effectonce.stores.sql.ledger import SqlLedger  # noqa: PLC0415 - only the store in use is loaded

    return _opened(setting, lambda: SqlLedger.open(source, **options))


def _opened(setting: str, opening: Callable[[], LedgerStore]) -> LedgerStore:
    try:
        return opening()
    except (ImportError, TypeError, ValueError) as error:
        fault = f"effectonce_{setting} cannot be opened: {error}"
        raise SettingsInvalid(faults=[fault]) from error
