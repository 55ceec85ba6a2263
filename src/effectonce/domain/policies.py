"""What a task promises about its effect: the option ``once=``.

A policy only keeps what it was given. It is checked against the task when the task is defined, where the task's name is
known: then one error lists every fault.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any, ClassVar, Final, Literal, TypedDict, Unpack

from effectonce.domain.callables import callable_faults
from effectonce.domain.options import choice_faults, name_faults, pointless_option, unknown_option, value_faults
from effectonce.domain.steps import OnUnknown
from effectonce.domain.templates import TemplateFaulty, read_template
from effectonce.errors import NotInstalled, PolicyInvalid


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


class Message(Enum):
    """The type of `MESSAGE`."""

    MESSAGE = "message"

    def __repr__(self) -> str:
        return "MESSAGE"


UNSET: Final = Unset.UNSET
"""Not given: the setting counts. It differs from None, which is a value of some options."""

MESSAGE: Final = Message.MESSAGE
"""As a key: the message's id. Weaker than a key from the arguments: a redelivery is noticed, a second call is not."""

SET_BY_US: Final = "_effectonce_acks"
"""The attribute of a task class that names the options of acknowledgement which its policy has set."""

_ACKS: Final = ("acks_late", "reject_on_worker_lost")

KeyOption = str | Callable[..., Any] | Message | None
Seconds = float | timedelta
OnBusy = Literal["defer", "wait", "skip", "raise", "follow"]


class Options(TypedDict, total=False):
    """The options that all policies share."""

    scope: str | None
    on_duplicate: Literal["replay", "raise"]
    on_busy: OnBusy
    remember: Sequence[type[Exception]]
    fingerprint: Literal["all"] | Sequence[str] | None
    keep: Seconds | Unset | None
    result: bool | None
    max_takeovers: int | Unset
    mode: Literal["enforce", "observe", "off"] | Unset
    key_at_call: bool
    at_send: "Unique | None"


_DEFAULTS: Final[Options] = {
    "scope": None,
    "on_duplicate": "replay",
    "on_busy": "defer",
    "remember": (),
    "fingerprint": "all",
    "keep": UNSET,
    "result": None,
    "max_takeovers": UNSET,
    "mode": UNSET,
    "key_at_call": False,
    "at_send": None,
}


@dataclass(frozen=True, slots=True, init=False)
class Policy:
    """What all policies share; use `Transactional`, `Leased`, `Exclusive` or `Natural`.

    *key*: a template over the parameters (``"charge:{order_id}"``), a callable of the same arguments, `MESSAGE`, or
    None for a task that is named by its call. *scope* keeps tasks apart: their name unless given. *remember*:
    exceptions that are a definitive outcome and are replayed; others release the key. *fingerprint*: which arguments
    have to be the same under one key. *keep*: the life of a finished entry, None for ever. *result*: whether the result
    is kept; None follows ``ignore_result``. *key_at_call*: every call brings its key, as ``effect_key=``. *at_send*:
    a second send of the same key gives the first one's result; see `Unique`.
    """

    key: KeyOption
    scope: str | None
    on_duplicate: Literal["replay", "raise"]
    on_busy: OnBusy
    remember: tuple[type[Exception], ...]
    fingerprint: Literal["all"] | tuple[str, ...] | None
    keep: Seconds | Unset | None
    result: bool | None
    max_takeovers: int | Unset
    mode: Literal["enforce", "observe", "off"] | Unset
    key_at_call: bool
    at_send: "Unique | None"
    unknown: tuple[str, ...] = field(repr=False)

    pointless: ClassVar[frozenset[str]] = frozenset()
    """Shared options that this policy has no use for: refused, not ignored."""

    one_for_ever: ClassVar[bool] = False
    """Whether a key may name one effect for ever: a template without a parameter."""

    each_tick_its_own: ClassVar[bool] = True
    """Whether the instants of a schedule are effects of their own, and ``effect_again`` a generation."""

    def __init__(self, key: KeyOption = None, **options: Unpack[Options]) -> None:
        given: dict[str, Any] = {**_DEFAULTS, **options}
        _put(
            self,
            key=key,
            unknown=tuple(name for name in given if name not in _DEFAULTS or self._is_pointless(name, given)),
        )
        _put(self, **{name: _settled(given[name]) for name in _DEFAULTS})

    def _is_pointless(self, name: str, given: dict[str, Any]) -> bool:
        return name in self.pointless and given[name] != _DEFAULTS.get(name)

    def __set_name__(self, owner: Any, name: str) -> None:
        """Prepare the task class that carries this policy, while what its author wrote can still be told apart.

        It is acknowledged late and comes back when its worker is lost, unless it says otherwise; a worker that does
        not enforce the policy takes that back (`SET_BY_US` tells what). And until an EffectOnce guards its app it
        refuses to run: unguarded in silence would be worse.
        """
        ours = tuple(option for option in _ACKS if getattr(owner, option, None) is None)
        for option in ours:
            setattr(owner, option, True)
        setattr(owner, SET_BY_US, ours)
        owner.__call__ = _refusing(owner.__call__)

    @property
    def keep_seconds(self) -> float | Unset | None:
        """*keep* in seconds; None for ever."""
        return self.keep.total_seconds() if isinstance(self.keep, timedelta) else self.keep

    def check(self, task_name: str, signature: inspect.Signature, *, body: Callable[..., Any] | None = None) -> None:
        """Raise PolicyInvalid with every fault, *signature* being that of the task's *body* without ``self``."""
        faults = [*self._option_faults(), *self._key_faults(task_name, signature), *_body_faults(body)]
        faults += name_faults(self.fingerprint, tuple(signature.parameters))
        if faults:
            raise PolicyInvalid(task=task_name, faults=faults)

    def _own_options(self) -> dict[str, Any]:
        """The options that this policy has beyond the shared ones."""
        return {}

    def _option_faults(self) -> Iterable[str]:
        if type(self) is Policy:
            yield "Policy is what all policies share; use Transactional, Leased, Exclusive, Natural or Unique"
        options = {**{name: getattr(self, name) for name in _DEFAULTS}, **self._own_options()}
        for name in self.unknown:
            if name in self.pointless:
                yield pointless_option(type(self).__name__, name)
            else:
                yield unknown_option(type(self).__name__, name, tuple(options))
        for name, value in options.items():
            if value is not UNSET:
                yield from choice_faults(name, value)
                yield from value_faults(name, value)
        at_send: Any = self.at_send
        if isinstance(at_send, Unique):
            yield from at_send.nested_faults()
        elif at_send is not None:
            yield f"at_send={at_send!r}: it must be Unique(until=...), or None"
        if self.on_busy == "follow" and not isinstance(self, Exclusive):
            yield "on_busy='follow' is for Exclusive: a message that came during a run would be its duplicate elsewhere"

    def _key_faults(self, task_name: str, signature: inspect.Signature) -> Iterable[str]:
        key: Any = self.key
        if isinstance(key, str):
            try:
                read_template(key, tuple(signature.parameters), task=task_name, fixed=self.one_for_ever)
            except TemplateFaulty as faulty:
                yield from faulty.faults
        elif callable(key) and not isinstance(key, type):
            yield from callable_faults(key, signature, fixed=self.one_for_ever)
        elif key is not None and key is not MESSAGE:
            yield f"key={key!r}: it must be a template, a callable, MESSAGE or None"


