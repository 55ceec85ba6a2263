"""Locks that a body takes in Redis or in a cache: under which name, for how long."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from effectonce.checker.keyuses import is_store
from effectonce.checker.module import Function
from effectonce.checker.numbers import UNKNOWN, seconds
from effectonce.checker.survey import Survey
from effectonce.checker.walk import Step

DJANGO_DEFAULT: Final = 300.0
MOST_LOCKS: Final = 40
_TAKES: Final = frozenset({"Lock", "lock", "setnx", "add", "set"})
_RENEWALS: Final = frozenset(
    {"extend", "reacquire", "expire", "pexpire", "touch", "renew", "refresh", "keep_alive", "heartbeat"}
)
_NO_LOCK: Final = re.compile(
    r"rate|throttl|cache_key|debounc|cooldown|recent|last_|quota|notified|warned", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, eq=False)
class Lock:
    """One place where a lock is taken; *ttl* is in seconds, None for ever, UNKNOWN where it cannot be told."""

    how: str
    step: Step
    key: ast.expr
    ttl: Any

    @property
    def is_renewable(self) -> bool:
        """Tell whether it is a lock object that compares its token when it is released."""
        return self.how == "lock"


def locks_of(function: Function, survey: Survey) -> list[Lock]:
    """The first locks that the body of *function* takes; what is named a throttle is none."""
    if "locks" not in function.found_once:
        function.found_once["locks"] = list(islice(_locks(function, survey), MOST_LOCKS))
    found: list[Lock] = function.found_once["locks"]
    return found


def _locks(function: Function, survey: Survey) -> Iterator[Lock]:
    for step in function.calling(_TAKES):
        lock = _lock(step, function, survey)
        if lock is not None and not is_throttle(lock.key):
            yield lock


def is_throttle(key: ast.expr) -> bool:
    """Tell whether a key is named for something whose second run does no harm."""
    return _NO_LOCK.search(ast.unparse(key)[:200]) is not None


def renews(functions: list[Function]) -> bool:
    """Tell whether one of *functions* prolongs a lock while it works."""
    return any(function.calling(_RENEWALS) for function in functions)


def _lock(step: Step, function: Function, survey: Survey) -> Lock | None:
    word, receiver, call = step.word, step.receiver, step.call
    if word == "Lock" and step.name.startswith("redis.") and len(call.args) > 1:
        return Lock("lock", step, call.args[1], _given(call, 2, name="timeout", function=function, survey=survey))
    if not call.args or not is_store(receiver):
        return None
    key = call.args[0]
    if word == "lock":
        return Lock("lock", step, key, _given(call, 1, name="timeout", function=function, survey=survey))
    if word == "setnx":
        return Lock("setnx", step, key, _expired_later(step, function, survey))
    if word == "add" and len(call.args) > 1:
        ttl = _given(call, 2, name="timeout", function=function, survey=survey, default=DJANGO_DEFAULT)
        return Lock("add", step, key, ttl)
    if word == "set" and _is_on(call, "nx"):
        return Lock("set", step, key, _expiry(call, function, survey))
    return None


def _is_on(call: ast.Call, name: str) -> bool:
    return any(
        each.arg == name and not (isinstance(each.value, ast.Constant) and not each.value.value)
        for each in call.keywords
    )


def _expiry(call: ast.Call, function: Function, survey: Survey) -> Any:
    for each in call.keywords:
        if each.arg in {"ex", "timeout"}:
            return _known(each.value, function, survey)
        if each.arg == "px":
            milliseconds = _known(each.value, function, survey)
            return milliseconds / 1000 if isinstance(milliseconds, float) else milliseconds
        if each.arg in {"exat", "pxat", None}:
            return UNKNOWN
    return _known(call.args[2], function, survey) if len(call.args) > 2 else None  # noqa: PLR2004 - SET key value ex


def _given(
    call: ast.Call,
    place: int,
    *,
    name: str,
    function: Function,
    survey: Survey,
    default: float | None = None,
) -> Any:
    node = next((each.value for each in call.keywords if each.arg == name), None)
    if any(each.arg is None for each in call.keywords):
        return UNKNOWN
    if node is None and len(call.args) > place:
        node = call.args[place]
    return default if node is None else _known(node, function, survey)


def _known(node: ast.expr, function: Function, survey: Survey) -> Any:
    value = survey.value(node, function)
    if value is UNKNOWN or value is None:
        return value
    number = seconds(value)
    return UNKNOWN if number is None else number


def _expired_later(step: Step, function: Function, survey: Survey) -> Any:
    """The time to live that `expire` gives to what `setnx` made."""
    for other in function.calls:
        if other.index > step.index and other.word in {"expire", "pexpire"} and len(other.call.args) > 1:
            return _known(other.call.args[1], function, survey)
    return None
