"""What a beat does while it leads: the book of the schedule, the agenda, the conductor.

A reign is made when a term is won and ends with it. It is played again and again; each time it looks at what has
changed in the schedule, sends what is due, and says how long it may rest.
"""

import time
from collections.abc import Callable
from typing import Any, Final

from celery.utils.imports import load_extension_class_names, symbol_by_name
from kombu.exceptions import OperationalError

from effectonce.app.beat.book import Book, Later, message_options
from effectonce.app.sending import recording
from effectonce.domain.outbox import Message
from effectonce.domain.series import SECOND, Instant
from effectonce.domain.terms import Term
from effectonce.domain.ticks import Missed, Planned, Tick
from effectonce.ports import TickStore, is_storing
from effectonce.runtime.agenda import Agenda
from effectonce.runtime.conductor import Conductor, Deposed
from effectonce.runtime.sending import NotSent, SendingConductor
from effectonce.runtime.storing import StoringConductor

_RETRY: Final = 0.5
"""Seconds until what the broker did not take is tried again."""

_LOOK: Final = 0.5
"""Seconds for which a look at the whole schedule is good: with many entries, or a database behind them, it costs more
than the ticks."""


def wall_clock() -> Instant:
    """This machine's time."""
    return time.time_ns() // 1000


class Reign:
    """One leader's work under *term*; *trusted* tells the term while it may be acted on."""

    def __init__(
        self, once: Any, book: Book, store: TickStore, *, term: Term, trusted: Callable[[], Term | None]
    ) -> None:
        self.term = term
        self._trusted: Callable[[], bool] = lambda: trusted() is term
        self.book = book
        self._once = once
        self._agenda = Agenda()
        self._conductor = self._conducting(store)
        self._unsent_since: float | None = None
        self._looked_at: float | None = None
        self._has_skipped_look = False

    def _conducting(self, store: TickStore) -> Conductor:
        """Ticks and their messages commit together where terms, ticks and the outbox are in one database."""
        under: dict[str, Any] = {
            "group": self.term.name,
            "term": lambda: self.term if self._trusted() else None,
            "find": self.book.find,
            "note": self.book.advance,
            "emit": self._once.emit,
            "since": wall_clock(),
        }
        if is_storing(store) and self._once.settings.leases is None:
            return StoringConductor(store, record=self._record, depart=self._once.dispatcher.dispatch, **under)
        return SendingConductor(store, send=self._send, **under)

    @property
    def stores_messages(self) -> bool:
        """Whether its messages go through the outbox."""
        return isinstance(self._conductor, StoringConductor)

    def play(self) -> float:
        """Send what is due; answers the seconds until there may be more."""
        self._look()
        now = wall_clock()
        entries = self._planned(now)
        try:
            for name, at in self._conductor.play(entries, now).items():
                self._agenda.put(name, at)
                self.book.next_at(name, at)
        except BaseException:
            for entry in entries:
                self._agenda.put(entry.name, now)
            raise
        return self._rest()

    @property
    def unsent_for(self) -> float:
        """Seconds since something could not be sent, and still is not."""
        if not self._conductor.has_unsent:
            self._unsent_since = None
            return 0.0
        if self._unsent_since is None:
            self._unsent_since = time.monotonic()
        return time.monotonic() - self._unsent_since

    def _look(self) -> None:
        self._has_skipped_look = self._seconds_until_look() > 0
        if self._has_skipped_look:
            return
        self._looked_at = time.monotonic()
        new, gone = self.book.changed()
        now = wall_clock()
        for name in new:
            self._agenda.put(name, now)
        for name in gone:
            self._agenda.drop(name)
            self._conductor.forget(name)

    def _planned(self, now: Instant) -> list[Planned]:
        found = []
        for name in self._agenda.take(now):
            match self.book.plan(name, now):
                case Planned() as planned:
                    found.append(planned)
                case Later(at=at):
                    self._agenda.put(name, at)
                case None:
                    self._conductor.forget(name)
        return found

    def _seconds_until_look(self) -> float:
        return 0.0 if self._looked_at is None else self._looked_at + _LOOK - time.monotonic()

    def _rest(self) -> float:
        first = self._agenda.first()
        rest = self.book.max_interval
        if self._has_skipped_look:
            rest = min(rest, max(self._seconds_until_look(), 0.0))
        if first is not None:
            rest = min(rest, max((first - wall_clock()) / SECOND, 0.0))
        return min(rest, _RETRY) if self._conductor.has_unsent else rest

    def _send(self, planned: Planned, tick: Tick) -> None:
        """Publish with confirmation, through the scheduler's own ``apply_async``."""
        confirmed = self._once.confirmed
        sent = self._addressed(planned, tick, **confirmed.options)
        try:
            with confirmed.acquire() as producer:
                self.book.inner.apply_async(sent, producer=_Trusted(producer, self._trusted), advance=False)
        except Exception as error:
            if isinstance(error.__context__, Deposed):
                raise error.__context__ from None
            if _is_away(error):
                raise NotSent(repr(error.__context__ or error)) from error
            raise

    def _record(self, planned: Planned, tick: Tick) -> list[Message]:
        """What the scheduler's ``apply_async`` would publish; it goes nowhere."""
        messages: list[Message] = []
        sent = self._addressed(planned, tick)
        with recording(self._once, messages.append), self._once.app.producer_or_acquire() as producer:
            self.book.inner.apply_async(sent, producer=producer, advance=False)
        return messages

    def _addressed(self, planned: Planned, tick: Tick, **options: Any) -> Any:
        """A copy of the entry that is sent with the id and the headers of its tick."""
        entry = self.book.entry(planned.name)
        sent = copy_of(entry)
        sent.options = {**message_options(entry, tick), **options}
        return sent


