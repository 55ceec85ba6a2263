"""Where an app's effects are recorded: one ledger, or several by namespace or scope.

A mapping names its ledgers: that of the effect's namespace, else that of its scope, else ``"default"``. A callable is
asked with both and answers a ledger; asked without, it answers all there may be, since loops and commands go over all.
What belongs to no effect (terms of beats, HTTP requests, messages of a process that has no body) is in the default one.

Each process opens its own stores, when it first needs them.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final

from effectonce.app.ledgers import open_ledger
from effectonce.domain.modes import Mode
from effectonce.errors import SettingsInvalid
from effectonce.ports import LedgerStore, is_transactional
from effectonce.settings import NO_LEDGER

if TYPE_CHECKING:
    from effectonce.app.extension import EffectOnce

DEFAULT: Final = "default"

_CHOOSERS: Final = (FunctionType, MethodType, partial)
"""A sessionmaker and a scoped_session can be called too; they are ledgers."""


class Places:
    """The stores of one app in one process."""

    def __init__(self, once: "EffectOnce") -> None:
        self._once = once
        self._lock = threading.RLock()
        self._opened: dict[Any, LedgerStore] = {}

    @property
    def are_open(self) -> bool:
        """Whether one was needed by now."""
        return bool(self._opened)

    def ledger(self, *, namespace: str = "", scope: str = "") -> LedgerStore:
        """The ledger of effects with this namespace and scope; without either, the default one."""
        source = self._once.settings.ledger
        if isinstance(source, Mapping):
            name = next((name for name in (namespace, scope) if name in source), DEFAULT)
            return self._open("ledger", source[name])
        if isinstance(source, _CHOOSERS):
            return self._open("ledger", source(namespace, scope))
        return self._open("ledger", source)

    def leases(self, *, namespace: str = "", scope: str = "") -> LedgerStore:
        """Where the leases of such effects live: with their entries, unless there is one place for all of them."""
        source = self._once.settings.leases
        return self.ledger(namespace=namespace, scope=scope) if source is None else self._open("leases", source)

    def ledgers(self) -> tuple[LedgerStore, ...]:
        """All ledgers, the default one first."""
        source = self._once.settings.ledger
        if source is None:
            return ()
        return tuple(dict.fromkeys([self.ledger(), *(self._open("ledger", each) for each in _all(source))]))

    def all(self) -> tuple[LedgerStore, ...]:
        """All ledgers, and the place of the leases where that is another one."""
        leases = () if self._once.settings.leases is None else (self.leases(),)
        return tuple(dict.fromkeys((*self.ledgers(), *leases)))

    def _open(self, setting: str, source: Any) -> LedgerStore:
        place = _place(source)
        opened = self._opened.get(place)
        if opened is not None:
            return opened
        settings = self._once.settings
        with self._lock:
            if place not in self._opened:
                if source is None:
                    raise SettingsInvalid(faults=[NO_LEDGER])
                self._opened[place] = store = open_ledger(
                    source,
                    setting=setting,
                    schema=settings.schema,
                    create_schema=settings.create_schema,
                    context=self._once.context,
                )
                _forgo(store, self._once.mode)
            return self._opened[place]


def _all(source: Any) -> Iterable[Any]:
    if isinstance(source, Mapping):
        return list(source.values())
    if isinstance(source, _CHOOSERS):
        choose: Callable[..., Iterable[Any]] = source
        return list(choose(None, None))
    return [source]


def _place(source: Any) -> Any:
    """What tells two sources apart: a text by its letters, an object by itself."""
    return source if isinstance(source, str) else id(source)


def _forgo(ledger: LedgerStore, mode: Mode) -> None:
    """An app whose policies are off leaves nothing behind in its ledger, so that it can be taken away."""
    if mode is Mode.OFF and is_transactional(ledger):
        ledger.outbox.forgo()
