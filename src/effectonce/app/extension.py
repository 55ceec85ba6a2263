"""`EffectOnce`: the one object that a user makes."""

import os
import random
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from effectonce.app.annotations import Annotations, give_doors
from effectonce.app.bootsteps import add_steps
from effectonce.app.brokers import visibility_timeout
from effectonce.app.bypass import bypassing
from effectonce.app.canvas import refuse_keys_on_wholes
from effectonce.app.copies import Confirmed
from effectonce.app.current import Effect, current_connection, current_effect, current_session
from effectonce.app.definitions import check_when_defined
from effectonce.app.entries import Entries
from effectonce.app.far_etas import FarEtas
from effectonce.app.guard import Guard, body_signature
from effectonce.app.http import Http
from effectonce.app.kombu_broker import KombuBroker
from effectonce.app.observing import Observing
from effectonce.app.on_commit import join_on_commit
from effectonce.app.places import Places
from effectonce.app.publish import install_seam
from effectonce.app.relays import add_relays
from effectonce.app.revoking import cancel_parked_when_revoked
from effectonce.app.sending import Outbox
from effectonce.app.unique import tell_of_first_sends
from effectonce.domain.deferral import CAP, away_delay
from effectonce.domain.deliveries import Delivery
from effectonce.domain.keys import Key
from effectonce.domain.modes import Mode
from effectonce.domain.policies import Exclusive, Natural, Policy, Unique
from effectonce.errors import OutboxUnsuitable, SettingsInvalid
from effectonce.events import Event
from effectonce.ports import LedgerStore, is_transactional
from effectonce.ports.outbox import OutboxStore
from effectonce.runtime.keeper import Keeper
from effectonce.runtime.relay import Dispatcher, Relay, Straight
from effectonce.settings import PREFIX, Settings, read_settings, unknown_settings

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from sqlalchemy.orm import Session

    from effectonce.stores.sql.bound import BoundSessions


