"""Between rows and the domain's values."""

import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Literal

from effectonce.domain.claims import Claim, Entry, Granted, Outcome, State
from effectonce.ports import Renewal
from effectonce.stores.sql.dialects import MICROS
from effectonce.stores.sql.statements import flags_of
from effectonce.stores.sql.tables import CONTINUED, HANDED_OVER, HOLDS, NOT_KEPT


def lock_of(digest: bytes) -> int:
    """The try-lock's number: the first eight bytes of the digest. Two effects that share it are busy at times."""
    return int.from_bytes(digest[:8], "big", signed=True)


def halves_of(digest: bytes) -> dict[str, int]:
    """The try-lock's number in two unsigned halves, as PostgreSQL lists it."""
    return {"high": int.from_bytes(digest[:4], "big"), "low": int.from_bytes(digest[4:8], "big")}


def holder_of(row: Any) -> str:
    """A session of the database in words; what another user does is not shown to us."""
    doing = f", {row.state} for {row.seconds:.0f} s" if row.state and row.seconds is not None else ""
    return f"backend {row.pid} ({row.name or 'unnamed'}, from {row.host}{doing})"


def micros(seconds: float | None) -> int | None:
    """Whole microseconds; None stays None."""
    return None if seconds is None else round(seconds * MICROS)


def _millis(lease: float) -> int:
    """A lease as its column holds it: at most 24 days, after which it is renewed or over in any case."""
    return min(round(lease * 1000), _LONGEST_LEASE)


def claim_values(claim: Claim, *, state: State, keep: float | None = None) -> dict[str, Any]:
    """The parameters of an insert or a take; *keep*: how long an entry lives that is inserted as ended.

    What a claim says of its own life is for the rescuer, who must know how long to keep the tombstone.
    """
    return {
        "digest": claim.digest,
        "key": storable(claim.key),
        "state": int(state),
        "attempt": claim.attempt,
        "identity": claim.identity,
        "task_id": storable(claim.task_id),
        "fingerprint": claim.fingerprint,
        "lease_us": micros(claim.lease),
        "lease_ms": _millis(claim.lease),
        "retries": claim.retries,
        "flags": HOLDS if claim.holds else 0,
        "kept_us": micros(keep),
        "keep_us": micros(claim.keep) if state is State.CLAIMED else None,
        "lock": lock_of(claim.digest),
    }


def storable(words: str) -> str:
    """Text that any database takes: without NUL and lone surrogates. The digest names the effect, not these."""
    return words.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


_LONGEST_LEASE = 2_147_483_647
_LONGEST_SILENCE = 2_147_483_647
"""Milliseconds: the largest that PostgreSQL takes."""


def silence_values(seconds: float | None) -> dict[str, Any]:
    """The parameter of a transaction that may be silent for so many seconds; None leaves the server's own limit."""
    return {"silence": None if seconds is None else str(min(round(seconds * 1000), _LONGEST_SILENCE))}


def message_values(digest: bytes, message: bytes) -> dict[str, Any]:
    """The parameters of a held message; its *mark* makes it be kept once."""
    return {"digest": digest, "message": message, "mark": blake2b(message, digest_size=16).digest()}


def renewal_values(held: Sequence[Renewal], *, lists: Literal["arrays", "json", "none"]) -> list[dict[str, Any]]:
    """The parameters of a renewal: all at once, or one set for each."""
    if lists == "json":
        return [{"renewals": json.dumps([_in_json(renewal) for renewal in held])}]
    if lists == "none":
        return [{**held_values(renewal), "lease_ms": _millis(renewal.lease)} for renewal in held]
    return [
        {
            "digests": [renewal.digest for renewal in held],
            "fences": [renewal.fence for renewal in held],
            "attempts": [renewal.attempt for renewal in held],
            "leases": [_millis(renewal.lease) for renewal in held],
        }
    ]


def _in_json(renewal: Renewal) -> dict[str, Any]:
    return {
        "digest": renewal.digest.hex(),
        "fence": renewal.fence,
        "attempt": renewal.attempt.hex(),
        "lease_ms": _millis(renewal.lease),
    }


def held_values(held: Granted | Entry | Renewal) -> dict[str, Any]:
    """The parameters that make a statement conditional on fence and attempt."""
    return {"digest": held.digest, "fence": held.fence, "attempt": held.attempt}


def outcome_values(granted: Granted, outcome: Outcome) -> dict[str, Any]:
    """The parameters of a completing statement."""
    return {
        **held_values(granted),
        "state": int(outcome.state),
        "flags": flags_of(continued=outcome.continued, handed_over=outcome.handed_over, kept=outcome.kept),
        "result": outcome.result,
        "keep_us": micros(outcome.keep),
    }


def entry_of(row: Any) -> Entry:
    """An entry as the domain knows it."""
    return Entry(
        digest=bytes(row.digest),
        key=row.key,
        state=State(row.state),
        fence=row.fence,
        attempt=bytes(row.attempt),
        identity=bytes(row.identity),
        task_id=row.task_id,
        fingerprint=bytes(row.fingerprint),
        lease_left=(row.lease_until - row.now) / MICROS,
        deaths=row.deaths,
        attempts=row.attempts,
        retries=row.retries,
        continued=bool(row.flags & CONTINUED),
        handed_over=bool(row.flags & HANDED_OVER),
        result=None if row.result is None else bytes(row.result),
        result_kept=not row.flags & NOT_KEPT,
        since=row.since / MICROS,
        unsent=bool(getattr(row, "unsent", True)),
    )
