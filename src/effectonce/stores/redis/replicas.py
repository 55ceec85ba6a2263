"""How many replicas must have a write before it counts: the options ``wait`` and ``wait_ms`` of a Redis URL.

Redis answers a write before its replicas have it, so a fail-over may forget it. With ``wait=1`` every script that
writes is followed by WAIT on its connection. When fewer replicas say in time that they have it, nobody knows whether it
will last: that is a ledger that could not be asked, and whoever asks again gets the same answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import redis
from redis.commands.core import Script


@dataclass(frozen=True, slots=True)
class Replicas:
    """Ask *least* replicas, for up to *millis* milliseconds."""

    least: int
    millis: int

    def run(self, client: redis.Redis, script: Script, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        """Run a script that writes; raises redis.ConnectionError where too few replicas have it in time."""
        with client.pipeline(transaction=False) as pipeline:
            script(keys=list(keys), args=list(arguments), client=pipeline)
            pipeline.execute_command("WAIT", self.least, self.millis)
            answer, reached = pipeline.execute()
        if int(reached) < self.least:
            message = f"{reached} of {self.least} replicas have the last write"
            raise redis.ConnectionError(message)
        return answer


def split_wait(url: str) -> tuple[str, Replicas | None]:
    """Take our options out of a URL; raises ValueError for what is no number."""
    told = urlsplit(url)
    query = parse_qsl(told.query, keep_blank_values=True)
    ours = {name: int(value) for name, value in query if name in {"wait", "wait_ms"}}
    if not ours:
        return url, None
    rest = urlencode([(name, value) for name, value in query if name not in ours])
    least, millis = ours.get("wait", 1), ours.get("wait_ms", 1000)
    if least < 1 or millis < 1:
        message = "wait and wait_ms are whole numbers of at least 1"
        raise ValueError(message)
    return urlunsplit(told._replace(query=rest)), Replicas(least, millis)
