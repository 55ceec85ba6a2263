"""Sightings in Redis: a hash for what would have happened to calls of one key, which ends by itself."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from effectonce.domain.sightings import KEPT, Sighting, Would
from effectonce.stores.redis.layout import DIGEST_DIGITS, MICROS, Keys, encoded, time_to_live
from effectonce.stores.redis.scripts import Scripts

_LOOKED_AT = 10_000
"""Sightings that are read to find the latest ones."""


class RedisSightings:
    """The part of the Redis ledger that counts what was only observed."""

    _client: Any
    _keys: Keys
    _scripts: Scripts
    _run: Callable[..., Any]
    _asked: Callable[..., Any]

    def see(self, sighting: Sighting) -> None:
        """See `ports.sightings.SightingStore.see`."""
        told = [sighting.key, sighting.task, sighting.task_id, sighting.would.name.lower()]
        arguments = [*map(encoded, told), int(sighting.again), time_to_live(KEPT)]
        self._run(self._scripts.see, [self._keys.sighting(sighting.digest, sighting.mark)], arguments)

    def sightings(self, *, limit: int) -> Sequence[Sighting]:
        """See `ports.sightings.SightingStore.sightings`; looks at every key of the server."""
        names = self._asked(lambda: list(self._first_names()))
        found = [(name, self._asked(partial(self._client.hgetall, name))) for name in names]
        seen = [_sighting_of(name, fields) for name, fields in found if fields]
        return sorted(seen, key=lambda each: -each.last)[:limit]

    def forget_sightings(self) -> int:
        """Nothing: the server has."""
        return 0

    def _first_names(self) -> Iterable[bytes]:
        for number, name in enumerate(self._client.scan_iter(match=self._keys.sighting_pattern, count=500)):
            if number >= _LOOKED_AT:
                return
            yield name


def _sighting_of(name: bytes, fields: Mapping[bytes, bytes]) -> Sighting:
    told = {field.decode(): value.decode("utf-8", "surrogatepass") for field, value in fields.items()}
    digest = name.rsplit(b":", 2)[0][-DIGEST_DIGITS:]
    return Sighting(
        digest=bytes.fromhex(digest.decode()),
        key=told["key"],
        task=told["task"],
        task_id=told["task_id"],
        would=Would[told["would"].upper()],
        again=told["again"] == "1",
        times=int(told["times"]),
        first=int(told["first"]) / MICROS,
        last=int(told["last"]) / MICROS,
    )
