"""The locks that celery-once and celery-singleton have left in a Redis: what is still held while a project moves.

Nothing is changed. celery-once 3.0 keeps a lock as ``qo_<task>_<argument>-<value>`` with a token of its own,
celery-singleton 0.3 as ``SINGLETONLOCK_<md5>`` (or under ``singleton_key_prefix``) with the id of the message.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import redis

from effectonce.compat.celery_once import QueueOnce
from effectonce.compat.celery_singleton import Config, Singleton
from effectonce.errors import LedgerUnavailable

ONCE, SINGLETON, OWN = "celery-once", "celery-singleton", "pattern"
_PREFIX: Final = "qo_"
_SHOWN: Final = 200
_SPECIAL: Final = str.maketrans({each: f"\\{each}" for each in "*?[]\\"})


@dataclass(frozen=True, slots=True, kw_only=True)
class OldLock:
    """One lock. *ends_in*: seconds, None without an end. *task_id*: its message's, where the library keeps it."""

    library: str
    key: str
    task: str
    task_id: str
    ends_in: float | None

    def facts(self) -> Mapping[str, Any]:
        """It as plain JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a library keeps its locks, and under which *pattern* of Redis; *library* is `OWN` for one of the user's."""

    library: str
    url: str
    pattern: str


def places_of(app: Any, *, url: str | None = None, patterns: Iterable[str] = ()) -> Iterator[Place]:
    """Where the settings of *app* say that old locks are; *url* goes first, *patterns* are of the user's own keys."""
    settings = (app.conf.get("ONCE") or {}).get("settings", {})
    singleton = Config(app)
    yield Place(library=ONCE, url=url or settings.get("url") or singleton.url, pattern=f"{_PREFIX}*")
    prefix = singleton.key_prefix.translate(_SPECIAL)
    yield Place(library=SINGLETON, url=url or singleton.url, pattern=f"{prefix}*")
    yield from (Place(library=OWN, url=url or singleton.url, pattern=pattern) for pattern in patterns)


def places_not_asked(app: Any) -> list[str]:
    """Backends that the settings name and that are no Redis of these libraries: their locks are not seen here."""
    named = ((app.conf.get("ONCE") or {}).get("backend", ""), app.conf.get("singleton_backend_class") or "")
    return [str(each) for each in named if each and not _is_their_redis(str(each))]


def _is_their_redis(path: str) -> bool:
    return path.startswith(("celery_once.backends.", "celery_singleton.backends.")) and "redis" in path.lower()


def keys_of_ones_own(app: Any) -> list[str]:
    """Tasks whose class makes names of its own, so that no prefix finds their locks."""
    return sorted(
        name
        for name, task in app.tasks.items()
        if (isinstance(task, QueueOnce) and type(task).get_key is not QueueOnce.get_key)
        or (isinstance(task, Singleton) and type(task).generate_lock is not Singleton.generate_lock)
    )


def old_locks(app: Any, places: Iterable[Place]) -> list[OldLock]:
    """What is held there now, each key once; raises LedgerUnavailable for a Redis that does not answer."""
    found = dict[tuple[str, str], OldLock]()
    for place in places:
        if place.url.partition("://")[0] not in {"redis", "rediss", "unix"}:
            continue
        client = redis.Redis.from_url(place.url)
        try:
            for key in client.scan_iter(match=place.pattern, count=1000):
                found.setdefault((place.url, key), _read(app, client, place.library, key))
        except redis.RedisError as error:
            where = place.url.rpartition("@")[2]
            raise LedgerUnavailable(ledger=where, reason=str(error)) from error
        finally:
            client.close()
    return sorted(found.values(), key=lambda lock: (lock.library, lock.key))


def _read(app: Any, client: Any, library: str, key: bytes) -> OldLock:
    name = key.decode(errors="replace")
    left = client.pttl(key)
    holder = client.get(key) if library == SINGLETON and client.type(key) == b"string" else None
    return OldLock(
        library=library,
        key=name,
        task=_task_of(app, name) if library == ONCE else "",
        task_id=(holder or b"").decode(errors="replace")[:_SHOWN],
        ends_in=None if left < 0 else left / 1000,
    )


def _task_of(app: Any, key: str) -> str:
    """The longest name of a task that the key begins with; names and arguments both may hold underscores."""
    rest = key.removeprefix(_PREFIX)
    return max((name for name in app.tasks if rest == name or rest.startswith(f"{name}_")), key=len, default="")
