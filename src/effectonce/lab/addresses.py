"""The addresses that a demo may be given, checked before anything is started."""

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from effectonce.lab import charges

REDIS: Final = ("redis", "rediss")
_BROKERS: Final = (*REDIS, "amqp", "amqps", "pyamqp")
_LEDGERS: Final = ("sqlite", "postgresql")


class DemoRefused(Exception):
    """The demo cannot run with this *option*; nothing is left behind."""

    def __init__(self, *, option: str, reason: str) -> None:
        super().__init__(option, reason)
        self.option = option
        self.reason = reason

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{self.option}: {self.reason}"


class DemoBroken(Exception):
    """The demo could not go on, or could not clean up."""


def is_redis(url: str) -> bool:
    """Tell whether *url* names a Redis or a Valkey."""
    return urlsplit(url).scheme in REDIS


def check_broker(url: str) -> str:
    """Return *url*; raises DemoRefused for a broker that loses the message of a killed worker."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise DemoRefused(option="--broker", reason=f"it is no URL: {error}") from error
    if parts.scheme not in _BROKERS:
        given = f"{parts.scheme}://" if parts.scheme else repr(url)
        reason = f"{given} is none of redis://, rediss://, amqp://, amqps://; others lose messages when workers die"
        raise DemoRefused(option="--broker", reason=reason)
    return url


def check_ledger(url: str) -> str:
    """Return *url*, a file in it made absolute; raises DemoRefused for what the guarded task cannot use."""
    scheme = urlsplit(url).scheme.partition("+")[0]
    if scheme not in _LEDGERS:
        given = f"{scheme}://" if scheme else repr(url)
        reason = f"the guarded task needs sqlite:///FILE or postgresql+psycopg://, not {given}"
        raise DemoRefused(option="--ledger", reason=reason)
    try:
        kind = charges.backend(url)
    except ValueError as error:
        raise DemoRefused(option="--ledger", reason=str(error)) from error
    return _new_file(url) if kind == "sqlite" else url


def _new_file(url: str) -> str:
    name = charges.file_of(url)
    if not name or name == ":memory:":
        raise DemoRefused(
            option="--ledger", reason="workers cannot see a database in memory; name a file: sqlite:///demo.db"
        )
    path = Path(name).absolute()
    if path.exists():
        raise DemoRefused(
            option="--ledger", reason=f"{path} exists; name a new file, it will be kept for you to look at"
        )
    if not path.parent.is_dir():
        raise DemoRefused(option="--ledger", reason=f"there is no folder {path.parent}")
    return f"sqlite:///{path}"
