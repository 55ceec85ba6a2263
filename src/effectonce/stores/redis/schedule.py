"""Terms and ticks in Redis: of each group one seat, the last tick of each entry, and the ticks that nobody marked.

Keys; the hash tag is the digest of the group's name, so that a group is in one slot of a Cluster::

    prefix:{beat:<digest>}:seat         who leads, a hash
    prefix:{beat:<digest>}:last         entry -> its last tick, a hash; never forgotten
    prefix:{beat:<digest>}:unmarked     entry:instant -> a tick that may not have been sent, a hash
    prefix:{beat:<digest>}:recent       the latest ticks, a list; for people
    prefix:beats                        the names of the groups, a set

None has a time to live: the end of a term is a field, by the server's clock.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from itertools import chain
from typing import Any, Final

import redis
from redis.commands.core import Script
from redis.exceptions import RedisClusterException

from effectonce.domain.terms import Seat, Term
from effectonce.domain.ticks import Claimed, Recorded, Tick, TickClaim, TickState, soonest
from effectonce.errors import LedgerUnavailable
from effectonce.stores.redis.layout import MICROS, encoded, micros
from effectonce.stores.redis.scripts import BeatScripts

AHEAD: Final = 60 * MICROS
"""How far a tick may lie ahead of the server's clock."""

RECENT: Final = 500
"""Ticks of a group that are kept for people."""


