"""HTTP clients: requests, httpx, urllib3 and the standard library's.

A request is recorded where the user of a library makes it, above its adapters, so that tests which replace the adapters
(responses, respx, requests-mock) are seen, too. A request that goes through several of these is one touch.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from effectonce.testing.attempts import Attempt, Touch
from effectonce.testing.faults.patching import patched, shortened
from effectonce.testing.libraries import loaded

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


@contextmanager
def watched() -> Iterator[None]:
    """Watch all clients that are loaded."""
    with ExitStack() as stack:
        for module, owner, name, describe in (
            ("requests.sessions", "Session", "send", _prepared),
            ("httpx", "Client", "send", _prepared),
            ("urllib3.poolmanager", "PoolManager", "urlopen", _urlopen),
            ("urllib3.connectionpool", "HTTPConnectionPool", "urlopen", _pooled),
            ("http.client", "HTTPConnection", "request", _bare),
        ):
            library = loaded(module)
            if library is not None:
                stack.enter_context(patched(getattr(library, owner), name, describe))
        yield


def _prepared(_attempt: Attempt, _client: Any, request: Any, **_: Any) -> Touch:
    return requested(str(request.method), str(request.url), request.headers)


def _urlopen(_attempt: Attempt, _manager: Any, method: str, url: str, *_: Any, **options: Any) -> Touch:
    return requested(method, url, options.get("headers"))


def _pooled(_attempt: Attempt, pool: Any, method: str, url: str, *args: Any, **options: Any) -> Touch:
    headers = options.get("headers") or (args[1] if len(args) > 1 else None)
    return requested(method, f"{pool.scheme}://{pool.host}{url}", headers)


def _bare(_attempt: Attempt, connection: Any, method: str, url: str, *args: Any, **options: Any) -> Touch:
    headers = options.get("headers") or (args[1] if len(args) > 1 else None)
    return requested(method, f"http://{connection.host}{url}", headers)


def requested(method: str, url: str, headers: Mapping[str, Any] | None) -> Touch:
    """A request as a touch; its idempotency key makes a second one harmless."""
    key = next((str(value) for name, value in (headers or {}).items() if name.lower() == "idempotency-key"), None)
    return Touch(shortened(f"{method.upper()} {url}"), changes=method.upper() not in _SAFE, recorded=True, once=key)
