"""What a proof puts back and compares besides its database: keys in Redis, files, and ledgers in memory.

None of these is named by the test: each is met when the body first touches it, and what it was until then is kept.
"""

import copy
from importlib import import_module
from pathlib import Path
from typing import Any

from effectonce.testing.libraries import loaded


class Files:
    """The files that bodies write, by path."""

    def __init__(self) -> None:
        self._first: dict[str, bytes | None] = {}

    def meet(self, path: str) -> None:
        """A body is about to touch this file."""
        if path not in self._first:
            self._first[path] = _content(path)

    def put_back(self) -> None:
        """Make all files as they were before the first run."""
        for path, content in self._first.items():
            if content is None:
                Path(path).unlink(missing_ok=True)
            else:
                Path(path).write_bytes(content)

    def state(self) -> dict[str, Any]:
        """Each file's content now, None where there is none."""
        return {f"file {path}": _content(path) for path in self._first}


def _content(path: str) -> bytes | None:
    file = Path(path)
    return file.read_bytes() if file.is_file() else None


class Keys:
    """The keys of each Redis database that bodies use; how long they still live is not compared."""

    def __init__(self) -> None:
        self._first: dict[tuple[Any, ...], tuple[Any, dict[bytes, tuple[bytes, int]]]] = {}

    def meet(self, client: Any) -> None:
        """A body is about to use this client."""
        options = client.connection_pool.connection_kwargs
        place = (options.get("path"), options.get("host"), options.get("port"), options.get("db"))
        if place not in self._first:
            own = _plain_client(client.connection_pool)
            self._first[place] = (own, _dumped(own))

    def put_back(self) -> None:
        """Make all keys as they were before the first run."""
        for client, first in self._first.values():
            for key in set(_dumped(client)) - set(first):
                client.delete(key)
            for key, (value, life) in first.items():
                client.restore(key, max(life, 0), value, replace=True)

    def state(self) -> dict[str, Any]:
        """Each key's value now, but for those of our own ledger."""
        return {
            f"key {key.decode('utf-8', 'backslashreplace')}": value
            for client, _ in self._first.values()
            for key, (value, _) in _dumped(client).items()
            if not key.startswith(b"effectonce:")
        }


def _plain_client(pool: Any) -> Any:
    """A client of the same server that gives bytes as they are."""
    options = {**pool.connection_kwargs, "decode_responses": False}
    plain = type(pool)(connection_class=pool.connection_class, **options)
    return import_module("redis").Redis(connection_pool=plain)


def _dumped(client: Any) -> dict[bytes, tuple[bytes, int]]:
    found = {}
    for name in client.scan_iter(count=1000):
        key = name if isinstance(name, bytes) else name.encode()
        value = client.dump(key)
        if value is not None:
            found[key] = (value, client.pttl(key))
    return found


class Ledgers:
    """Our own ledgers in the memory of this process."""

    def __init__(self) -> None:
        self._first: list[tuple[Any, dict[bytes, Any]]] = []

    def save(self) -> None:
        """Remember what they hold."""
        memory = loaded("effectonce.stores.memory")
        named = dict(memory.MemoryLedger._named) if memory is not None else {}  # noqa: SLF001 - our own
        self._first = [(ledger, copy.deepcopy(ledger._records)) for ledger in named.values()]  # noqa: SLF001

    def put_back(self) -> None:
        """Make them as they were."""
        for ledger, records in self._first:
            ledger._records = copy.deepcopy(records)  # noqa: SLF001 - our own
