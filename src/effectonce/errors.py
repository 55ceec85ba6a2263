"""What can go wrong, one class for each thing that a caller may want to catch.

An error carries facts, says what happened, and what to do about it. Facts are plain JSON values, so an error
travels through pickle (the pool's pipe) and through Celery's JSON result path (``exc_type``, ``args``) and comes
out equal. Nothing secret belongs in a fact: no URL with its password, no result, no argument values beyond
what a caller needs in order to see which call is meant.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

PAGES = "https://effectonce.readthedocs.io/reference/errors"


class EffectOnceError(Exception):
    """Base of all errors of this library; never triggers ``autoretry_for``.

    *facts* is the mapping that Celery gives back from a stored result; code gives facts by name.
    """

    code: ClassVar[str] = "effect-once"
    message: ClassVar[str] = "something went wrong"
    hint: ClassVar[str] = ""

    def __init__(self, facts: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Keep the facts; they are also attributes of the error."""
        self.facts: dict[str, Any] = {**(facts or {}), **named}
        super().__init__(self.facts)

    def __getattr__(self, name: str) -> Any:
        """Read a fact as an attribute."""
        facts = self.__dict__.get("facts", {})
        if name in facts:
            return facts[name]
        raise AttributeError(name)

    @property
    def page(self) -> str:
        """The page that explains this error."""
        return f"{PAGES}/{self.code}"

    def __str__(self) -> str:
        """Say what happened, the facts, and what to do."""
        lines = [f"{self.code}: {_filled(self.message, self.facts)}"]
        lines += [f"  {line}" for line in self.details()]
        if self.hint:
            lines.append(f"  hint: {_filled(self.hint, self.facts)}")
        lines.append(f"  see: {self.page}")
        return "\n".join(lines)

    def details(self) -> list[str]:
        """Lines of facts between the message and the hint."""
        return []


class _Facts(dict[str, Any]):
    def __missing__(self, name: str) -> str:
        return f"<{name} not known>"


def _filled(template: str, facts: Mapping[str, Any]) -> str:
    return template.format_map(_Facts(facts))


class _ListsFaults(EffectOnceError):
    def details(self) -> list[str]:
        return [f"- {fault}" for fault in self.facts.get("faults", ())]


class SettingsInvalid(_ListsFaults):
    """Settings that cannot be used; all of them in one report."""

    code = "settings-invalid"
    message = "the settings of effectonce cannot be used"
    hint = "correct every line above; the reference lists all settings and their values"


class PolicyInvalid(_ListsFaults):
    """A task's ``once=`` that cannot be used; raised when the task is defined."""

    code = "policy-invalid"
    message = "task '{task}' has a policy that cannot be used"
    hint = "correct every line above where the task is defined"


class NotInstalled(EffectOnceError):
    """A task with a policy runs on an app that has no EffectOnce."""

    code = "not-installed"
    message = "task '{task}' has a policy, but its app has no EffectOnce: nothing would guard it, so it did not run"
    hint = "write once = EffectOnce(app, ledger=...) beside the app, before its tasks run"


class OutsideEffect(EffectOnceError):
    """``once.effect``, ``once.session`` or ``once.connection`` was used where no guarded body runs."""

    code = "outside-effect"
    message = "once.{face} was used outside the body of a guarded task that has one"
    hint = "use it inside a task with once=Transactional(...) or once=Leased(...), in the body's own thread"


class KeyMissing(EffectOnceError):
    """A task without a key was called without one."""

    code = "key-missing"
    message = "task '{task}' names no key, and this call brought none"
    hint = "give once=Policy('name:{{parameter}}'), or effect_key= at the call"


class KeyInvalid(EffectOnceError):
    """A key has a part that cannot name an effect."""

    code = "key-invalid"
    message = "task '{task}': part '{part}' of its key cannot name an effect: {reason}"
    hint = "build the key from stable, non-empty text, whole numbers, dates, UUIDs or lists of them"


class EtaTooFar(EffectOnceError):
    """A message is due later than its broker lets a worker hold it, and `effectonce_far_eta` is "raise"."""

    code = "eta-too-far"
    message = (
        "task '{task}' is due in {seconds:.0f} s, and the broker gives a message to another worker when it was held "
        "for {timeout:.0f} s"
    )
    hint = (
        "it runs once only while every worker on this broker renews what it holds (effectonce_renew_visibility); "
        "send it nearer to its time, or keep its time in a table"
    )


class SentInTransaction(EffectOnceError):
    """A message was sent while a transaction was open, and `effectonce_send_in_transaction` is "raise"."""

    code = "sent-in-transaction"
    message = "task '{task}' was sent while a transaction is open that may still be rolled back"
    hint = "send it inside `with once.outbox():`, or after the commit (delay_on_commit); nothing was sent"


class EffectKeyReused(EffectOnceError):
    """A key came again with other arguments: another effect hides behind it."""

    code = "effect-key-reused"
    message = "task '{task}' was called again with key '{key}', but with other arguments"
    hint = "add the argument that differs to the key, or name the arguments that matter in fingerprint="

    def details(self) -> list[str]:
        """Both fingerprints, and which received arguments differ; never a recorded value."""
        facts = _Facts(self.facts)
        differ = ", ".join(facts.get("differ", ())) or "arguments that were left out this time"
        return [
            "recorded: fingerprint {recorded} (attempt {recorded_attempt}, {recorded_at})".format_map(facts),
            f"received: fingerprint {facts['received']} (message {facts['message_id']}); differs: {differ}",
        ]


