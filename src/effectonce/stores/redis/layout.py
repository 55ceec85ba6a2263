"""Which keys an effect has, and how its entry goes to Redis and comes back.

Bytes stay bytes, text is UTF-8, seconds become whole microseconds (leases, instants) or milliseconds (times to live).
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from effectonce.domain.claims import Claim, Entry, Granted, Outcome, Refused, State
from effectonce.domain.steps import End, Step

MICROS = 1_000_000
DIGEST_DIGITS = 32
STEP_HOLDS, _NOT_KEPT, _SKIPPED = 1, 2, 4
_STEP = b"step:"


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys under one prefix; all of an effect's keys are in one slot of a Cluster."""

    prefix: str

    def entry(self, digest: bytes) -> str:
        """The hash of an effect."""
        return f"{self.prefix}:{{{digest[:1].hex()}}}:{digest.hex()}"

    def messages(self, digest: bytes) -> str:
        """The messages kept with it."""
        return f"{self.entry(digest)}:held"

    def claims(self, digest: bytes) -> str:
        """The claimed entries of its slot."""
        return f"{self.prefix}:{{{digest[:1].hex()}}}:claims"

    def reservation(self, name: bytes) -> str:
        """The string of a reservation."""
        return f"{self.prefix}:{{{name[:1].hex()}}}:{name.hex()}:reserved"

    def sighting(self, digest: bytes, mark: bytes) -> str:
        """The hash of a sighting."""
        return f"{self.entry(digest)}:{mark.hex()}:seen"

    def pair(self, digest: bytes) -> tuple[str, str]:
        """The two keys that nearly every script wants."""
        return self.entry(digest), self.claims(digest)

    def all_claims(self) -> list[str]:
        """The claimed entries of every slot."""
        return [self.claims(bytes([first])) for first in range(256)]

    def probe(self) -> tuple[str, str]:
        """A hash and a sorted set that hold nothing."""
        return f"{self.prefix}:{{00}}:probe", f"{self.prefix}:{{00}}:probes"

    @property
    def pattern(self) -> str:
        """What SCAN finds entries by, and nothing else."""
        return f"{self._escaped}:{{??}}:" + "?" * DIGEST_DIGITS

    @property
    def sighting_pattern(self) -> str:
        """What SCAN finds sightings by."""
        return f"{self.pattern}:*:seen"

    @property
    def _escaped(self) -> str:
        return re.sub(r"([][*?\\^-])", r"\\\1", self.prefix)


def digest_of(entry: bytes) -> bytes:
    """The digest that the key of an entry ends with."""
    return bytes.fromhex(entry[-DIGEST_DIGITS:].decode())


def micros(seconds: float) -> int:
    """Whole microseconds."""
    return round(seconds * MICROS)


def time_to_live(keep: float | None) -> str | int:
    """Milliseconds, never less than asked for; empty for ever."""
    return "" if keep is None else max(1, math.ceil(keep * 1000))


def claim_arguments(claim: Claim) -> list[Any]:
    """What ``claim.lua`` is given."""
    return [
        claim.attempt,
        encoded(claim.key),
        claim.identity,
        encoded(claim.task_id),
        claim.fingerprint,
        micros(claim.lease),
        time_to_live(claim.keep),
        claim.retries,
        claim.max_takeovers,
        "" if claim.reenter is None else claim.reenter,
        int(claim.recurs),
        int(claim.holds),
    ]


def claim_answer(claim: Claim, answer: Sequence[Any]) -> Granted | Refused:
    """What ``claim.lua`` said."""
    if not answer[0]:
        return Refused(entry=read_entry(claim.digest, answer[1]))
    _, fence, takeover, deaths, attempts = answer
    return Granted(
        digest=claim.digest,
        attempt=claim.attempt,
        fence=int(fence),
        takeover=bool(takeover),
        deaths=int(deaths),
        attempts=int(attempts),
    )


