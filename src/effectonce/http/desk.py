"""Where requests come in, whatever the framework: which key, whether it may run, what its answer means."""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never

from effectonce.app.http import Conversation
from effectonce.domain.claims import Busy, Continued, Entry, Held, Outcome, Poison, Replay, Reused, State, Verdict
from effectonce.domain.idempotency import KeyRefused, Meaning, fingerprint_of, meaning_of, read_key
from effectonce.domain.modes import Mode
from effectonce.errors import CommitUncertain, FenceRefused, LedgerUnavailable, SettingsInvalid, TransactionEscaped
from effectonce.http import answers
from effectonce.http.answers import Answer
from effectonce.http.bodies import without_boundary
from effectonce.ports import Conflict

logger = logging.getLogger("effectonce")

DAY: Final = 24 * 3600.0
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A request as far as it is known before its body is read; *query* without its question mark."""

    method: str
    path: str
    query: str
    content_type: str
    keys: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a middleware was told.

    *once*: the app's `EffectOnce`. *required*: whether a request must have a key, or what says so of method and path.
    *methods*: the others are let through. *caller*: who calls, as text that stays the same from one attempt to the
    next; None leaves it to the middleware. *keep_seconds*: life of a record, None for ever. *lease_seconds*: after the
    death of a process, seconds until its requests may run again; None is the app's. *max_request_bytes*: longer
    requests under a key are refused. *max_response_bytes*: longer answers are not kept. *meaning*: what a status means.
    *sessions*: an `async_sessionmaker` or `AsyncEngine` of the ledger's database, for asynchronous endpoints.
    """

    once: Any
    required: bool | Callable[[str, str], bool] = False
    methods: Sequence[str] = ("POST", "PATCH")
    caller: Callable[[Any], str] | None = None
    keep_seconds: float | None = DAY
    lease_seconds: float | None = None
    max_request_bytes: int = 100 * _MIB
    max_response_bytes: int = _MIB
    meaning: Callable[[int], Meaning] = meaning_of
    sessions: Any = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant, all of it at once."""
        faults = []
        if not hasattr(self.once, "http"):
            faults.append("once must be the app's EffectOnce")
        if isinstance(self.methods, str):
            faults.append(f"methods must be several, as in methods=({self.methods!r},)")
        faults += [f"{name} must be above 0" for name in _NUMBERS if not _is_above_0(getattr(self, name))]
        faults += [f"{name} must be callable" for name in ("caller", "meaning") if not _may_call(getattr(self, name))]
        if faults:
            raise SettingsInvalid(faults=faults)


_NUMBERS: Final = ("keep_seconds", "lease_seconds", "max_request_bytes", "max_response_bytes")


def _is_above_0(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0)


def _may_call(value: Any) -> bool:
    return value is None or callable(value)


class Desk:
    """Where the requests of one middleware come in."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._methods = frozenset(method.upper() for method in terms.methods)

    def key_of(self, seen: Seen, *, required: bool | None = None) -> str | Answer | None:
        """The request's key; None: it runs without one; an Answer: it does not run. *required* goes first."""
        if seen.method.upper() not in self._methods or self.terms.once.mode is not Mode.ENFORCE:
            return None
        try:
            key = read_key(seen.keys)
        except KeyRefused as refused:
            return answers.invalid(str(refused))
        if key is None and (self._is_required(seen) if required is None else required):
            return answers.missing()
        return key

    def _is_required(self, seen: Seen) -> bool:
        required = self.terms.required
        return bool(required(seen.method, seen.path)) if callable(required) else required

    def converse(self, seen: Seen, key: str | None, *, caller: str, body: bytes) -> Conversation:
        """The request as the app knows it; nothing is claimed yet. *body*: the digest of its body."""
        terms = self.terms
        if key is None:
            return terms.once.http.converse(sessions=terms.sessions)  # type: ignore[no-any-return]
        fingerprint = fingerprint_of(
            method=seen.method.upper(),
            path=seen.path,
            query=seen.query,
            content_type=without_boundary(seen.content_type),
            body=body,
        )
        return terms.once.http.converse_under(  # type: ignore[no-any-return]
            key,
            caller=caller,
            method=seen.method.upper(),
            path=seen.path,
            fingerprint=fingerprint,
            keep=terms.keep_seconds,
            lease=terms.lease_seconds,
            sessions=terms.sessions,
        )

    def admit(self, conversation: Conversation) -> Answer | None:
        """Claim the request's effect: None lets it run, an Answer is what it gets instead."""
        try:
            verdict = conversation.exchange.begin()
        except LedgerUnavailable as error:
            logger.error("a request under a key was not let in: %s", error)  # noqa: TRY400 - nothing to trace
            return answers.away()
        return None if verdict is None else _instead(verdict)

    def settle(self, conversation: Conversation, answer: Answer, *, is_whole: bool) -> Answer:
        """End the request with its endpoint's answer: commit or roll back, and keep it or not.

        Answers what the caller is to get: the same, or a refusal where the work could not be committed.
        """
        exchange = conversation.exchange
        meaning = self.terms.meaning(answer.status)
        if meaning is Meaning.FREE:
            exchange.let_go()
            return answer
        if meaning is Meaning.REFUSED:
            exchange.undo()
        works = exchange.work is not None
        try:
            exchange.settle(self._outcome(conversation, answer, is_whole=is_whole))
        except (FenceRefused, LedgerUnavailable, CommitUncertain, Conflict, TransactionEscaped) as error:
            return self._not_settled(conversation, answer, error, works=works)
        return answer

    def _outcome(self, conversation: Conversation, answer: Answer, *, is_whole: bool) -> Outcome | None:
        if conversation.exchange.claim is None:
            return None
        kept = is_whole and len(answer.body) <= self.terms.max_response_bytes
        result = answers.encode(answer) if kept else None
        return Outcome(state=State.COMPLETED, result=result, kept=kept, continued=True, keep=self.terms.keep_seconds)

    @staticmethod
    def _not_settled(conversation: Conversation, answer: Answer, error: Exception, *, works: bool) -> Answer:
        if isinstance(error, CommitUncertain):  # a release would wait for that very commit
            conversation.exchange.undo()
            return answers.away()
        if not works:
            logger.error("a request was carried out, and its answer could not be recorded: %s", error)
            return answer
        conversation.exchange.let_go()
        if isinstance(error, TransactionEscaped):
            raise error
        logger.warning("a request was rolled back: %s", error)
        return answers.running(1) if isinstance(error, FenceRefused) else answers.away()


def _instead(verdict: Verdict) -> Answer:
    match verdict:
        case Replay(entry=entry) | Continued(entry=entry):
            return _replayed(entry)
        case Reused():
            return answers.reused()
        case Busy(wait=wait):
            return answers.running(max(1, math.ceil(wait or 0)))
        case Poison() | Held():
            return answers.held()
    assert_never(verdict)


def _replayed(entry: Entry) -> Answer:
    if entry.result is None:
        return answers.not_kept()
    return answers.decode(entry.result)