class EffectOnce:
    """Lets the tasks of a Celery app that carry ``once=`` take effect once.

    ``EffectOnce(app, ledger=..., **settings)``, or later ``init_app(app)`` with a Celery app or a Flask app that
    carries one. *ledger* is a SQLAlchemy URL, Engine, sessionmaker or scoped_session, or ``redis://``, or
    ``memory://`` for tests. Every setting may stand in ``app.conf`` as ``effectonce_*`` instead; what is given here
    goes first. Nothing is read or connected before it is needed. Raises SettingsInvalid for a name that is no
    setting; what the configuration holds is checked when it is first read, all of it at once.
    """

    def __init__(self, app: Any = None, *, ledger: Any = None, **settings: Any) -> None:
        faults = unknown_settings(settings)
        if faults:
            raise SettingsInvalid(faults=faults)
        self.records = False
        self._given = dict(settings) if ledger is None else {**settings, "ledger": ledger}
        self._guards: dict[int, tuple[Any, Guard]] = {}
        self._forget_process()
        os.register_at_fork(after_in_child=self._forget_process)
        self._http = Http(self)
        self._bound: BoundSessions | None = None
        if hasattr(ledger, "session_factory") or (hasattr(ledger, "kw") and hasattr(ledger, "configure")):
            self.bind(ledger)
        self.app: Any = None
        if app is not None:
            self.init_app(app)

    def _forget_process(self) -> None:
        """A forked process opens its own ledger and renews its own leases."""
        self._lock = threading.RLock()
        self._places = Places(self)
        self._keepers: dict[LedgerStore, Keeper] = {}
        self._dispatchers: dict[LedgerStore, Dispatcher | Straight] = {}
        self._observing: Observing | None = None

    def emit(self, event: Event) -> None:
        """Tell this process's observers of an event."""
        observing = self._observing
        if observing is None:
            with self._lock:
                observing = self._observing = self._observing or Observing(self, records=self.records)
        observing.emit(event)

    def keep_history(self) -> None:
        """From now on this process and its children write down what is not ordinary; workers say so."""
        if not self.records:
            self.records, self._observing = True, None

    def write_history(self) -> None:
        """Write what is not written yet, before the process ends."""
        if self._observing is not None:
            self._observing.stop()

    def init_app(self, app: Any) -> None:
        """Guard this app's tasks, those that are defined already too.

        An app factory calls it for each app that it makes, as tests do: the last one has its own ledger.
        """
        celery = _celery_of(app)
        self._forget_process()
        self._context = nullcontext if app is celery else getattr(app, "app_context", nullcontext)
        self.app = celery
        self._settings: Settings | None = None
        self._broker_uris: frozenset[str] | None = None
        celery.effectonce = self
        self.confirmed = Confirmed(celery)
        self.far_etas = FarEtas(self)
        celery.__dict__["annotations"] = [Annotations(self, celery)]
        for task in list(celery._tasks.values()):  # noqa: SLF001 - listed in test_celery_names
            policy = getattr(task, "once", None)
            if isinstance(policy, Policy):
                policy.check(task.name, body_signature(task), body=task.run)
                give_doors(self, type(task))
            join_on_commit(type(task))
        install_seam(self, celery)
        tell_of_first_sends(self, celery)
        refuse_keys_on_wholes()
        check_when_defined(celery)
        add_steps(celery)
        add_relays(celery)
        cancel_parked_when_revoked(celery)

    @property
    def settings(self) -> Settings:
        """The settings, read when first needed; raises SettingsInvalid with all their faults."""
        if self._settings is None:
            conf, namespace = self.app.conf, getattr(self.app, "namespace", None)
            names = _our_names(conf, namespace)
            found = {name: conf.get(PREFIX + name) for name in names}
            given = {**found, **self._given}
            self._settings = read_settings(given, names, needs_ledger=self._needs_ledger(given))
        return self._settings

    def _needs_ledger(self, given: Mapping[str, Any]) -> bool:
        """Whether there is a task with entries in a ledger; where there is no task yet, there may be one."""
        elsewhere = (Natural, Exclusive, Unique) if given.get("leases") else Natural
        tasks = self.app._tasks.values()  # noqa: SLF001 - `tasks` would finalize the app; listed in test_celery_names
        found = [policy for policy in (getattr(task, "once", None) for task in tasks) if isinstance(policy, Policy)]
        if given.get("mode") == Mode.OFF.value:
            return False
        policies = [policy for policy in found if policy.mode != Mode.OFF.value]
        return not found or not all(isinstance(policy, elsewhere) for policy in policies)

    @property
    def mode(self) -> Mode:
        """How far the app's policies act, unless one says otherwise; all the way where the settings are bad."""
        try:
            return Mode(self.settings.mode)
        except SettingsInvalid:
            return Mode.ENFORCE

    def bypassed(self, *, session: Any = None) -> AbstractContextManager[None]:
        """A context for unit tests: in this thread, calls of guarded tasks run their bodies and ask no store.

        *session* is what a body gets as ``once.session``; its commit stays the test's. The effect has its key, its
        idempotency keys and its steps; messages go out at once, as without this library.
        """
        return bypassing(self, session)

    @property
    def context(self) -> Callable[[], AbstractContextManager[Any]]:
        """The context of the application around this app, where it has one."""
        return self._context

    @property
    def ledger(self) -> LedgerStore:
        """This process's ledger; of several the default one."""
        return self._places.ledger()

    @property
    def leases(self) -> LedgerStore:
        """Where `Exclusive` and `Unique` live: the ledger, unless ``effectonce_leases`` names another place."""
        return self._places.leases()

    def ledger_of(self, key: Key) -> LedgerStore:
        """Where the entry of an effect is."""
        return self._places.ledger(namespace=key.namespace, scope=key.scope)

    def leases_of(self, key: Key) -> LedgerStore:
        """Where the lease of an effect is."""
        return self._places.leases(namespace=key.namespace, scope=key.scope)

    @property
    def ledgers(self) -> tuple[LedgerStore, ...]:
        """All ledgers of this app, the default one first."""
        return self._places.ledgers()

    @property
    def stores(self) -> tuple[LedgerStore, ...]:
        """Every place where this app has entries; what loops and commands go over."""
        return self._places.all()

    @property
    def entries(self) -> Entries:
        """What people do with single effects: find, settle, rerun, reopen, redact, prune."""
        return Entries(self)

    def keeper_of(self, store: LedgerStore) -> Keeper:
        """What renews this process's leases in *store*."""
        keeper = self._keepers.get(store)
        if keeper is None:
            with self._lock:
                keeper = self._keepers.setdefault(store, Keeper(lambda: store, emit=self.emit))
        return keeper

    @property
    def broker(self) -> KombuBroker:
        """The app's broker, as the outbox sees it."""
        return KombuBroker(self.confirmed)

    @property
    def dispatcher(self) -> Dispatcher | Straight:
        """What sends this process's committed messages that are in the default ledger."""
        return self.dispatcher_of(self.ledger)

    def dispatcher_of(self, ledger: LedgerStore) -> Dispatcher | Straight:
        """What sends this process's messages that are committed in *ledger*."""
        found = self._dispatchers.get(ledger)
        if found is None:
            off, store = self.mode is Mode.OFF, partial(self.outbox_store, ledger)
            found = Straight(self.broker) if off else Dispatcher(store, self.broker, emit=self.emit)
            self._dispatchers[ledger] = found
        return found

    def relay(self, ledger: LedgerStore | None = None) -> Relay:
        """A relay over a ledger's outbox, the default one's unless given; OutboxUnsuitable where it has none."""
        return Relay(partial(self.outbox_store, ledger), self.broker, emit=self.emit)

    def outbox_store(self, ledger: LedgerStore | None = None) -> OutboxStore:
        """Where messages wait, in the default ledger unless given; raises OutboxUnsuitable where it has no outbox."""
        ledger = self.ledger if ledger is None else ledger
        if not is_transactional(ledger):
            raise OutboxUnsuitable(ledger=ledger.name, reason="the ledger is not a SQL database")
        return ledger.outbox

    def outbox(self, session: Any = None, *, in_order: str | None = None) -> Outbox:
        """A context in which every message that this thread sends is stored in a transaction, and sent after it.

        *session*: a Session, scoped_session or AsyncSession of the ledger's database; its commit stores and sends,
        its rollback (also of a savepoint) forgets. Without one: the transaction of the `Transactional` body, where
        this is one; else the context has its own, which commits at its end and not after an error. *in_order*:
        messages with the same text here are sent by relays, one after the other, in the order of their commits.

        Raises OutboxUnsuitable where messages cannot be stored.
        """
        return Outbox(self, session, order=in_order)

    @property
    def http(self) -> Http:
        """What HTTP endpoints and the middleware of `effectonce.http` use."""
        return self._http

    def bind(self, *makers: Any) -> None:
        """Notice transactions of these sessions: what is sent in one goes with it (``effectonce_send_in_transaction``).

        *makers*: sessionmaker, async_sessionmaker, scoped_session or a Session class. A ledger that is given as one of
        the first two kinds of sessions, or as a scoped_session, is bound already. Raises TypeError for anything else.
        """
        if self._bound is None:
            from effectonce.stores.sql.bound import BoundSessions  # noqa: PLC0415 - only where sessions are used

            self._bound = BoundSessions()
        for maker in makers:
            self._bound.bind(maker)

    def bound_session(self) -> Any:
        """The session that is bound and in a transaction here; None without one."""
        return None if self._bound is None else self._bound.current()

    def is_own_broker(self, connection: Any) -> bool:
        """Whether a connection goes to the broker that this app sends to."""
        if self._broker_uris is None:
            own = self.app.connection_for_write()
            others = [self.app.connection_for_write(url) for url in own.alt]
            self._broker_uris = frozenset(each.as_uri() for each in (own, *others))
        return connection is None or connection.as_uri() in self._broker_uris

    @property
    def effect(self) -> Effect:
        """The effect of the body that this thread is in; raises OutsideEffect elsewhere."""
        return current_effect()

    @property
    def session(self) -> "Session":
        """The session of the transaction that this body's entry commits in; raises OutsideEffect elsewhere."""
        found: Session = current_session()
        return found

    @property
    def connection(self) -> "Connection":
        """The connection of the transaction that this body's entry commits in; raises OutsideEffect elsewhere."""
        found: Connection = current_connection()
        return found

    def guard_of(self, task: Any) -> Guard | None:
        """The guard of a task, made once; None for a task without a policy."""
        policy = getattr(task, "once", None)
        if not isinstance(policy, Policy):
            return None
        known = self._guards.get(id(task))
        if known is None or known[0] is not policy:
            known = (policy, Guard(self, task, policy))
            self._guards[id(task)] = known
        return known[1]

    @property
    def longest_delay(self) -> float:
        """Seconds that a copy may wait: a third of the broker's visibility timeout, so that it is not repeated."""
        timeout = visibility_timeout(self.app)
        return CAP if timeout is None else min(CAP, timeout / 3)

    def away_delay(self, delivery: Delivery) -> float:
        """Seconds until a delivery looks again whose ledger could not be asked."""
        jitter = random.random()  # noqa: S311 - jitter, not a secret
        return away_delay(deferrals=delivery.deferrals, jitter=jitter, cap=self.longest_delay)


def _celery_of(app: Any) -> Any:
    """The Celery app itself, or the one that a Flask app carries in its extensions."""
    extensions = getattr(app, "extensions", None)
    if isinstance(extensions, dict) and "celery" in extensions:
        return extensions["celery"]
    if hasattr(app, "amqp") and hasattr(app, "conf"):
        return app
    fault = f"init_app needs a Celery app, or a Flask app with extensions['celery'], not {type(app).__name__}"
    raise SettingsInvalid(faults=[fault])


def _our_names(conf: Any, namespace: str | None) -> set[str]:
    """Names without prefix of all our settings in the configuration, known or not."""
    start = f"{namespace.lower()}_" if namespace else ""
    plain = {str(name).lower() for name in conf}
    named = {name.removeprefix(start) if start else name for name in plain}
    return {name.removeprefix(PREFIX) for name in named if name.startswith(PREFIX)}
