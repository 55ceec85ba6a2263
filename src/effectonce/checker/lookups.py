"""Looks at a table that decide whether something is inserted into it."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from effectonce.checker.effects import sql_of
from effectonce.checker.module import Function
from effectonce.checker.names import dotted, last
from effectonce.checker.walk import Kind, Step

MOST_LOOKS: Final = 40
_LOOKS: Final = frozenset(
    {
        "exists",
        "aexists",
        "first",
        "afirst",
        "count",
        "get",
        "aget",
        "one_or_none",
        "scalar",
        "scalar_one_or_none",
        "filter",
        "filter_by",
        "find_one",
        "execute",
    }
)
_SELECT: Final = re.compile(r"^\s*select\b.*?\bfrom\s+[\"`]?(\w+)", re.IGNORECASE | re.DOTALL)
_INSERT: Final = re.compile(r"^\s*insert\s+into\s+[\"`]?(\w+)", re.IGNORECASE)
_FETCHES: Final = {"fetchone", "fetchall", "first", "scalar"}

_OF_MODEL: Final = re.compile(r"([\w.]+)\.objects((?:\.\w+\(\))*)\.\w+$")
_ROW: Final = re.compile(r"\.(get|first|last|create|get_or_create|earliest|latest)\(\)")


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """One look: at which model, by which columns, in which call."""

    step: Step
    model: str
    columns: set[str]

    def decides(self, insert: Step, function: Function) -> bool:
        """Tell whether *insert* happens or not by what was found."""
        names = self._names(function)
        for frame in insert.frames(Kind.IF, Kind.ELSE):
            if isinstance(frame.node, ast.If) and self._is_tested(frame.node.test, names):
                return True
        for frame in insert.frames(Kind.EXCEPT):
            if isinstance(frame.node, ast.ExceptHandler) and "DoesNotExist" in ast.dump(frame.node):
                return any(
                    frame.node in each.node.handlers
                    for each in self.step.frames(Kind.TRY)
                    if isinstance(each.node, ast.Try)
                )
        for step in function.steps:
            if not isinstance(step.node, ast.If) or step.index > insert.index or not _leaves(step.node):
                continue
            around = any(frame.node is step.node for frame in insert.frames())
            if not around and self._is_tested(step.node.test, names):
                return True
        return False

    def _names(self, function: Function) -> set[str]:
        return {
            name for name, values in function.assigned.items() if any(self._is_tested(value, set()) for value in values)
        }

    def _is_tested(self, test: ast.expr, names: set[str]) -> bool:
        return any(
            node is self.step.node
            or (isinstance(node, ast.Name) and node.id in names)
            or (self.model.startswith("sql ") and isinstance(node, ast.Attribute) and node.attr in _FETCHES)
            for node in ast.walk(test)
        )


def model_of(name: str) -> str | None:
    """The model of `Order.objects.filter().create`; None where a row or a related manager stands between."""
    match = _OF_MODEL.match(name)
    return match[1] if match is not None and not _ROW.search(match[2]) else None


def lookups_of(function: Function) -> Iterator[Lookup]:
    """The first looks of one body."""
    return islice(_lookups(function), MOST_LOOKS)


def _lookups(function: Function) -> Iterator[Lookup]:
    for step in function.calling(_LOOKS):
        model = _model(step, function)
        if model is not None and model not in function.assigned:  # a name that holds some class is no class
            yield Lookup(step, model, _columns(step.call))


def _model(step: Step, function: Function) -> str | None:
    name = step.name
    if ".objects" in name:
        return model_of(name)
    sql = _SELECT.search(sql_of(step) or "")
    if sql is not None:
        return f"sql {sql[1].lower()}"
    for node in _chain(step.call):
        called = last(function.name_of(node))
        if called in {"query", "select"} and node.args:
            return dotted(node.args[0], function.scope).split(".id")[0]
    return None


def _chain(call: ast.Call) -> Iterator[ast.Call]:
    """The calls that a chain of calls is made of, with calls that are its first arguments."""
    pending: list[ast.AST] = [call]
    while pending:
        node = pending.pop()
        match node:
            case ast.Call(func=func, args=args):
                yield node
                pending.append(func)
                pending.extend(args[:1])
            case ast.Attribute(value=value) | ast.Await(value=value):
                pending.append(value)
            case _:
                pass


def _columns(call: ast.Call) -> set[str]:
    return {each.arg for node in _chain(call) for each in node.keywords if each.arg}


def inserted_model(step: Step, function: Function) -> str | None:
    """The model of the row that a call inserts."""
    name, receiver = step.name, step.receiver
    if ".objects" in name:
        return model_of(name)
    sql = _INSERT.search(sql_of(step) or "")
    if sql is not None:
        return f"sql {sql[1].lower()}"
    if last(name) in {"add", "add_all", "bulk_save_objects"} and step.call.args:
        given = step.call.args[0]
        if isinstance(given, ast.Name):
            values = function.assigned.get(given.id, [])
            given = values[-1] if values else given
        text = dotted(given, function.scope)
        return text.removesuffix("()") if text.endswith("()") else None
    return receiver.removesuffix("()") if last(name) == "save" and receiver.endswith("()") else None


def _leaves(node: ast.If) -> bool:
    return isinstance(node.body[-1], ast.Return | ast.Raise | ast.Continue)


def inserted_columns(step: Step, function: Function) -> set[str]:
    """The columns that the insert gives a value, also by assignments to the row before it."""
    given = {each.arg for node in ast.walk(step.statement) if isinstance(node, ast.Call) for each in node.keywords}
    row = _row(step)
    if row is not None:
        for value in function.assigned.get(row, []):
            given |= {each.arg for each in value.keywords} if isinstance(value, ast.Call) else set()
        for other in function.steps:
            match other.node:
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=name), attr=attr)]) if name == row:
                    given.add(attr)
                case _:
                    pass
    return {each for each in given if each is not None}


def _row(step: Step) -> str | None:
    """The name of the row in `row.save()` and `session.add(row)`."""
    match step.call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="save")):
            return name
        case ast.Call(func=ast.Attribute(attr="add"), args=[ast.Name(id=name)]):
            return name
        case _:
            return None
