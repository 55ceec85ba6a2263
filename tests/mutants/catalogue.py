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
    Mutant(
        name="on Redis, no fence in what a holder writes",
        file="stores/redis/entry.lua",
        old="if old[1] == attempt and old[2] == fence then",
        new="if old[1] then",
        tests=("tests/conformance/test_redis.py",),
    ),
    Mutant(
        name="a fence is no part of what a holder writes",
        file="stores/sql/step_statements.py",
        old='MINE = "digest = :digest and fence = :fence and attempt = :attempt"',
        new='MINE = "digest = :digest and :fence is not null and attempt = :attempt"',
        tests=CONFORMANCE,
    ),
    Mutant(
        name="a death is not counted",
        file="domain/claims.py",
        old="takeover=True, deaths=entry.deaths + 1",
        new="takeover=True, deaths=entry.deaths",
        tests=("tests/unit/domain/test_claims.py", "tests/conformance/test_memory.py"),
    ),
    Mutant(
        name="the holder's own message may be skipped",
        file="app/endings.py",
        old="    may_be_own = busy.own or (busy.wait is None and delivery.may_repeat)\n",
        new="    may_be_own = False\n",
        tests=("tests/integration/policies", "tests/integration/worker/test_visibility.py", "-k", "redis"),
    ),
    Mutant(
        name="a delivery whose copy was refused is acknowledged",
        file="app/endings.py",
        old="        raise Reject(error, requeue=True) from error",
        new="        raise Ignore(str(error)) from error",
        tests=("tests/unit/app/test_endings.py", "tests/networks/test_copies.py"),
    ),
    Mutant(
        name="a holder that slept ends by a bare acknowledgement",
        file="app/endings.py",
        old='    _busy_again(frame, Busy(wait=None, own=True), why="fenced")',
        new='    message = "fenced"\n    raise Ignore(message)',
        tests=("tests/unit/app/test_endings.py",),
    ),
    Mutant(
        name="a copy expires while it waits",
        file="app/copies.py",
        old="retries=request.retries, expires=None)",
        new="retries=request.retries)",
        tests=("tests/integration/app/test_copies.py",),
    ),
    Mutant(
        name="a copy is not confirmed",
        file="app/copies.py",
        old='{**given, "confirm_publish": True}',
        new="{**given}",
        tests=("tests/networks/test_copies.py",),
    ),
    Mutant(
        name="a commit whose answer was lost counts as not done",
        file="stores/sql/asking.py",
        old="            if ended is True:\n                return",
        new="            if ended is True:\n                break",
        tests=("tests/networks/test_commit.py",),
    ),
    Mutant(
        name="tasks are acknowledged early",
        file="domain/policies.py",
        old="        ours = tuple(option for option in _ACKS if getattr(owner, option, None) is None)\n",
        new="        ours: tuple[str, ...] = ()\n",
        tests=("tests/unit/domain/test_task_classes.py",),
    ),
    Mutant(
        name="a policy without an app that guards it runs",
        file="domain/policies.py",
        old='if getattr(task.app, "effectonce", None) is None:',
        new="if task is None:",
        tests=("tests/unit/domain/test_task_classes.py",),
    ),
    Mutant(
        name="a finished step is run again",
        file="domain/steps.py",
        old="    if step.ended is not None:\n        return GiveBack(step=step)\n",
        new="",
        tests=("tests/unit/domain/test_steps.py",),
    ),
    Mutant(
        name="the start of a step is not recorded",
        file="runtime/steps.py",
        old="        if not self._is_trusted or not self._insist("
        "lambda: self._store.begin_step(self._granted, name, holds=holds)):",
        new="        if not self._is_trusted:",
        tests=("tests/integration/app/test_steps.py",),
    ),
    Mutant(
        name="two effects show the outside one key",
        file="domain/keys.py",
        old="blake2b(digest + encode_text(step)",
        new="blake2b(encode_text(step)",
        tests=("tests/unit/domain/test_keys.py",),
    ),
    Mutant(
        name="a key without its namespace",
        file="domain/keys.py",
        old="                encode_text(namespace),\n",
        new="",
        tests=("tests/unit/domain/test_keys.py",),
    ),
    Mutant(
        name="a key without its tick",
        file="domain/keys.py",
        old="                encode_optional(tick),\n",
        new="",
        tests=("tests/unit/domain/test_keys.py",),
    ),
    Mutant(
        name="a message is run whose entry may be gone",
        file="domain/overdue.py",
        old="return due is not None and keep is not None and now - due > keep",
        new="return False",
        tests=("tests/unit/domain/test_overdue.py",),
    ),
    Mutant(
        name="entries go before their time",
        file="stores/sql/keeping_statements.py",
        old="and keep_until < {dialect.moment} ",
        new="and (keep_until > 0 or {dialect.moment} < 0) ",
        tests=CONFORMANCE,
    ),
    Mutant(
        name="entries go whose messages were not sent",
        file="stores/sql/keeping_statements.py",
        old='            f"and not exists (select 1 from {outbox} o where o.effect = {entries}.digest)"\n',
        new="",
        tests=("tests/integration/sql/test_pruner.py",),
    ),
    Mutant(
        name="a leader goes on when its term is over",
        file="stores/sql/schedule_statements.py",
        old='stands = f"digest = :term and fence = :fence and holder = :holder and ends > {clock}"',
        new='stands = f"digest = :term and fence = :fence and holder = :holder and ends > 0 * {clock}"',
        tests=("tests/conformance/test_schedule.py", "-k", "SQLite or sqlite"),
    ),
    Mutant(
        name="an instant may come after a later one",
        file="stores/sql/schedule_statements.py",
        old="(select 1 from {ticks} where entry = :entry and instant >= :instant)",
        new="(select 1 from {ticks} where entry = :entry and instant = :instant)",
        tests=("tests/conformance/test_schedule.py", "-k", "SQLite or sqlite"),
    ),
)
