"""How a task becomes guarded: its class gets both doors when it is bound.

Celery asks the app's annotations about each class that it binds, whatever kind of definition it has. Ours stands
before the user's and delegates to them, since Celery takes the first answer only. It sets the doors itself: the form
``@__call__`` would strip a decorator of the user's, and two of them do not stack (celery 5.7.0, `Task.add_around`).
Tasks that were bound before the library was installed get their doors then.

A class is given doors only if it carries a policy, so other tasks cost nothing. ``celery.*`` is left alone.
"""

from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, Final

from celery import VERSION
from celery.app.annotations import prepare
from celery.app.task import Context, Task

from effectonce.app.call import inner_door, outer_door
from effectonce.app.canvas import keep_tick
from effectonce.app.frames import current_frame
from effectonce.app.guard import body_signature
from effectonce.app.on_commit import join_on_commit
from effectonce.app.tracing import Tracer
from effectonce.app.worker_request import guarded_request
from effectonce.domain.policies import Policy

if TYPE_CHECKING:
    from effectonce.app.extension import EffectOnce

_DOOR: Final = "_effectonce_door"

_UNCHANGING: Final = frozenset({int, str, float, bool, bytes, type(None)})
"""Types of arguments that no body can change: they need no copy."""


class Annotations:
    """The one annotation object of a guarded app; reads the user's own when the first task is bound."""

    def __init__(self, once: "EffectOnce", app: Any) -> None:
        self._once = once
        self._app = app
        self._users: list[Any] | None = None

    def annotate(self, cls: Any) -> dict[str, Any] | None:
        """Guard *cls* if it carries a policy, and answer what the user says about it by name."""
        named = next((said for said in (each.annotate(cls) for each in self._user()) if said), None)
        policy = (named or {}).get("once", (self.annotate_any() or {}).get("once", getattr(cls, "once", None)))
        if isinstance(policy, Policy) and not cls.name.startswith("celery."):
            policy.check(cls.name, body_signature(cls), body=cls.run)
            give_doors(self._once, cls)
        join_on_commit(cls)
        return named

    def annotate_any(self) -> dict[str, Any] | None:
        """Answer what the user says about all tasks."""
        return next((said for said in (each.annotate_any() for each in self._user()) if said), None)

    def _user(self) -> list[Any]:
        if self._users is None:
            self._users = list(prepare(self._app.conf.task_annotations))
        return self._users


def give_doors(once: "EffectOnce", cls: Any) -> None:
    """Set both doors on a task's class, late acknowledgement, and the request that keeps chords counted (rule 20)."""
    if _DOOR not in vars(cls):
        setattr(cls, _DOOR, True)
        cls.run = _guarded_run(cls)
        cls.__call__ = _guarded_call(once, cls)
        cls.on_replace = _guarded_replace(cls)
        cls.Request = guarded_request(cls.Request)
        cls.__trace__ = Tracer()
        if VERSION < (5, 5):
            cls.push_request = _push_inheriting


def _push_inheriting(self: Any, *args: Any, **kwargs: Any) -> None:
    """What Celery's own does since 5.5: in 5.4 a class with a ``__call__`` hid an eager call's id and retries."""
    self.request_stack.push(Context(*args, **{**vars(self.request), **kwargs}))


def _guarded_replace(cls: Any) -> Callable[..., Any]:
    """Note that a body hands over: of a chain or group, the messages that are sent have other ids than the task.

    What a tick's task hands over to belongs to the tick: it is part of their keys too.
    """
    plain = cls.on_replace

    @wraps(plain)
    def on_replace(self: Any, sig: Any) -> Any:
        frame = current_frame()
        if frame is not None and frame.task is self:
            frame.replaced = True
            keep_tick(sig, frame.request.headers or {})
        return plain(self, sig)

    return on_replace


def _guarded_call(once: "EffectOnce", cls: Any) -> Callable[..., Any]:
    plain = cls.__call__

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - it is one
        guard = once.guard_of(self)
        if guard is None:
            return plain(self, *args, **kwargs)
        _guard_instance(self)
        return outer_door(guard, self, plain, args, kwargs)

    return __call__


def _guarded_run(cls: Any) -> Any:
    raw = getattr_static(cls, "run")
    static = isinstance(raw, staticmethod)
    body = raw.__func__ if static else raw
    run = _inner(body, cls)
    return staticmethod(run) if static else run


def _inner(body: Callable[..., Any], cls: Any) -> Callable[..., Any]:
    @wraps(body)
    def run(*args: Any, **kwargs: Any) -> Any:
        frame = current_frame()
        if frame is None or frame.begun or type(frame.task) is not cls:
            return body(*args, **kwargs)
        frame.begun = True
        return inner_door(frame, _turns(body, args, kwargs))

    setattr(run, _DOOR, True)
    return run


def _turns(body: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any]:
    """The body with its arguments, as new for each turn: a transaction that is run again may have changed them."""
    pristine = _copied((args, kwargs))
    first = True

    def turn() -> Any:
        nonlocal first
        given, first = ((args, kwargs) if first else _copied(pristine)), False
        return body(*given[0], **given[1])

    return turn


def _copied(arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A deep copy, but of the task itself; what cannot be copied (a direct call may bring it) is shared."""
    args, kwargs = arguments
    if _UNCHANGING.issuperset(map(type, args)) and _UNCHANGING.issuperset(map(type, kwargs.values())):
        return arguments[0], dict(kwargs)
    try:
        return tuple(each if isinstance(each, Task) else deepcopy(each) for each in args), deepcopy(kwargs)
    except Exception:  # noqa: BLE001 - any object may refuse to be copied, in its own way
        return arguments


def _guard_instance(task: Any) -> None:
    """Put the inner door where an instance has its own ``run``: autoretry of a task that was bound late.

    `register_task` adds autoretry before it binds, so what it kept as ``_orig_run`` is the bare body.
    """
    kept = vars(task).get("_orig_run")
    if kept is not None and not hasattr(kept, _DOOR):
        task._orig_run = _inner(kept, type(task))  # noqa: SLF001 - listed in test_celery_names


def is_guarded(cls: Any) -> bool:
    """Tell whether a class has its doors."""
    return _DOOR in vars(cls)
