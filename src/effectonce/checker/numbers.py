"""The value of an expression, as far as it can be known without running it.

Durations are seconds, `timedelta` too, so that limits, delays and timeouts compare as numbers. A value read from the
environment counts as its default: that is what runs where nobody set it. What cannot be known is `UNKNOWN`.
"""

import ast
import operator
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Final, Literal

from effectonce.checker.names import last

DEEPEST: Final = 30
LARGEST: Final = 10**15


class _Unknown(Enum):
    UNKNOWN = auto()


UNKNOWN: Final = _Unknown.UNKNOWN
Unknown = Literal[_Unknown.UNKNOWN]
Lookup = Callable[[ast.expr], "tuple[ast.expr, Numbers] | None"]
"""The expression that a name or attribute stands for, with the numbers of the place where it is written; or None."""
Name = Callable[[ast.expr], str]
"""The dotted name of an expression."""

_UNITS: Final = {
    "weeks": 604800.0,
    "days": 86400.0,
    "hours": 3600.0,
    "minutes": 60.0,
    "seconds": 1.0,
    "milliseconds": 0.001,
    "microseconds": 0.000001,
}
_TIMEDELTA: Final = ("days", "seconds", "microseconds", "milliseconds", "minutes", "hours", "weeks")
_NUMBERS: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}
_CASTS: Final = {"int", "float", "str", "bool"}
_ENVIRONMENT: Final = {"get", "getenv", "int", "float", "str", "bool", "env", "config", "url", "get_env", "getint"}


class Numbers:
    """Evaluates the expressions of one place; *lookup* says what its names stand for."""

    def __init__(self, lookup: Lookup, name: Name) -> None:
        self._lookup = lookup
        self._name = name

    def value(self, node: ast.expr | None, depth: int = 0) -> Any:
        """The value of *node*: a plain Python value, or UNKNOWN."""
        if node is None or depth > DEEPEST:
            return UNKNOWN
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name() | ast.Attribute():
                meaning = self._lookup(node)
                if meaning is None or meaning[0] is node:
                    return UNKNOWN
                return meaning[1].value(meaning[0], depth + 1)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self.value(operand, depth + 1)
                return -number if _is_number(number) else UNKNOWN
            case ast.BinOp():
                return self._binary(node, depth)
            case ast.BoolOp(op=ast.Or(), values=values):
                known = [self.value(each, depth + 1) for each in values]
                return next((each for each in known if each is not UNKNOWN and each is not None), UNKNOWN)
            case ast.JoinedStr(values=parts):
                return "".join(part.value if _is_text(part) else "{}" for part in parts)  # type: ignore[attr-defined]
            case ast.Call():
                return self._call(node, depth)
            case _:
                return self._collection(node, depth)

    def _collection(self, node: ast.expr, depth: int) -> Any:
        match node:
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                return {
                    key.value: self.value(value, depth + 1) for key, value in pairs if isinstance(key, ast.Constant)
                }
            case ast.List(elts=elts) | ast.Tuple(elts=elts):
                return [self.value(each, depth + 1) for each in elts]
            case _:
                return UNKNOWN

    def _binary(self, node: ast.BinOp, depth: int) -> Any:
        left, right = self.value(node.left, depth + 1), self.value(node.right, depth + 1)
        if isinstance(left, str) and isinstance(right, str) and isinstance(node.op, ast.Add):
            return left + right
        action = _NUMBERS.get(type(node.op))
        if action is None or not _is_number(left) or not _is_number(right):
            return UNKNOWN
        try:
            number = action(left, right)
        except (ZeroDivisionError, OverflowError):
            return UNKNOWN
        return number if abs(number) < LARGEST else UNKNOWN

    def _call(self, node: ast.Call, depth: int) -> Any:
        name = last(self._name(node.func))
        if name == "timedelta":
            return self._timedelta(node, depth)
        if name == "dict":
            return {each.arg: self.value(each.value, depth + 1) for each in node.keywords if each.arg}
        if name == "total_seconds" and isinstance(node.func, ast.Attribute):
            return self.value(node.func.value, depth + 1)
        if name in _CASTS and len(node.args) == 1 and isinstance(node.func, ast.Name):
            return _cast(name, self.value(node.args[0], depth + 1))
        if name in _ENVIRONMENT:
            return self._environment(node, name, depth)
        return UNKNOWN

    def _environment(self, node: ast.Call, name: str, depth: int) -> Any:
        given = next((each.value for each in node.keywords if each.arg == "default"), None)
        if given is None and len(node.args) > 1:
            given = node.args[1]
        value = self.value(given, depth + 1)
        return _cast(name, value) if name in _CASTS else value

    def _timedelta(self, node: ast.Call, depth: int) -> Any:
        total = 0.0
        parts = [*zip(_TIMEDELTA, node.args, strict=False), *((each.arg or "", each.value) for each in node.keywords)]
        for unit, each in parts:
            number = self.value(each, depth + 1)
            if unit not in _UNITS or not _is_number(number):
                return UNKNOWN
            total += number * _UNITS[unit]
        return total


def seconds(value: Any) -> float | None:
    """*value* as a number of seconds, or None where it is no number."""
    if isinstance(value, str):
        value = _cast("float", value)
    return float(value) if _is_number(value) and not isinstance(value, bool) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < LARGEST


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _cast(name: str, value: Any) -> Any:
    if value is UNKNOWN or value is None:
        return UNKNOWN
    try:
        match name:
            case "int":
                return int(value)
            case "float":
                return float(value)
            case "bool":
                return value if isinstance(value, bool) else str(value).lower() in {"1", "true", "yes", "on"}
            case _:
                return str(value)
    except (TypeError, ValueError, OverflowError):
        return UNKNOWN