@dataclass(frozen=True, slots=True, init=False)
class Transactional(Policy):
    """The entry, the work and the messages commit together in the ledger's database, or not at all.

    *allow_escape* permits a body to end its own transaction; what it did before then is not undone with the rest.
    """

    allow_escape: bool

    def __init__(self, key: KeyOption = None, *, allow_escape: bool = False, **options: Unpack[Options]) -> None:
        Policy.__init__(self, key, **options)
        _put(self, allow_escape=allow_escape)

    def _own_options(self) -> dict[str, Any]:
        return {"allow_escape": self.allow_escape}


@dataclass(frozen=True, slots=True, init=False)
class Leased(Policy):
    """One holder at a time acts, each with a larger fence, and shows the outside the same idempotency key.

    *lease*: seconds that a hold lasts without renewal. *on_unknown*: what becomes of a step that was begun and whose
    end nobody saw: ``"retry"`` runs it again with the same key, ``"hold"`` leaves the effect to a person, ``"skip"``
    counts it as done. *reconcile*: a callable of effect and step that asks the outside first, and answers
    `Done(result)`, `NotDone` or `Unknown`.
    """

    lease: float | Unset
    on_unknown: OnUnknown
    reconcile: Callable[[Any, Any], Any] | None

    def __init__(
        self,
        key: KeyOption = None,
        *,
        lease: Seconds | Unset = UNSET,
        on_unknown: OnUnknown = "retry",
        reconcile: Callable[[Any, Any], Any] | None = None,
        **options: Unpack[Options],
    ) -> None:
        Policy.__init__(self, key, **options)
        _put(self, lease=_seconds(lease), on_unknown=on_unknown, reconcile=reconcile)

    def _own_options(self) -> dict[str, Any]:
        return {"lease": self.lease, "on_unknown": self.on_unknown, "reconcile": self.reconcile}


