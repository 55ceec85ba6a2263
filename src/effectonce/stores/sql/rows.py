"""Between rows and the domain's values."""

from typing import Any

from effectonce.domain.claims import Claim, Entry, Granted, Outcome, State
from effectonce.stores.sql.dialects import MICROS
from effectonce.stores.sql.statements import flags_of
from effectonce.stores.sql.tables import CONTINUED, HANDED_OVER, NOT_KEPT


def lock_of(digest: bytes) -> int:
    """The try-lock's number: the first eight bytes of the digest. Two effects that share it are busy at times."""
    return int.from_bytes(digest[:8], "big", signed=True)


def micros(seconds: float | None) -> int | None:
    """Whole microseconds; None stays None."""
    return None if seconds is None else round(seconds * MICROS)


def claim_values(claim: Claim, *, state: State, keep: float | None = None) -> dict[str, Any]:
    """The parameters of an insert or a take."""
    return {
        "digest": claim.digest,
        "key": claim.key,
        "state": int(state),
        "attempt": claim.attempt,
        "identity": claim.identity,
        "task_id": claim.task_id,
        "fingerprint": claim.fingerprint,
        "lease_us": micros(claim.lease),
        "lease_ms": round(claim.lease * 1000),
        "retries": claim.retries,
        "keep_us": micros(keep),
        "lock": lock_of(claim.digest),
    }


def held_values(held: Granted | Entry) -> dict[str, Any]:
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
    )
