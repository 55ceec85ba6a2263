"""A call's arguments by parameter, defaults applied, however the call is written.

``inspect.Signature.bind`` takes longer than all the rest of a key, so ordinary calls are bound by tables made once a
task. Whatever is not ordinary (``*args``, ``**kwargs``, a call that does not fit) goes to ``bind``, which also raises
the TypeError that the body would have raised.
"""

from collections.abc import Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, Final

MISSING: Final = Parameter.empty

_BY_NAME: Final = frozenset({Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY})
_BY_PLACE: Final = frozenset({Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD})
_VARIADIC: Final = frozenset({Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD})


class Arguments:
    """The parameters of one task; `values` gives a call's arguments in their order."""

    __slots__ = ("_defaults", "_places", "_places_by_name", "_required", "_signature", "_variadic")

    def __init__(self, signature: Signature) -> None:
        parameters = list(signature.parameters.values())
        self._signature = signature
        self._defaults = tuple(each.default for each in parameters)
        self._places_by_name = {each.name: at for at, each in enumerate(parameters) if each.kind in _BY_NAME}
        self._places = sum(each.kind in _BY_PLACE for each in parameters)
        self._required = tuple(at for at, each in enumerate(parameters) if each.default is MISSING)
        self._variadic = any(each.kind in _VARIADIC for each in parameters)

    def values(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
        """The arguments of a call, one for each parameter; raises TypeError for a call that does not fit."""
        given = len(args)
        if self._variadic or given > self._places:
            return self._bound(args, kwargs)
        values = [*args, *self._defaults[given:]]
        for name, value in kwargs.items():
            place = self._places_by_name.get(name, -1)
            if place < given:
                return self._bound(args, kwargs)
            values[place] = value
        for place in self._required:
            if values[place] is MISSING:
                return self._bound(args, kwargs)
        return values

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return list(bound.arguments.values())