def outcome_arguments(granted: Granted, outcome: Outcome) -> list[Any]:
    """What ``complete.lua`` is given."""
    arguments: list[Any] = [
        granted.attempt,
        granted.fence,
        int(outcome.state),
        time_to_live(outcome.keep),
        int(outcome.handed_over),
        int(outcome.continued),
        int(outcome.kept),
    ]
    return [*arguments, outcome.result] if outcome.kept and outcome.result is not None else arguments


def read_entry(digest: bytes, fields: Sequence[bytes | None]) -> Entry | None:
    """An entry as the scripts tell it, in the order of ``told`` in ``entry.lua``; None when there is none."""
    if not fields:
        return None
    state, fence, attempt, key, identity, task, arguments, deaths, attempts, retries, *rest = fields
    continued, handed, kept, result, since, _ends, left = rest
    return Entry(
        digest=digest,
        key=_text(key),
        state=State(_number(state)),
        fence=_number(fence),
        attempt=attempt or b"",
        identity=identity or b"",
        task_id=_text(task),
        fingerprint=arguments or b"",
        lease_left=_number(left) / MICROS,
        deaths=_number(deaths),
        attempts=_number(attempts),
        retries=_number(retries),
        continued=bool(_number(continued)),
        handed_over=bool(_number(handed)),
        result=result,
        result_kept=bool(_number(kept)),
        since=_number(since) / MICROS,
    )


def read_entries(digests: Iterable[bytes], told: Iterable[Any]) -> list[Entry]:
    """Entries that were told one for each digest, without those that are gone."""
    read = (read_entry(digest, fields) for digest, fields in zip(digests, told, strict=True))
    return [entry for entry in read if entry is not None]


def as_read(entry: Entry) -> list[Any]:
    """What makes a script conditional on an entry as it was read."""
    return [entry.attempt, entry.fence, int(entry.state)]


def settled(entry: Entry, outcome: Outcome, by: bytes) -> list[Any]:
    """What ``settle.lua`` is given."""
    keep = time_to_live(outcome.keep)
    arguments = [*as_read(entry), by, int(outcome.state), keep, int(outcome.kept)]
    return arguments if outcome.result is None else [*arguments, outcome.result]


def step_field(name: str) -> bytes:
    """The field of a step in its effect's hash."""
    return _STEP + encoded(name)


def end_arguments(granted: Granted, name: str, end: End) -> list[Any]:
    """What ``end_step.lua`` is given."""
    flags = (0 if end.kept else _NOT_KEPT) | (_SKIPPED if end.skipped else 0)
    arguments: list[Any] = [granted.attempt, granted.fence, step_field(name), flags]
    return arguments if end.result is None else [*arguments, end.result]


def read_steps(told: Sequence[bytes]) -> list[Step]:
    """Steps as ``entry.lua`` tells them, in the order in which they began."""
    found = [_read_step(field, value) for field, value in zip(told[::2], told[1::2], strict=True)]
    return sorted(found, key=lambda step: step.began)


def _read_step(field: bytes, value: bytes) -> Step:
    head, _, result = value.partition(b"\n")
    attempt, fence, began, ended, flags = head.split()
    return Step(
        name=_text(field.removeprefix(_STEP)),
        attempt=bytes.fromhex(attempt.decode()),
        fence=int(fence),
        began=int(began) / MICROS,
        ended=int(ended) / MICROS if int(ended) else None,
        result=result[1:] if result else None,
        kept=not int(flags) & _NOT_KEPT,
        holds=bool(int(flags) & STEP_HOLDS),
        skipped=bool(int(flags) & _SKIPPED),
    )


def _number(field: bytes | None) -> int:
    return int(field or 0)


def encoded(text: str) -> bytes:
    """UTF-8; a lone surrogate, which JSON can carry, comes through too."""
    return text.encode("utf-8", "surrogatepass")


def _text(field: bytes | None) -> str:
    return (field or b"").decode("utf-8", "surrogatepass")
