"""The ledger in Redis: each question is one script, each script one round trip."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, Final

import redis
from redis.commands.core import Script
from redis.exceptions import RedisClusterException

from effectonce import crashpoints
from effectonce.domain.claims import Claim, Entry, Granted, Outcome, Refused, State
from effectonce.domain.following import Following
from effectonce.domain.steps import End, Step
from effectonce.errors import LedgerUnavailable, SettingsInvalid
from effectonce.ports import Pruned, Renewal
from effectonce.stores.redis import layout
from effectonce.stores.redis.addresses import CLUSTER
from effectonce.stores.redis.connection import (
    address_of,
    open_client,
    options_of,
    public_name,
    sentinel_client,
    split_replicas,
)
from effectonce.stores.redis.layout import Keys
from effectonce.stores.redis.replicas import Replicas
from effectonce.stores.redis.schedule import RedisSchedule
from effectonce.stores.redis.scripts import Scripts
from effectonce.stores.redis.sightings import RedisSightings

BATCH: Final = 500
"""Entries a script or pipeline looks at when people ask; a script keeps the server from all else while it runs."""


class RedisLedger(RedisSightings):
    """A `ports.LedgerStore` in one Redis or Valkey server.

    What it promises it keeps as far as that server keeps its data: a server without persistence, or one that fails
    over to a replica that lags, forgets entries, and what it forgot runs again.
    """

    def __init__(self, client: Any, *, prefix: str, name: str, replicas: Replicas | None = None) -> None:
        self._client = client
        self._keys = Keys(prefix)
        self._scripts = Scripts(client)
        self._name = name
        self._replicas = replicas
        self._schedule: RedisSchedule | None = None

    @classmethod
    def open(cls, source: str | redis.Redis, *, prefix: str = "effectonce") -> "RedisLedger":
        """Make a ledger of a URL or a client; connects to nothing yet.

        URLs: ``redis://``, ``rediss://``, ``unix://``, ``valkey://``, ``valkeys://``, with redis-py's options in the
        query; ``redis+sentinel://`` and ``redis+cluster://`` (see `addresses`); and ``wait=`` (see `replicas`).
        Raises SettingsInvalid.
        """
        url, replicas = split_replicas(source)
        address = address_of(url)
        if address is not None and address.kind == CLUSTER:
            from effectonce.stores.redis.cluster import LazyCluster, RedisClusterLedger  # noqa: PLC0415 - it builds on us

            if replicas is not None:
                raise SettingsInvalid(faults=["effectonce_ledger: wait= is not for a Cluster"])
            return RedisClusterLedger(LazyCluster(address, options_of(address)), prefix=prefix, name=address.public)
        if address is not None:
            return cls(sentinel_client(address), prefix=prefix, name=address.public, replicas=replicas)
        client = open_client(url)
        return cls(client, prefix=prefix, name=public_name(client), replicas=replicas)

    @property
    def name(self) -> str:
        """Its URL without user and password."""
        return self._name

    def server_facts(self) -> Mapping[str, Any]:
        """How the server keeps what it has, for people: whether it evicts, and whether a restart loses all.

        Empty where the server does not say (``CONFIG`` is forbidden on hosted ones).
        """
        names = ("maxmemory", "maxmemory-policy", "appendonly", "save")
        try:
            told: dict[Any, Any] = self._client.config_get(*names)
        except redis.RedisError:
            return {}
        found = {_word(name): _word(value) for name, value in told.items()}
        return {**found, "maxmemory": int(found.get("maxmemory", 0))}

    @property
    def schedule(self) -> RedisSchedule:
        """Terms and ticks, under the same prefix."""
        if self._schedule is None:
            self._schedule = RedisSchedule(self._client, prefix=self._keys.prefix, name=self._name)
        return self._schedule

    def claim(self, claim: Claim) -> Granted | Refused:
        """Grant as `admit` says; ``claim.lua`` says it in Lua."""
        crashpoints.crash_point("claim.before")
        keys = self._keys.pair(claim.digest)
        answer = layout.claim_answer(claim, self._run(self._scripts.claim, keys, layout.claim_arguments(claim)))
        crashpoints.crash_point("claim.after")
        if isinstance(answer, Granted) and answer.takeover:
            crashpoints.crash_point("takeover.after")
        return answer

    def complete(self, granted: Granted, outcome: Outcome) -> bool:
        """End the claim for good, by fence and attempt."""
        crashpoints.crash_point("settle.before")
        arguments = layout.outcome_arguments(granted, outcome)
        done = self._run(self._scripts.complete, self._keys.pair(granted.digest), arguments)
        crashpoints.crash_point("settle.after")
        return bool(done)

    def release(self, granted: Granted, *, retries: int, reset: bool, keep: float | None) -> bool:
        """Let the key go; the tombstone keeps fence, attempt, attempts and, without *reset*, deaths."""
        crashpoints.crash_point("release.before")
        arguments = [granted.attempt, granted.fence, retries, int(reset), layout.time_to_live(keep)]
        free = self._run(self._scripts.release, self._keys.pair(granted.digest), arguments)
        crashpoints.crash_point("release.after")
        return bool(free)

    def renew(self, held: Sequence[Renewal]) -> frozenset[bytes]:
        """Renew all that hold and have not ended, in one script."""
        crashpoints.crash_point("renew.before")
        keys = chain.from_iterable(self._keys.pair(renewal.digest) for renewal in held)
        terms = ((renewal.attempt, renewal.fence, layout.micros(renewal.lease)) for renewal in held)
        holding = self._run(self._scripts.renew, keys, chain.from_iterable(terms)) if held else ()
        crashpoints.crash_point("renew.after")
        return frozenset(holding)

    def follow(self, entry: Entry, identity: bytes) -> Following:
        """Register a follower, if the holder still holds."""
        crashpoints.crash_point("follow.before")
        arguments = [entry.attempt, entry.fence, identity]
        answer = Following(self._run(self._scripts.follow, [self._keys.entry(entry.digest)], arguments))
        crashpoints.crash_point("follow.after")
        return answer

    def reserve(self, name: bytes, holder: str, seconds: float) -> str:
        """Reserve a name, if nobody has it; the key of a reservation ends by itself."""
        crashpoints.crash_point("reserve.before")
        arguments = [layout.encoded(holder), layout.time_to_live(seconds)]
        found: bytes = self._run(self._scripts.reserve, [self._keys.reservation(name)], arguments)
        crashpoints.crash_point("reserve.after")
        return found.decode("utf-8", "surrogatepass")

    def give_back(self, name: bytes, holder: str) -> bool:
        """End a reservation, if *holder* has it."""
        crashpoints.crash_point("give_back.before")
        done = self._run(self._scripts.give_back, [self._keys.reservation(name)], [layout.encoded(holder)])
        crashpoints.crash_point("give_back.after")
        return bool(done)

    def forget_reservations(self) -> int:
        """Nothing: the server has."""
        return 0

    def poison(self, entry: Entry, message: bytes) -> bool:
        """Set the entry aside, if nothing has moved since it was read."""
        keys = (*self._keys.pair(entry.digest), self._keys.messages(entry.digest))
        return bool(self._run(self._scripts.poison, keys, [entry.attempt, entry.fence, int(entry.state), message]))

    def hold(self, digest: bytes, message: bytes) -> None:
        """Keep one more message with a held entry, once."""
        self._run(self._scripts.hold, (self._keys.entry(digest), self._keys.messages(digest)), [message])

    def held(self, digest: bytes) -> Sequence[bytes]:
        """Give the messages kept with an entry."""
        key = self._keys.messages(digest)
        messages: list[bytes] = self._asked(lambda: self._client.zrange(key, 0, -1))
        return messages

    def unhold(self, digest: bytes, message: bytes) -> None:
        """Forget one message kept with an entry."""
        key = self._keys.messages(digest)
        self._asked(lambda: self._client.zrem(key, message))

    def settle_held(self, entry: Entry, outcome: Outcome, *, by: bytes) -> bool:
        """End a held entry as a person says."""
        return bool(
            self._run(self._scripts.settle, (self._keys.entry(entry.digest),), layout.settled(entry, outcome, by))
        )

    def free(self, entry: Entry, *, by: bytes, keep: float | None) -> bool:
        """Let an entry run again that is held or finished."""
        arguments = [*layout.as_read(entry), by, layout.time_to_live(keep)]
        return bool(self._run(self._scripts.free, (self._keys.entry(entry.digest),), arguments))

    def redact(self, entry: Entry) -> bool:
        """Take what is personal away from a finished entry."""
        return bool(self._run(self._scripts.redact, (self._keys.entry(entry.digest),), layout.as_read(entry)))

    forgets_by_itself = True

    def prune(self, *, limit: int, after: bytes) -> Pruned:
        """Return: the server forgets by itself."""
        del limit, after
        return Pruned(looked=0, removed=0, after=None)

    over = prune

    def mark_continued(self, digest: bytes, attempt: bytes) -> None:
        """Note that the continuation went out."""
        crashpoints.crash_point("mark.before")
        self._run(self._scripts.continued, (self._keys.entry(digest),), [attempt])
        crashpoints.crash_point("mark.after")

    def mark_unknown(self, digest: bytes, attempt: bytes) -> None:
        """Hold this attempt's entry for a person."""
        crashpoints.crash_point("mark.before")
        self._run(self._scripts.unknown, self._keys.pair(digest), [attempt])
        crashpoints.crash_point("mark.after")

    def begin_step(self, granted: Granted, name: str, *, holds: bool) -> bool:
        """Record a start, by fence and attempt."""
        flags = layout.STEP_HOLDS if holds else 0
        arguments = [granted.attempt, granted.fence, granted.attempt.hex(), layout.step_field(name), flags]
        return bool(self._run(self._scripts.begin_step, (self._keys.entry(granted.digest),), arguments))

    def end_step(self, granted: Granted, name: str, end: End) -> bool:
        """Record an end, by fence and attempt."""
        arguments = layout.end_arguments(granted, name, end)
        return bool(self._run(self._scripts.end_step, (self._keys.entry(granted.digest),), arguments))

    def cancel_step(self, granted: Granted, name: str) -> bool:
        """Take a start back, by fence and attempt."""
        arguments = [granted.attempt, granted.fence, layout.step_field(name)]
        return bool(self._run(self._scripts.cancel_step, (self._keys.entry(granted.digest),), arguments))

    def steps(self, digest: bytes) -> Sequence[Step]:
        """Give the steps of an effect."""
        return layout.read_steps(self._run(self._scripts.steps, (self._keys.entry(digest),), ()))

    def read(self, digest: bytes) -> Entry | None:
        """Give the entry as it stands."""
        return next(iter(self._read([digest])), None)

    def find(self, key: str) -> Sequence[Entry]:
        """Entries with this key, or this hex digest; looks at every entry there is."""
        wanted = layout.encoded(key)
        return self._read([digest for digest, found in self._scan("key") if found == wanted or digest.hex() == key])

    def entries(self, *, state: State | None, limit: int, after: bytes | None = None) -> Sequence[Entry]:
        """Up to *limit* entries by digest; looks at every entry there is."""
        digests = sorted(
            digest
            for digest, found in self._scan("state")
            if (after is None or digest > after) and (state is None or int(found) == state)
        )
        living = chain.from_iterable(self._read(batch) for batch in _batches(digests, size=BATCH))
        return list(islice((entry for entry in living if state in {None, entry.state}), max(limit, 0)))

    def counts(self) -> Mapping[State, int]:
        """How many entries there are in each state; looks at every entry there is."""
        return dict.fromkeys(State, 0) | Counter(State(int(found)) for _, found in self._scan("state"))

    def rescue(self, limit: int) -> Sequence[Entry]:
        """Release claims whose lease ended more than one lease ago: one script finds them, one frees them."""
        crashpoints.crash_point("rescue.before")
        due = self._run(self._scripts.due, self._keys.all_claims(), [limit]) if limit > 0 else ()
        digests = [bytes.fromhex(digest.decode()) for digest in due]
        keys = chain.from_iterable(map(self._keys.pair, digests))
        before = layout.read_entries(digests, self._run(self._scripts.rescue, keys, ())) if digests else []
        crashpoints.crash_point("rescue.after")
        return before

    def ping(self) -> None:
        """Return if the server answers and lets us do all that the scripts do."""
        self._run(self._scripts.probe, self._keys.probe(), ())

    def create_schema(self) -> None:
        """Return: keys need no schema."""

    def close(self) -> None:
        """Give the connections of a client that we made back; the next question opens new ones."""
        self._client.close()

    def _run(self, script: Script, keys: Iterable[str], arguments: Iterable[Any]) -> Any:
        names, values, replicas = list(keys), list(arguments), self._replicas
        if replicas is None or script in self._scripts.reading:
            return self._asked(lambda: script(keys=names, args=values))
        return self._asked(lambda: replicas.run(self._client, script, names, values))

    def _asked(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except (redis.RedisError, RedisClusterException, OSError) as error:
            raise LedgerUnavailable(ledger=self._name, reason=str(error) or type(error).__name__) from error

    def _read(self, digests: Sequence[bytes]) -> list[Entry]:
        if not digests:
            return []
        return layout.read_entries(digests, self._run(self._scripts.read, map(self._keys.entry, digests), ()))

    def _scan(self, field: str) -> Iterator[tuple[bytes, bytes]]:
        """Each entry's digest once, with one field of it."""
        names = self._asked(lambda: set(self._client.scan_iter(match=self._keys.pattern, count=BATCH)))
        for batch in _batches(sorted(names), size=BATCH):
            found = self._asked(partial(self._fields, batch, field))
            yield from ((layout.digest_of(name), value) for name, value in zip(batch, found, strict=True) if value)

    def _fields(self, names: Sequence[bytes], field: str) -> list[bytes | None]:
        with self._client.pipeline(transaction=False) as pipeline:
            for name in names:
                pipeline.hget(name, field)
            values: list[bytes | None] = pipeline.execute()
        return values


def _batches(items: Sequence[bytes], *, size: int) -> Iterator[Sequence[bytes]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _word(said: Any) -> str:
    return said.decode() if isinstance(said, bytes) else str(said)
