"""The ledger in a Redis Cluster: all keys of an effect are in one slot, and no script crosses slots.

What is about one effect is the same script as on one server. What is about many goes slot by slot: renewals in one
plain pipeline, which redis-py sends to each node at once.
"""

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.commands.core import Script
from redis.retry import Retry

from effectonce import crashpoints
from effectonce.domain.claims import Entry
from effectonce.ports import Renewal
from effectonce.stores.redis import layout
from effectonce.stores.redis.addresses import Address
from effectonce.stores.redis.ledger import RedisLedger

_RETRIES: Final = 3
"""How often a question is asked again while slots move or a node fails over."""


class LazyCluster:
    """A client that connects when it is first asked something; redis-py's own connects when it is made."""

    def __init__(self, address: Address, options: Mapping[str, Any]) -> None:
        self._address = address
        self._options = options
        self._making = threading.Lock()
        self._made: RedisCluster | None = None

    def register_script(self, text: str) -> Script:
        """A script of this client, not yet known to any node."""
        return Script(self, text)  # type: ignore[arg-type]

    def get_encoder(self) -> Any:
        """How text becomes bytes, without asking a server."""
        return redis._parsers.Encoder("utf-8", "strict", False)  # noqa: FBT003, SLF001 - its own argument order

    def close(self) -> None:
        """Give the connections back; the next question opens new ones."""
        made, self._made = self._made, None
        if made is not None:
            made.close()

    def time(self) -> tuple[int, int]:
        """The clock of the node that is behind the others."""
        told: Any = self._cluster.time(target_nodes=RedisCluster.PRIMARIES)
        seconds, micros = min(told.values()) if isinstance(told, dict) else told
        return int(seconds), int(micros)

    def __getattr__(self, name: str) -> Any:
        if name == "connection_pool":
            raise AttributeError(name)
        return getattr(self._cluster, name)

    @property
    def _cluster(self) -> RedisCluster:
        if self._made is None:
            with self._making:
                if self._made is None:
                    nodes = [ClusterNode(host, port) for host, port in self._address.hosts]
                    self._made = RedisCluster(
                        startup_nodes=nodes,
                        ssl=self._address.tls,
                        retry=Retry(NoBackoff(), _RETRIES),
                        **self._options,
                    )
        return self._made


class RedisClusterLedger(RedisLedger):
    """A `ports.LedgerStore` in a Redis Cluster."""

    def renew(self, held: Sequence[Renewal]) -> frozenset[bytes]:
        """Renew all that hold and have not ended: one pipeline, a script for each slot."""
        crashpoints.crash_point("renew.before")
        kept = frozenset(chain.from_iterable(self._asked(lambda: self._renewed(held)))) if held else frozenset()
        crashpoints.crash_point("renew.after")
        return kept

    def _renewed(self, held: Sequence[Renewal]) -> list[list[bytes]]:
        script = self._scripts.renew.script
        with self._client.pipeline() as pipeline:
            for together in _by_slot(held, lambda renewal: renewal.digest):
                keys = list(chain.from_iterable(self._keys.pair(renewal.digest) for renewal in together))
                terms = ((each.attempt, each.fence, layout.micros(each.lease)) for each in together)
                pipeline.execute_command("EVAL", script, len(keys), *keys, *chain.from_iterable(terms))
            answers: list[list[bytes]] = pipeline.execute()
        return answers

    def rescue(self, limit: int) -> Sequence[Entry]:
        """Release claims whose lease ended more than one lease ago: one pipeline finds them, a script a slot frees."""
        crashpoints.crash_point("rescue.before")
        digests = self._asked(lambda: self._overdue(limit))[:limit] if limit > 0 else []
        before: list[Entry] = []
        for together in _by_slot(digests, lambda digest: digest):
            keys = chain.from_iterable(map(self._keys.pair, together))
            before += layout.read_entries(together, self._run(self._scripts.rescue, keys, ()))
        crashpoints.crash_point("rescue.after")
        return before

    def _overdue(self, limit: int) -> list[bytes]:
        seconds, micros = self._client.time()
        now = seconds * layout.MICROS + micros
        with self._client.pipeline() as pipeline:
            for claims in self._keys.all_claims():
                pipeline.zrangebyscore(claims, "-inf", f"({now}", start=0, num=limit)
            found = pipeline.execute()
        return [bytes.fromhex(digest.decode()) for digest in chain.from_iterable(found)]

    def _read(self, digests: Sequence[bytes]) -> list[Entry]:
        found = {
            entry.digest: entry
            for together in _by_slot(digests, lambda digest: digest)
            for entry in super(RedisClusterLedger, self)._read(together)
        }
        return [found[digest] for digest in digests if digest in found]


def _by_slot(items: Iterable[Any], digest_of: Any) -> list[list[Any]]:
    """The items in groups whose keys share a slot: the first byte of the digest is its tag."""
    groups: dict[bytes, list[Any]] = defaultdict(list)
    for item in items:
        groups[digest_of(item)[:1]].append(item)
    return list(groups.values())