@dataclass(frozen=True, slots=True, init=False)
class Exclusive(Policy):
    """No two bodies of one key at the same time; a finished run does not stand in the way of the next message.

    *lease*: seconds after which the next one may start when the holder's process is gone; while it lives, it renews.
    *on_busy* is ``"skip"`` unless given: a message that comes while another one's body runs ends as REVOKED. The key
    may be a template without a parameter, so that it names the one run of a periodic task, whatever its tick. A copy
    of the very message that was carried out last is a duplicate, and gets its result. Arguments are not compared
    unless *fingerprint* says so.
    """

    lease: float | Unset

    pointless: ClassVar[frozenset[str]] = frozenset({"on_duplicate"})
    one_for_ever: ClassVar[bool] = True
    each_tick_its_own: ClassVar[bool] = False

    def __init__(self, key: KeyOption = None, *, lease: Seconds | Unset = UNSET, **options: Unpack[Options]) -> None:
        given: Options = {"on_busy": "skip", "fingerprint": None, **options}
        Policy.__init__(self, key, **given)
        _put(self, lease=_seconds(lease))

    def _own_options(self) -> dict[str, Any]:
        return {"lease": self.lease}

    def _key_faults(self, task_name: str, signature: inspect.Signature) -> Iterable[str]:
        yield from super(Exclusive, self)._key_faults(task_name, signature)
        if self.key is None and not self.key_at_call:
            yield "Exclusive keeps runs of one key apart, so it needs one; text will do, as in Exclusive('sync')"
        elif self.key is MESSAGE:
            yield "key=MESSAGE is another key for each message, so it keeps nothing apart; text will do, as in 'sync'"


@dataclass(frozen=True, slots=True, init=False)
class Natural(Policy):
    """The body is idempotent by meaning: running it again ends in the same state.

    No entry is written and no ledger asked. The message is acknowledged late and comes back when its worker is lost, so
    it is not lost either. *key*, if there is one, is for ``effect.idempotency_key``.
    """

    pointless: ClassVar[frozenset[str]] = frozenset(
        {"on_duplicate", "on_busy", "remember", "fingerprint", "keep", "result", "max_takeovers"}
    )
    one_for_ever: ClassVar[bool] = True

    def __init__(self, key: KeyOption = None, **options: Unpack[Options]) -> None:
        Policy.__init__(self, key, **options)
        _put(self, fingerprint=None)


@dataclass(frozen=True, slots=True, init=False)
class Unique(Policy):
    """A second send of the same key sends nothing and gives the first one's `AsyncResult`, and says so.

    As the option ``at_send`` of another policy it takes that one's key. Alone (``once=Unique("report:{day}")``) it has
    a key of its own, and the worker guards nothing: a message that the broker repeats runs again.

    *until*: how long the first send stands: until it is ``"done"``, until its body has ``"started"``, or for a time
    (seconds, or a timedelta). *lease*: seconds after which a reservation ends in any case, since its message may be
    lost; they begin when the message is due.
    """

    until: float | Literal["done", "started"]
    lease: float

    pointless: ClassVar[frozenset[str]] = Natural.pointless | {"at_send"}
    one_for_ever: ClassVar[bool] = True
    each_tick_its_own: ClassVar[bool] = False

    def __init__(
        self,
        key: KeyOption = None,
        *,
        until: Seconds | Literal["done", "started"] = "done",
        lease: Seconds = 3600.0,
        **options: Unpack[Options],
    ) -> None:
        Policy.__init__(self, key, **options)
        span: Any = until.total_seconds() if isinstance(until, timedelta) else until
        _put(self, fingerprint=None, until=span, lease=_seconds(lease))

    @property
    def seconds(self) -> float:
        """How long a reservation stands at most, once its message is due."""
        return self.lease if isinstance(self.until, str) else self.until

    def nested_faults(self) -> Iterable[str]:
        """Say what is wrong with it as another policy's ``at_send``."""
        for name, value in self._own_options().items():
            yield from (f"at_send: {fault}" for fault in value_faults(name, value))
        yield from (f"at_send: Unique has no use for {name}= there" for name in self.unknown)
        if self.key is not None or self.scope is not None or self.key_at_call:
            yield "at_send: Unique takes the key and the scope of its policy there; leave its own out"

    def _own_options(self) -> dict[str, Any]:
        return {"until": self.until, "lease": self.lease}

    def _key_faults(self, task_name: str, signature: inspect.Signature) -> Iterable[str]:
        yield from super(Unique, self)._key_faults(task_name, signature)
        if (self.key is None and not self.key_at_call) or self.key is MESSAGE:
            yield "Unique alone needs a key that two sends can share, as in Unique('report:{day}') or Unique('report')"


def _body_faults(body: Any) -> Iterable[str]:
    """Calling such a body does not run it: Celery would get an object, and the effect would count as done."""
    if inspect.iscoroutinefunction(body) or inspect.isasyncgenfunction(body):
        yield "the body is an async function, which Celery does not run; run it inside the body with asyncio.run()"
    elif inspect.isgeneratorfunction(body):
        yield "the body is a generator, which Celery does not run; go through it inside the body, and return a list"


def _refusing(plain: Callable[..., Any]) -> Callable[..., Any]:
    def __call__(task: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - it is one
        if getattr(task.app, "effectonce", None) is None:
            raise NotInstalled(task=task.name)
        return plain(task, *args, **kwargs)

    return __call__


def _put(policy: Policy, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(policy, name, value)


def _seconds(span: Seconds | Unset) -> float | Unset:
    return span.total_seconds() if isinstance(span, timedelta) else span


def _settled(value: Any) -> Any:
    """A tuple of what was given as another collection, so that nobody changes it afterwards."""
    return tuple(value) if isinstance(value, (list, set, frozenset)) else value
