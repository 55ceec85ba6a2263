"""Redis: commands and pipelines."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from effectonce.testing.attempts import Attempt, Touch
from effectonce.testing.faults.patching import patched, shortened
from effectonce.testing.libraries import loaded

_READING = frozenset(
    {
        *("get", "mget", "exists", "ttl", "pttl", "type", "keys", "scan", "strlen"),
        *("hget", "hgetall", "hmget", "hlen", "hexists", "llen", "lrange", "lindex"),
        *("sismember", "smembers", "scard", "zscore", "zrange", "zcard", "zcount"),
        *("ping", "info", "client", "time", "script"),
    }
)


@contextmanager
def watched() -> Iterator[None]:
    """Watch all clients."""
    client = loaded("redis.client")
    with ExitStack() as stack:
        if client is not None:
            stack.enter_context(patched(client.Redis, "execute_command", _command))
            stack.enter_context(patched(client.Pipeline, "execute", _pipeline))
        yield


def _command(attempt: Attempt, client: Any, *args: Any, **_: Any) -> Touch:
    attempt.keys.meet(client)
    words = [_shown(each) for each in args]
    return Touch(shortened(" ".join(words)), changes=bool(words) and words[0].lower() not in _READING)


def _pipeline(attempt: Attempt, pipeline: Any, *_: Any, **__: Any) -> Touch:
    attempt.keys.meet(pipeline)
    return Touch(shortened("; ".join(" ".join(map(_shown, each[0])) for each in pipeline.command_stack)))


def _shown(word: Any) -> str:
    return word.decode("utf-8", "backslashreplace") if isinstance(word, bytes) else str(word)