class RedisSchedule:
    """A `ports.ScheduleStore` in one Redis or Valkey server."""

    def __init__(self, client: Any, *, prefix: str, name: str) -> None:
        self._client = client
        self._prefix = prefix
        self._name = name
        self._scripts = BeatScripts(client)

    @property
    def name(self) -> str:
        """Its URL without user and password."""
        return self._name

    def win(self, name: str, *, holder: bytes, who: str, length: float) -> Term | None:
        """See `ports.LeaseStore.win`."""
        self._asked(lambda: self._client.sadd(f"{self._prefix}:beats", encoded(name)))
        arguments = [encoded(name), holder, encoded(who), micros(length)]
        fence = self._run(self._scripts.win, [self._key(name, "seat")], arguments)
        return None if fence is None else Term(name=name, fence=int(fence), holder=holder)

    def renew_term(self, term: Term, *, length: float) -> bool:
        """See `ports.LeaseStore.renew_term`."""
        arguments = [term.fence, term.holder, micros(length)]
        return bool(self._run(self._scripts.renew, [self._key(term.name, "seat")], arguments))

    def resign(self, term: Term) -> None:
        """See `ports.LeaseStore.resign`."""
        self._run(self._scripts.resign, [self._key(term.name, "seat")], [term.fence, term.holder])

    def seats(self) -> Sequence[Seat]:
        """See `ports.LeaseStore.seats`."""
        seconds, fraction = self._asked(self._client.time)
        keys = [self._key(group, "seat") for group in self._groups()]
        found = [self._asked(partial(self._client.hgetall, key)) for key in keys]
        return [_seat(fields, seconds + fraction / MICROS) for fields in found if fields]

    def claim_ticks(self, term: Term, claims: Sequence[TickClaim]) -> Sequence[Claimed]:
        """See `ports.TickStore.claim_ticks`."""
        if not claims:
            return []
        keys = [self._key(term.name, part) for part in ("seat", "last", "unmarked", "recent")]
        ticks = chain.from_iterable(_claim_arguments(claim) for claim in claims)
        arguments = [term.fence, term.holder, AHEAD, RECENT, *ticks]
        return [Claimed(answer) for answer in self._run(self._scripts.claim, keys, arguments)]

    def mark_ticks(self, ticks: Sequence[Tick]) -> None:
        """See `ports.TickStore.mark_ticks`."""
        for group in {tick.group for tick in ticks}:
            keys = [self._key(group, part) for part in ("last", "unmarked")]
            mine = [(tick.entry.hex(), tick.instant) for tick in ticks if tick.group == group]
            self._run(self._scripts.mark, keys, chain.from_iterable(mine))

    def last_ticks(self, group: str, names: Sequence[str]) -> Mapping[str, Recorded]:
        """See `ports.TickStore.last_ticks`."""
        if not names:
            return {}
        fields = [Tick(group=group, name=name, instant=0).entry.hex() for name in names]
        rows = self._asked(lambda: self._client.hmget(self._key(group, "last"), fields))
        return {name: _recorded(group, row) for name, row in zip(names, rows, strict=True) if row}

    def unmarked(self, group: str) -> Sequence[Recorded]:
        """See `ports.TickStore.unmarked`."""
        rows = self._asked(lambda: self._client.hvals(self._key(group, "unmarked")))
        return _in_order(_recorded(group, row) for row in rows)

    def recent(self, *, limit: int) -> Sequence[Recorded]:
        """See `ports.TickStore.recent`."""
        found: list[Recorded] = []
        for group in self._groups():
            rows = self._asked(partial(self._client.lrange, self._key(group, "recent"), 0, limit - 1))
            open_ones = {row.tick for row in self.unmarked(group)}
            found += [_settled(_recorded(group, row), open_ones) for row in rows]
        return sorted(found, key=lambda row: -row.tick.instant)[:limit]

    def coming(self, *, limit: int) -> Sequence[Recorded]:
        """See `ports.TickStore.coming`."""
        last: list[Recorded] = []
        for group in self._groups():
            rows = self._asked(partial(self._client.hvals, self._key(group, "last")))
            last += [_recorded(group, row) for row in rows]
        return soonest(last, limit=limit)

    def _groups(self) -> list[str]:
        names = self._asked(lambda: self._client.smembers(f"{self._prefix}:beats"))
        return sorted(name.decode("utf-8", "surrogatepass") for name in names)

    def _key(self, group: str, part: str) -> str:
        return f"{self._prefix}:{{beat:{blake2b(encoded(group), digest_size=8).hexdigest()}}}:{part}"

    def _run(self, script: Script, keys: Iterable[str], arguments: Iterable[Any]) -> Any:
        return self._asked(lambda: script(keys=list(keys), args=list(arguments)))

    def _asked(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except (redis.RedisError, RedisClusterException, OSError) as error:
            raise LedgerUnavailable(ledger=self._name, reason=str(error) or type(error).__name__) from error


def _claim_arguments(claim: TickClaim) -> list[Any]:
    tick = claim.tick
    following = "" if claim.following is None else claim.following
    return [tick.entry.hex(), tick.instant, int(claim.state), claim.missed, following, encoded(tick.name)]


def _recorded(group: str, row: bytes) -> Recorded:
    instant, state, fence, at, missed, following, name = row.split(b"|", 6)
    return Recorded(
        tick=Tick(group=group, name=name.decode("utf-8", "surrogatepass"), instant=int(instant)),
        state=TickState(int(state)),
        fence=int(fence),
        at=int(at) / MICROS,
        missed=int(missed),
        following=int(following) if following else None,
    )


def _settled(recorded: Recorded, unmarked: set[Tick]) -> Recorded:
    """The list of recent ticks is written when they are claimed; whether they were sent stands elsewhere."""
    if recorded.state is not TickState.CLAIMED or recorded.tick in unmarked:
        return recorded
    return Recorded(
        tick=recorded.tick,
        state=TickState.SENT,
        fence=recorded.fence,
        at=recorded.at,
        missed=recorded.missed,
        following=recorded.following,
    )


def _in_order(rows: Iterable[Recorded]) -> list[Recorded]:
    return sorted(rows, key=lambda row: (row.tick.instant, row.tick.name))


def _seat(fields: Mapping[bytes, bytes], now: float) -> Seat:
    return Seat(
        name=fields[b"name"].decode("utf-8", "surrogatepass"),
        fence=int(fields[b"fence"]),
        who=fields[b"who"].decode("utf-8", "surrogatepass"),
        since=int(fields[b"since"]) / MICROS,
        left=int(fields[b"ends"]) / MICROS - now,
    )
