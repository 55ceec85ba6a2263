"""The list: what is broken, how, and which tests are asked to notice.

The tests that are named are quick ones which stand for many. A change that nobody notices is a hole in the tests, or a
line that nobody needs.
"""

from dataclasses import dataclass
from typing import Final

CONFORMANCE: Final = ("tests/conformance/test_sql.py", "-k", "SQLite")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """In *file*, under ``src/effectonce``, *old* becomes *new*; *tests* are pytest's arguments."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


MUTANTS: Final = (
    Mutant(
        name="no fence in what a holder writes",
        file="stores/sql/step_statements.py",
        old='MINE = "digest = :digest and fence = :fence and attempt = :attempt"',
        new='MINE = "digest = :digest and :fence is not null and :attempt is not null"',
        tests=CONFORMANCE,
    ),
    Mutant(
        name="a second claim replaces the first one's entry",
        file="stores/sql/dialects.py",
        old='return f"insert into {into} ({columns}) {values} on conflict ({unique}) do nothing"',
        new='return f"insert or replace into {into} ({columns}) {values}"',
        tests=CONFORMANCE,
    ),
    Mutant(
        name="a living holder is taken over",
        file="domain/claims.py",
        old="        and entry.lease_left <= 0\n        and same_arguments",
        new="        and same_arguments",
        tests=("tests/unit/domain/test_claims.py", "tests/model/test_protocol.py"),
    ),
    Mutant(
        name="a key that is fenced may be entered again by any retry",
        file="domain/claims.py",
        old="claim.reenter is not None and entry.fence == claim.reenter",
        new="claim.reenter is not None",
        tests=("tests/unit/domain/test_claims.py", "tests/model/test_protocol.py"),
    ),
    Mutant(
        name="a fence goes back with the clock",
        file="domain/claims.py",
        old="return max(previous + 1, micros)",
        new="return micros",
        tests=("tests/unit/domain/test_claims.py", "tests/conformance/test_memory.py"),
    ),
    Mutant(
        name="holders may die without end",
        file="domain/claims.py",
        old="        and entry.deaths + 1 < claim.max_takeovers\n",
        new="",
        tests=("tests/unit/domain/test_claims.py", "tests/model/test_protocol.py"),
    ),
    Mutant(
        name="the fingerprint is not looked at",
        file="domain/claims.py",
        old="return not entry.fingerprint or not claim.fingerprint or entry.fingerprint == claim.fingerprint",
        new="return True",
        tests=("tests/unit/domain/test_claims.py",),
    ),
    Mutant(
        name="a key without its scope",
        file="domain/keys.py",
        old="                encode_text(self._scope),\n",
        new="",
        tests=("tests/unit/domain/test_keys.py", "tests/property/test_keys.py"),
    ),
    Mutant(
        name="a slow answer buys time",
        file="runtime/keeper.py",
        old="held.lease = held.lease.renewed(asked)",
        new="held.lease = held.lease.renewed(self._clock())",
        tests=("tests/unit/runtime/test_keeper.py",),
    ),
    Mutant(
        name="renewal goes on when it was refused",
        file="runtime/keeper.py",
        old="            if held.granted.attempt in kept:\n",
        new="            if kept is not None:\n",
        tests=("tests/unit/runtime/test_keeper.py",),
    ),
    Mutant(
        name="a deferred delivery is acknowledged without its copy",
        file="app/copies.py",
        old="    _send_again(confirmed, task, request, countdown=delay, changed=changed)\n    crashpoints",
        new="    crashpoints",
        tests=(
            "tests/integration/worker/test_effects.py",
            "tests/integration/policies/test_exclusive.py",
            "-k",
            "redis",
        ),
    ),
    Mutant(
        name="a retry is published inside the transaction",
        file="app/publish.py",
        old="            frame.retry = kept_back(once.confirmed, send, name, message, options)\n",
        new="            kept_back(once.confirmed, send, name, message, options)()\n"
        "            frame.retry = lambda: None\n",
        tests=("tests/integration/sql/test_retries.py",),
    ),
    Mutant(
        name="messages are struck off before they are sent",
        file="runtime/relay.py",
        old="    try:\n        answers = broker.send([each.message for each in stored])\n",
        new="    store.strike(stored)\n    try:\n        answers = broker.send([each.message for each in stored])\n",
        tests=("tests/unit/runtime/test_relay.py", "tests/integration/outbox"),
    ),
    Mutant(
        name="a tick is sent before it is claimed",
        file="runtime/sending.py",
        old="        for batch in batches(list(claims)):\n            granted = [",
        new="        for batch in batches(list(claims)):\n"
        "            for claim in batch:\n                self._send(entries[claim.tick.name], claim.tick)\n"
        "            granted = [",
        tests=("tests/unit/runtime/test_conductor.py", "tests/integration/beat"),
    ),
    Mutant(
        name="a body's messages are stored outside of its transaction",
        file="stores/sql/work.py",
        old="        self._outgoing.store(self._ledger, self.connection, effect=self._claim.digest)\n",
        new="",
        tests=("tests/integration/outbox/test_bodies.py",),
    ),
)