class _Trusted:
    """A producer that publishes nothing once the term is over: the last look before the message goes."""

    def __init__(self, producer: Any, trusted: Callable[[], bool]) -> None:
        self._producer = producer
        self._is_trusted = trusted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def publish(self, *args: Any, **options: Any) -> Any:
        """Publish, if we still lead."""
        if not self._is_trusted():
            raise Deposed
        return self._producer.publish(*args, **options)


def copy_of(entry: Any) -> Any:
    """A shallow copy; `copy.copy` breaks on entries of models and of RedBeat, whose ``__reduce__`` is another's."""
    twin = object.__new__(type(entry))
    vars(twin).update(vars(entry))
    return twin


def _is_away(error: BaseException) -> bool:
    """Whether an error, or what it was made of, says that the broker cannot be reached."""
    links: list[BaseException | None] = [error, error.__context__, error.__cause__]
    return any(isinstance(each, (OperationalError, ConnectionError, OSError)) for each in links)


def open_book(app: Any, wrapped: Any, *, missed: Missed, options: dict[str, Any]) -> Book:
    """Start the scheduler that is wrapped, and open its book."""
    inner = scheduler_class(wrapped)(app=app, lazy=False, **options)
    bases = {f"{base.__module__}:{base.__qualname__}" for base in type(inner).__mro__}
    if "redbeat.schedulers:RedBeatScheduler" in bases:
        from effectonce.app.beat.redbeat import RedBeatBook  # noqa: PLC0415 - only the book in use is loaded

        return RedBeatBook(inner, missed=missed)
    if "django_celery_beat.schedulers:DatabaseScheduler" in bases:
        from effectonce.app.beat.database import DatabaseBook  # noqa: PLC0415 - only the book in use is loaded

        return DatabaseBook(inner, missed=missed)
    return Book(inner, missed=missed)


def scheduler_class(wrapped: Any) -> Any:
    """The class that a setting names, by its path, by an alias of Celery's, or itself."""
    return symbol_by_name(wrapped, aliases=dict(load_extension_class_names("celery.beat_schedulers")))
