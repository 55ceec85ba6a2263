"""What people do with single effects: settle, run again, redact. The commands are made of these.

A change is one statement on condition of the entry as it was read, under a larger fence, so whatever an earlier holder
still does is refused. Then the messages that waited with it are published with confirmation, each forgotten after its
publish. A crash in between leaves some of them: `resend` (and the same word said again) sends the rest; one that is
sent twice takes effect once like any other.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from effectonce.app.copies import read_held, send_held
from effectonce.app.encoding import encode_failure, encode_result
from effectonce.domain.claims import Entry, Outcome, State
from effectonce.domain.policies import UNSET, Policy
from effectonce.domain.recognition import digest_in
from effectonce.domain.steps import Done, Failed, Step
from effectonce.errors import EffectNotFound, EntryRefused, LedgerUnavailable, SchemaMissing, SettledAsFailed
from effectonce.events import Event, Name
from effectonce.ports import LedgerStore, history_of
from effectonce.ports.history import Happened
from effectonce.runtime.historian import happened_of
from effectonce.runtime.pruner import Progress, Pruner

if TYPE_CHECKING:
    from effectonce.app.extension import EffectOnce

_EVENTS: Final = {
    "settled": Name.EFFECT_SETTLED,
    "rerun": Name.EFFECT_RERUN,
    "reopened": Name.EFFECT_REOPENED,
    "redacted": Name.EFFECT_REDACTED,
}

_DIGEST: Final = 16
"""Bytes of a digest."""

_HELD = frozenset({State.UNKNOWN, State.POISONED})
_FINISHED = frozenset({State.COMPLETED, State.FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An effect as it stands: entry, steps, and the messages that wait with it (task, args, kwargs, options)."""

    store: LedgerStore
    entry: Entry
    steps: Sequence[Step]
    waiting: Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What was done: the *entry* as it was before, the state it has now, and how many messages were sent again."""

    entry: Entry
    state: State
    sent: int


class Entries:
    """The entries of an app's ledgers, by key or by digest in hex."""

    def __init__(self, once: "EffectOnce", *, by: str = "") -> None:
        self._once = once
        self._by = by

    def by(self, who: str) -> "Entries":
        """The same, with *who* (a person's name, as it is to be read later) in the history of what is changed."""
        return Entries(self._once, by=who)

    def history(self, seen: Seen, *, limit: int = 200) -> Sequence[Happened]:
        """What was not ordinary about an effect, oldest first; empty where its ledger keeps no history."""
        kept = history_of(seen.store)
        if kept is None:
            return []
        try:
            return kept.of(seen.entry.digest, limit=limit)
        except SchemaMissing:
            return []

    def find(self, key: str) -> Sequence[Seen]:
        """All effects of that name; two tasks may use one text. Empty when there is none.

        A digest, and a key that one of the app's tasks makes, are looked up by the primary key. Only for others are
        the ledgers searched, in short statements, from one end to the other.
        """
        digest = _digest(key)
        found = (
            self._read([digest])
            if digest
            else [seen for seen in self._read(self._digests(key)) if seen.entry.key == key]
        )
        return found or [self._seen(store, entry) for store in self._once.stores for entry in store.find(key)]

    def _digests(self, key: str) -> Sequence[bytes]:
        """What the tasks of this app may mean by a readable key."""
        tasks = self._once.app.tasks.values()
        guards = {guard for guard in map(self._once.guard_of, tasks) if guard is not None}
        return sorted({named.digest for guard in guards for named in guard.named(key)})

    def _read(self, digests: Sequence[bytes]) -> Sequence[Seen]:
        found = [(store, store.read(digest)) for store in self._once.stores for digest in digests]
        return [self._seen(store, entry) for store, entry in found if entry is not None]

    def one(self, key: str) -> Seen:
        """The effect of that name; EffectNotFound, or EntryRefused when there are several."""
        found = self.find(key)
        if not found:
            raise EffectNotFound(key=key, ledgers=", ".join(store.name for store in self._once.stores))
        if len(found) > 1:
            digests = ", ".join(seen.entry.digest.hex() for seen in found)
            raise EntryRefused(
                key=key, action="meant", reason=f"several effects have this key; give a digest: {digests}"
            )
        return found[0]

    def settle(self, key: str, outcome: Done | Failed) -> Changed:
        """End an effect that is held: `Done(result)` or `Failed(message)`; its messages go on with that.

        Said again after a crash it sends what still waits.
        """
        seen = self.one(key)
        ended = self._outcome(seen, outcome)
        if seen.entry.state is ended.state and seen.waiting:
            return self._resent(seen, ended.state)
        self._must_be(seen, _HELD, "settled", "only what is held as unknown or poisoned waits for a person's word")
        return self._change(seen, "settled", ended.state, lambda by: seen.store.settle_held(seen.entry, ended, by=by))

    def rerun(self, key: str) -> Changed:
        """Let an effect run again that is held: its messages are sent again, finished steps stay finished.

        Where no message is kept (a hard time limit leaves none), the key is free, and the next call runs it.
        """
        seen = self.one(key)
        if seen.entry.state is State.RELEASED and seen.waiting:
            return self._resent(seen, State.RELEASED)
        self._must_be(seen, _HELD, "rerun", "only what is held is run again; reopen is for what has finished")
        return self._change(seen, "rerun", State.RELEASED, self._freeing(seen))

    def reopen(self, key: str) -> Changed:
        """Let a finished effect run once more, from its start, at the next call with its key."""
        seen = self.one(key)
        self._must_be(seen, _FINISHED, "reopened", "only what has finished is reopened; rerun is for what is held")
        return self._change(seen, "reopened", State.RELEASED, self._freeing(seen))

    def redact(self, key: str) -> Changed:
        """Take key, arguments' digests, result and steps away from a finished effect; its digest stays.

        The result in the result backend is forgotten too. No late duplicate runs; it ends with ResultNotKept.
        """
        seen = self.one(key)
        self._must_be(seen, _FINISHED, "redacted", "settle it or let it end first")
        if seen.waiting:
            raise EntryRefused(key=key, action="redacted", reason="messages wait with it that hold its arguments")
        changed = self._change(seen, "redacted", seen.entry.state, lambda _: seen.store.redact(seen.entry))
        if seen.entry.task_id:
            self._once.app.AsyncResult(seen.entry.task_id).forget()
        return changed

    def prune(self, progress: Progress | None = None) -> Mapping[str, int | None]:
        """Remove all entries whose time is over, in small batches.

        Answers how many went from each ledger, by its name; None where another process is pruning.
        """
        return {store.name: Pruner(store).prune(progress) for store in self._once.stores}

    def over(self, progress: Progress | None = None) -> Mapping[str, int]:
        """How many entries `prune` would remove from each ledger now; nothing is changed."""
        return {store.name: Pruner(store).over(progress) for store in self._once.stores}

    def _seen(self, store: LedgerStore, entry: Entry) -> Seen:
        waiting = [read_held(self._once.app, message) for message in store.held(entry.digest)]
        return Seen(store=store, entry=entry, steps=store.steps(entry.digest), waiting=waiting)

    def _must_be(self, seen: Seen, states: frozenset[State], action: str, why: str) -> None:
        state = seen.entry.state
        if state not in states:
            reason = f"it is {state.name.lower()}; {why}"
            raise EntryRefused(key=_name(seen.entry), action=action, reason=reason)

    def _freeing(self, seen: Seen) -> Callable[[bytes], bool]:
        keep = self._keep(seen)
        return lambda by: seen.store.free(seen.entry, by=by, keep=keep)

    def _change(self, seen: Seen, action: str, state: State, change: Callable[[bytes], bool]) -> Changed:
        if not change(os.urandom(8)):
            raise EntryRefused(key=_name(seen.entry), action=action, reason="it has moved since it was looked at")
        self._note(seen, action)
        return self._resent(seen, state)

    def _note(self, seen: Seen, action: str) -> None:
        """Write at once who changed what: a person's word must not be lost with its process."""
        was = seen.entry.state.name.lower()
        facts = {"was": was, **({"by": self._by} if self._by else {})}
        key = "" if action == "redacted" else seen.entry.key
        event = Event(name=_EVENTS[action], key=key, task_id=seen.entry.task_id, digest=seen.entry.digest, facts=facts)
        self._once.emit(event)
        kept = history_of(seen.store)
        if kept is not None:
            with suppress(LedgerUnavailable):
                kept.record([happened_of(event)], {(event.name.value, ""): 1})

    def _resent(self, seen: Seen, state: State) -> Changed:
        """Send what waits; the order is publish, then forget, so nothing is lost in between."""
        digest, sent = seen.entry.digest, 0
        for message in seen.store.held(digest):
            send_held(self._once.confirmed, self._once.app, message)
            seen.store.unhold(digest, message)
            sent += 1
        return Changed(entry=seen.entry, state=state, sent=sent)

    def _outcome(self, seen: Seen, said: Done | Failed) -> Outcome:
        task = self._task(seen) or _Nobody(self._once.app)
        keep = self._keep(seen)
        if isinstance(said, Failed):
            failure = encode_failure(task, SettledAsFailed(key=_name(seen.entry), reason=said.message))
            return Outcome(state=State.FAILED, result=failure, keep=keep)
        result = None if said.result is None else encode_result(task, said.result)
        return Outcome(state=State.COMPLETED, result=result, keep=keep)

    def _keep(self, seen: Seen) -> float | None:
        """How long the entry lives on: as its task says, where a message tells which one that is."""
        policy = getattr(self._task(seen), "once", None)
        keep = policy.keep_seconds if isinstance(policy, Policy) else UNSET
        return self._once.settings.keep_seconds if keep is UNSET else keep

    def _task(self, seen: Seen) -> Any:
        names = [message["task"] for message in seen.waiting]
        return self._once.app.tasks.get(names[0]) if names else None


def _digest(said: str) -> bytes | None:
    """A digest in hex, or the one at the end of a key that was too long to be written whole."""
    try:
        digest = bytes.fromhex(said)
    except ValueError:
        return digest_in(said)
    return digest if len(digest) == _DIGEST else None


class _Nobody:
    """As much of a task as a result needs, where no message says whose it is."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.backend = app.backend
        self.name = "?"


def _name(entry: Entry) -> str:
    return entry.key or entry.digest.hex()
