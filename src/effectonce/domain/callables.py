"""A key that a callable makes from the task's own arguments.

It is called with defaults applied, so every way to write a call gives it the same. A callable whose parameters are
names of the task's gets those by name, and may leave others out; any other gets all, in the task's order.
"""

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from inspect import Parameter, Signature
from typing import Any, Final

_VARIADIC: Final = frozenset({Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD})


class KeyCallable:
    """A task's key callable, ready to be called with the values of the task's parameters in their order."""

    __slots__ = ("_key", "_signature", "_taken")

    def __init__(self, key: Callable[..., Any], signature: Signature) -> None:
        names = tuple(signature.parameters)
        taken = names_taken(key, signature)
        self._key = key
        self._signature = signature
        self._taken = None if taken is None else tuple((name, names.index(name)) for name in taken)

    def __call__(self, values: Sequence[Any]) -> Any:
        """Make the key, or what is to be made one; an error of the callable's own passes."""
        if self._taken is not None:
            return self._key(**{name: values[place] for name, place in self._taken})
        arguments = dict(zip(self._signature.parameters, values, strict=True))
        bound = inspect.BoundArguments(self._signature, OrderedDict(arguments))
        return self._key(*bound.args, **bound.kwargs)


def callable_faults(key: Callable[..., Any], signature: Signature, *, fixed: bool = False) -> Iterable[str]:
    """Say why *key* cannot be called with the arguments of a task of this signature.

    *fixed*: it may make one key for all of them.
    """
    if inspect.iscoroutinefunction(key):
        yield "key: it is a coroutine function; a key is made without waiting"
        return
    own = _signature_of(key)
    if own is not None and not own.parameters:
        if fixed:
            return
        yield f"key: the callable {_called(key)}() takes no argument, so it would name one effect for ever"
    elif own is not None and names_taken(key, signature) is None and not _is_open(signature):
        yield from _misfits(key, own, signature)


def _misfits(key: Callable[..., Any], own: Signature, signature: Signature) -> Iterable[str]:
    try:
        own.bind(*_places(signature, positional=True), **dict.fromkeys(_places(signature, positional=False)))
    except TypeError as error:
        yield (
            f"key: the callable {_called(key)}{own} cannot be called with the task's arguments {signature} ({error}); "
            "give it parameters of the task's, by their names"
        )


def names_taken(key: Callable[..., Any], signature: Signature) -> tuple[str, ...] | None:
    """The parameters of the task's that *key* takes by name; None when it must be given all in their order."""
    own = _signature_of(key)
    if own is None:
        return None
    ours = {each.name for each in signature.parameters.values() if each.kind not in _VARIADIC}
    taken: list[str] = []
    for each in own.parameters.values():
        if each.kind in _VARIADIC or each.kind is Parameter.POSITIONAL_ONLY:
            return None
        if each.name in ours:
            taken.append(each.name)
        elif each.default is Parameter.empty:
            return None
    return tuple(taken)


def _signature_of(key: Callable[..., Any]) -> Signature | None:
    try:
        return inspect.signature(key)
    except (TypeError, ValueError):
        return None


def _is_open(signature: Signature) -> bool:
    return any(each.kind in _VARIADIC for each in signature.parameters.values())


def _places(signature: Signature, *, positional: bool) -> list[str]:
    return [
        each.name
        for each in signature.parameters.values()
        if each.kind not in _VARIADIC and (each.kind is not Parameter.KEYWORD_ONLY) is positional
    ]


def _called(key: Callable[..., Any]) -> str:
    return getattr(key, "__qualname__", type(key).__qualname__)