class EffectBusy(EffectOnceError):
    """Somebody else holds the effect now, and this call may not wait for it any longer."""

    code = "effect-busy"
    message = "task '{task}': the effect '{key}' is being carried out by another attempt"
    hint = "call it again after {wait:.1f} s; nothing was done by this call"


class EffectDuplicate(EffectOnceError):
    """The effect has taken place already, and the policy says ``on_duplicate='raise'``."""

    code = "effect-duplicate"
    message = "task '{task}': the effect '{key}' took place at {at} (task id {task_id})"
    hint = "nothing was done by this call; use on_duplicate='replay' to get the first result instead"


class EffectHeld(EffectOnceError):
    """The effect waits for a person: its holders died too often, or nobody knows how it ended."""

    code = "effect-held"
    message = "task '{task}': the effect '{key}' is held as {state} since {since}; it was not run"
    hint = "its message is kept; what is known and how to settle or rerun it: celery -A proj once show '{key}'"


class FenceRefused(EffectOnceError):
    """This attempt lost its claim: another one may be at work, so it must stop."""

    code = "fence-refused"
    message = "attempt {attempt} (fence {fence}) no longer holds the effect '{key}'"
    hint = "let the error pass: the work is rolled back and the message comes again; a longer lease= helps slow bodies"


class StepInvalid(EffectOnceError):
    """A step that cannot be run, or whose result cannot be given back."""

    code = "step-invalid"
    message = "task '{task}': step '{step}' of effect '{key}': {reason}"
    hint = "steps belong in a Leased body, each with a name of its own and a result that the serializer can carry"


class EffectNotFound(EffectOnceError):
    """No ledger of this app has an effect of that name."""

    code = "effect-not-found"
    message = "there is no effect '{key}' in {ledgers}"
    hint = "give its key as `celery -A proj once list` shows it, or the digest of its entry in hex"


class EntryRefused(EffectOnceError):
    """An entry cannot be settled, freed or redacted as it stands; nothing was changed."""

    code = "entry-refused"
    message = "the effect '{key}' cannot be {action}: {reason}"
    hint = "look at it with: celery -A proj once show '{key}'"


class SettledAsFailed(EffectOnceError):
    """A person has settled the effect as failed; each message of it ends with this error."""

    code = "settled-as-failed"
    message = "a person has settled the effect '{key}' as failed: {reason}"
    hint = "to let it run again: celery -A proj once reopen '{key}'"


class LedgerUnavailable(EffectOnceError):
    """The ledger could not be asked, so nothing was run."""

    code = "ledger-unavailable"
    message = "the ledger at {ledger} could not be asked: {reason}"
    hint = "nothing ran; messages wait and go on by themselves when the ledger answers"


class SchemaMissing(LedgerUnavailable):
    """The ledger answers, but its tables are not there or are too old."""

    code = "schema-missing"
    message = "the ledger at {ledger} has no usable tables: {reason}"
    hint = "create them with: celery -A proj once schema create (or, if they are older, schema upgrade); nothing ran"


class LedgerUnsuitable(EffectOnceError):
    """This ledger cannot serve this policy."""

    code = "ledger-unsuitable"
    message = "the ledger at {ledger} cannot serve {policy} (task '{task}'): {reason}"
    hint = "a Transactional effect needs the SQL database that its body writes to; use Leased otherwise"


class OutboxUnsuitable(EffectOnceError):
    """``once.outbox`` was given a transaction that messages cannot be stored in."""

    code = "outbox-unsuitable"
    message = "messages cannot be stored with this transaction: {reason}"
    hint = "give a session of the SQL database that holds the ledger ({ledger})"


class TransactionEscaped(EffectOnceError):
    """The body ended or left the transaction that its ledger entry belongs to."""

    code = "transaction-escaped"
    message = "the body of effect '{key}' left its transaction: {how}"
    hint = "write through once.session or once.connection and let the guard commit; allow_escape=True permits it"


class ResultNotKept(EffectOnceError):
    """The effect took place, but its result is neither in the ledger nor in the result backend any more."""

    code = "result-not-kept"
    message = "task '{task}': the effect '{key}' took place, but its result was not kept: {reason}"
    hint = "the work is done and was not repeated; raise effectonce_result_max_bytes, or return something smaller"


class ResultNotEncodable(EffectOnceError):
    """The body's result cannot be stored, so the body was rolled back before it could count as done."""

    code = "result-not-encodable"
    message = "task '{task}' returned something that its result serializer '{serializer}' cannot encode: {reason}"
    hint = "return plain values, or choose result_serializer; the work was rolled back or released"


class CommitUncertain(EffectOnceError):
    """The connection broke at the commit, and the ledger cannot say yet how it ended."""

    code = "commit-uncertain"
    message = "the connection broke while the effect '{key}' was being committed"
    hint = "nothing is lost: the message comes again and finds out"
